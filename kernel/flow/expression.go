package flow

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/perlica/perlica/eventlog/message"
)

// maxExpression is the length of the longest expression in bytes. maxDepth is the largest depth of its tree.
const (
	maxExpression = 8 << 10
	maxDepth      = 100
)

// node is a part of a parsed expression.
type node struct {
	op   string  // a literal, an operator, or one of the words below
	name string  // of a variable, a member or a function
	val  any     // of a literal
	kids []*node // the operands
}

// These are the values of node.op that are not operators of the language.
const (
	opLiteral  = "literal"
	opName     = "name"
	opElement  = "#"      // the element of a list, in the second argument of a function such as map
	opMember   = "member" // a.b; an error if b is missing
	opOptional = "?."     // a?.b; nil if b is missing
	opIndex    = "index"
	opCall     = "call"
	opList     = "list"
	opMap      = "map"
)

// An expressionError says why an expression cannot be read or evaluated.
type expressionError struct {
	Expression string
	Why        error
}

func (e *expressionError) Error() string { return e.Tell().Text }

// Tell returns the error's sentence.
func (e *expressionError) Tell() *message.Text {
	return inExpression.With(e.Why, cutText(e.Expression))
}

// cutText shortens a text for a message.
func cutText(s string) string {
	const most = 80
	s = strings.Join(strings.Fields(s), " ")
	if utf8.RuneCountInString(s) <= most {
		return s
	}
	return string([]rune(s)[:most-1]) + "…"
}

// expression is a parsed expression.
type expression struct {
	text string
	root *node
}

// parseExpression parses the text of an expression. The language has no loops and no functions of the user, so every
// expression ends.
func parseExpression(text string) (*expression, error) {
	if len(text) > maxExpression {
		return nil, &expressionError{text, errLongExpression.With(len(text), maxExpression)}
	}
	p := &parser{text: text}
	root, err := p.parseAll()
	if err != nil {
		return nil, &expressionError{text, err}
	}
	return &expression{text, root}, nil
}

// parser reads an expression from left to right.
type parser struct {
	text  string
	at    int
	tok   token
	depth int
}

// token is a word of an expression. The kind is "name", "number", "string", "end" or the operator itself.
type token struct {
	kind, text string
}

func (p *parser) parseAll() (*node, error) {
	if err := p.next(); err != nil {
		return nil, err
	}
	n, err := p.parseTernary()
	if err == nil && p.tok.kind != "end" {
		err = errUnexpected.With(p.tok.text)
	}
	return n, err
}

// operators are the operators of more than one character.
var operators = []string{"==", "!=", "<=", ">=", "&&", "||", "??", "?."}

// next reads the next token.
func (p *parser) next() error {
	rest := strings.TrimLeftFunc(p.text[p.at:], unicode.IsSpace)
	p.at = len(p.text) - len(rest)
	if rest == "" {
		p.tok = token{kind: "end"}
		return nil
	}
	take := func(kind string, n int) error {
		p.tok, p.at = token{kind, rest[:n]}, p.at+n
		return nil
	}
	c := rest[0]
	switch {
	case isNameByte(c) && (c < '0' || c > '9'):
		return take("name", spanOf(rest, isNameByte))
	case c >= '0' && c <= '9':
		n := spanOf(rest, func(b byte) bool { return b >= '0' && b <= '9' || b == '.' || b == '_' })
		return take("number", n)
	case c == '"' || c == '\'' || c == '`':
		return p.nextString(rest)
	}
	for _, op := range operators {
		if strings.HasPrefix(rest, op) {
			return take(op, len(op))
		}
	}
	if strings.IndexByte("+-*/%<>!?:.,()[]{}#|", c) < 0 {
		_, n := utf8.DecodeRuneInString(rest)
		return errUnexpected.With(rest[:n])
	}
	return take(string(c), 1)
}

func isNameByte(b byte) bool {
	return b == '_' || b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= '0' && b <= '9'
}

// spanOf returns the number of bytes at the beginning of s for which the function "is" returns true.
func spanOf(s string, is func(byte) bool) int {
	n := 0
	for n < len(s) && is(s[n]) {
		n++
	}
	return n
}

// escapes are the escape sequences of a string.
var escapes = map[byte]string{'n': "\n", 't': "\t", 'r': "\r", '\\': `\`, '"': `"`, '\'': "'", '`': "`"}

// nextString reads a string with its quotes.
func (p *parser) nextString(rest string) error {
	var b strings.Builder
	quote := rest[0]
	for i := 1; i < len(rest); i++ {
		switch c := rest[i]; {
		case c == quote:
			p.tok, p.at = token{"string", b.String()}, p.at+i+1
			return nil
		case c == '\\' && quote != '`':
			i++
			if i == len(rest) {
				break
			}
			s, ok := escapes[rest[i]]
			if !ok {
				_, n := utf8.DecodeRuneInString(rest[i:])
				return errEscape.With(rest[i-1 : i+n])
			}
			b.WriteString(s)
		default:
			b.WriteByte(c)
		}
	}
	return errStringEnd.With(cutText(rest))
}

// accept looks at the present token. If its kind or its name is in kinds, accept returns the match and reads the next
// token.
func (p *parser) accept(kinds ...string) (string, bool, error) {
	for _, k := range kinds {
		if p.tok.kind == k || p.tok.kind == "name" && p.tok.text == k {
			return k, true, p.next()
		}
	}
	return "", false, nil
}

// missing returns the error of a missing part before the present token, or at the end of the expression.
func (p *parser) missing(before, atEnd *message.Text, args ...any) error {
	if p.tok.kind == "end" {
		return atEnd.With(args...)
	}
	return before.With(append(args, p.tok.text)...)
}

func (p *parser) expect(kind string) error {
	_, ok, err := p.accept(kind)
	if err == nil && !ok {
		err = p.missing(errExpected, errExpectedEnd, kind)
	}
	return err
}

func (p *parser) parseTernary() (*node, error) {
	if p.depth++; p.depth > maxDepth {
		return nil, errDeepExpression.With(maxDepth)
	}
	defer func() { p.depth-- }()
	cond, err := p.parseBinary(0)
	if err != nil {
		return nil, err
	}
	_, ok, err := p.accept("?")
	if err != nil || !ok {
		return cond, err
	}
	yes, err := p.parseTernary()
	if err != nil {
		return nil, err
	}
	if err := p.expect(":"); err != nil {
		return nil, err
	}
	no, err := p.parseTernary()
	return &node{op: "?", kids: []*node{cond, yes, no}}, err
}

// levels are the binary operators, from the weakest to the strongest.
var levels = [][]string{
	{"or", "||"}, {"and", "&&"}, {"??"}, {"==", "!=", "<", "<=", ">", ">=", "in", "contains", "startsWith", "endsWith"},
	{"+", "-"}, {"*", "/", "%"},
}

// sameOperator maps an operator to the other spelling of the same operator.
var sameOperator = map[string]string{"||": "or", "&&": "and", "!": "not"}

func (p *parser) parseBinary(level int) (*node, error) {
	if level == len(levels) {
		return p.parseUnary()
	}
	left, err := p.parseBinary(level + 1)
	for err == nil {
		op, ok, aerr := p.accept(levels[level]...)
		if !ok || aerr != nil {
			return left, aerr
		}
		var right *node
		right, err = p.parseBinary(level + 1)
		if same := sameOperator[op]; same != "" {
			op = same
		}
		left = &node{op: op, kids: []*node{left, right}}
	}
	return left, err
}

func (p *parser) parseUnary() (*node, error) {
	op, ok, err := p.accept("!", "not", "-")
	if err != nil {
		return nil, err
	}
	if !ok {
		return p.parsePostfix()
	}
	if p.depth++; p.depth > maxDepth {
		return nil, errDeepExpression.With(maxDepth)
	}
	defer func() { p.depth-- }()
	kid, err := p.parseUnary()
	switch op {
	case "-":
		op = "negate"
	case "!":
		op = "not"
	}
	return &node{op: op, kids: []*node{kid}}, err
}

func (p *parser) parsePostfix() (*node, error) {
	n, err := p.parsePrimary()
	for err == nil {
		op, ok, aerr := p.accept(".", "?.", "[")
		if !ok || aerr != nil {
			return n, aerr
		}
		if op == "[" {
			var i *node
			if i, err = p.parseTernary(); err == nil {
				err = p.expect("]")
			}
			n = &node{op: opIndex, kids: []*node{n, i}}
			continue
		}
		n, err = p.parseMember(n, op)
	}
	return n, err
}

// parseMember parses the name after a dot.
func (p *parser) parseMember(of *node, op string) (*node, error) {
	if p.tok.kind != "name" {
		return nil, p.missing(errExpectedName, errEarlyEnd)
	}
	kind := opMember
	if op == "?." {
		kind = opOptional
	}
	n := &node{op: kind, name: p.tok.text, kids: []*node{of}}
	return n, p.next()
}

func (p *parser) parsePrimary() (*node, error) {
	t := p.tok
	switch t.kind {
	case "number":
		v, err := strconv.ParseFloat(strings.ReplaceAll(t.text, "_", ""), 64)
		if err != nil {
			return nil, errNoNumber.With(t.text)
		}
		return &node{op: opLiteral, val: v}, p.next()
	case "string":
		return &node{op: opLiteral, val: t.text}, p.next()
	case "#":
		return &node{op: opElement}, p.next()
	case ".": // in the second argument of map, .name means #.name
		if err := p.next(); err != nil {
			return nil, err
		}
		return p.parseMember(&node{op: opElement}, ".")
	case "(":
		if err := p.next(); err != nil {
			return nil, err
		}
		n, err := p.parseTernary()
		if err == nil {
			err = p.expect(")")
		}
		return n, err
	case "[":
		kids, err := p.parseUntil("]")
		return &node{op: opList, kids: kids}, err
	case "{":
		return p.parseMap()
	case "name":
		return p.parseName()
	}
	return nil, p.missing(errExpectedValue, errEarlyEnd)
}

// parseName parses a word: a constant, a variable or the call of a function.
func (p *parser) parseName() (*node, error) {
	name := p.tok.text
	if err := p.next(); err != nil {
		return nil, err
	}
	switch name {
	case "true", "false":
		return &node{op: opLiteral, val: name == "true"}, nil
	case "nil", "null":
		return &node{op: opLiteral}, nil
	}
	if p.tok.kind != "(" {
		return &node{op: opName, name: name}, nil
	}
	kids, err := p.parseUntil(")")
	return &node{op: opCall, name: name, kids: kids}, err
}

// parseUntil parses a list with commas. The present token opens the list, and the token in the parameter "end"
// closes it.
func (p *parser) parseUntil(end string) (kids []*node, err error) {
	if err := p.next(); err != nil {
		return nil, err
	}
	for {
		if _, ok, err := p.accept(end); ok || err != nil {
			return kids, err
		}
		kid, err := p.parseTernary()
		if err != nil {
			return nil, err
		}
		kids = append(kids, kid)
		if _, ok, err := p.accept(","); err != nil {
			return nil, err
		} else if !ok {
			return kids, p.expect(end)
		}
	}
}

// parseMap parses {name: value, …}. An expression in braces without a name is that expression, as in map(list, {#}).
func (p *parser) parseMap() (*node, error) {
	if err := p.next(); err != nil {
		return nil, err
	}
	m := &node{op: opMap}
	for {
		if _, ok, err := p.accept("}"); ok || err != nil {
			return m, err
		}
		key, err := p.parseTernary()
		if err != nil {
			return nil, err
		}
		if _, ok, err := p.accept(":"); err != nil {
			return nil, err
		} else if !ok && len(m.kids) == 0 {
			return key, p.expect("}")
		} else if !ok {
			return nil, p.missing(errExpected, errExpectedEnd, ":")
		}
		if key.op == opName {
			key = &node{op: opLiteral, val: key.name}
		}
		if _, ok := key.val.(string); !ok || key.op != opLiteral {
			return nil, errMemberName
		}
		value, err := p.parseTernary()
		if err != nil {
			return nil, err
		}
		m.kids = append(m.kids, key, value)
		if _, ok, err := p.accept(","); err != nil {
			return nil, err
		} else if !ok {
			return m, p.expect("}")
		}
	}
}
