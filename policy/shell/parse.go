package shell

import (
	"errors"
	"regexp"
	"slices"
	"strings"
	"sync"

	"mvdan.cc/sh/v3/syntax"
)

// These limits keep the parser's stack small. Longer or deeper texts are not read.
const (
	maxText     = 128 << 10 // more than Linux takes as one argument
	maxNested   = 512
	maxRepaired = 16
)

var (
	errTooLong   = errors.New("too long or too deeply nested")
	errZero      = errors.New("holds a zero byte")
	errAmbiguous = errors.New("cannot tell its comments")
	errGaveUp    = errors.New("the parser gave up")
)

// parse reads text as bash does. It returns the statements up to the first error, and the text to which their
// positions belong.
func parse(text string) (list []*syntax.Stmt, read string, err error) {
	if len(text) > maxText || nesting(text) > maxNested {
		return nil, text, errTooLong
	}
	if strings.ContainsRune(text, 0) {
		return nil, text, errZero
	}
	// The text comes from an agent. If it makes the parser panic, it counts as unreadable.
	defer func() {
		if recover() != nil {
			err = errGaveUp
		}
	}()
	for range maxRepaired {
		parser := syntax.NewParser(syntax.Variant(syntax.LangBash), syntax.KeepComments(true))
		file, err := parser.Parse(strings.NewReader(text), "")
		if err != nil {
			return parseSome(text), text, err
		}
		i := falseComment(file, text)
		if i < 0 {
			return file.Stmts, text, nil
		}
		text = text[:i] + `\` + text[i:]
	}
	return nil, text, errAmbiguous
}

// falseComment returns the index of a # that the parser takes for a comment and a shell does not, or -1. In (a $x#y;
// b) the # is inside a word, and b runs.
func falseComment(file *syntax.File, text string) int {
	at := -1
	syntax.Walk(file, func(n syntax.Node) bool {
		if c, ok := n.(*syntax.Comment); ok && at < 0 {
			i := int(c.Hash.Offset())
			if i > 0 && i < len(text) && text[i] == '#' && strings.IndexByte(" \t\n;&|()<>`", text[i-1]) < 0 {
				at = i
			}
		}
		return at < 0
	})
	return at
}

var wordHash = lazily(`([\w})'"@*?!$-])#`)

var twoNegations = lazily(`![ \t]+![ \t]+`)

// reread changes a text that cannot be parsed into the form in which bash may read it. "((" without arithmetic
// becomes two subshells, "#" inside a word becomes a plain character, and two negations disappear.
func reread(text string) string {
	text = twoNegations().ReplaceAllString(text, "")
	return wordHash().ReplaceAllString(strings.ReplaceAll(text, "((", "( ("), `$1\#`)
}

// parseSome returns the statements before a syntax error.
func parseSome(text string) (list []*syntax.Stmt) {
	failed := false
	parser := syntax.NewParser(syntax.Variant(syntax.LangBash))
	// The loop never ends early. After an error the parser may yield once more, and it panics if the loop has ended.
	for stmt, err := range parser.StmtsSeq(strings.NewReader(text)) {
		failed = failed || err != nil
		if !failed && stmt != nil {
			list = append(list, stmt)
		}
	}
	return list
}

// nesting returns the deepest level of open brackets, as a limit for the parser's stack.
func nesting(text string) int {
	depth, deepest := 0, 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '(', '{', '`':
			depth++
		case ')', '}':
			depth--
		}
		deepest = max(deepest, depth)
	}
	return deepest
}

// lazily returns a function that compiles expr at its first call, because most runs need few of the expressions.
func lazily(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}

// maxBraces limits the open braces in a word. The parser reads the whole word again for each open brace.
const maxBraces = 1024

// spreadBraces expands the braces of a word as bash does, before all other expansions. It subtracts the results from
// left and stops below zero.
func spreadBraces(parts []syntax.WordPart, left *int) [][]syntax.WordPart {
	word, braces := syntax.Word{Parts: slices.Clone(parts)}, 0
	for _, part := range parts {
		if lit, ok := part.(*syntax.Lit); ok {
			braces += strings.Count(lit.Value, "{")
		}
	}
	switch {
	case braces > maxBraces:
		*left = -1
		return nil
	case !syntax.SplitBraces(&word):
		return [][]syntax.WordPart{parts}
	}
	return spreadFirst(word.Parts, left)
}

func spreadFirst(parts []syntax.WordPart, left *int) (out [][]syntax.WordPart) {
	at := slices.IndexFunc(parts, func(p syntax.WordPart) bool { _, ok := p.(*syntax.BraceExp); return ok })
	if at < 0 {
		return [][]syntax.WordPart{rejoin(parts)}
	}
	for _, choice := range alternatives(parts[at].(*syntax.BraceExp)) {
		if *left--; *left < 0 {
			return nil
		}
		out = append(out, spreadFirst(slices.Concat(parts[:at], choice.Parts, parts[at+1:]), left)...)
	}
	return out
}

// alternatives returns the words of a brace expression. For a range of numbers, the first and the last number are
// enough.
func alternatives(b *syntax.BraceExp) []*syntax.Word {
	if !b.Sequence {
		return b.Elems
	}
	first, last := b.Elems[0].Lit(), b.Elems[1].Lit()
	if !letter(first) {
		return b.Elems[:2]
	}
	var out []*syntax.Word
	from, to, step := int(first[0]), int(last[0]), 1
	if from > to {
		step = -1
	}
	for c := from; c != to+step; c += step {
		// The range from Z to a contains "[" and the backslash, so each character is quoted.
		out = append(out, &syntax.Word{Parts: []syntax.WordPart{&syntax.SglQuoted{Value: string(rune(c))}}})
	}
	return out
}

// rejoin joins adjacent literals, so that a ~ counts at the start of its word wherever it came from.
func rejoin(parts []syntax.WordPart) (out []syntax.WordPart) {
	var text strings.Builder
	flush := func() {
		if text.Len() > 0 {
			out = append(out, &syntax.Lit{Value: text.String()})
			text.Reset()
		}
	}
	for _, p := range parts {
		if lit, ok := p.(*syntax.Lit); ok {
			text.WriteString(lit.Value)
			continue
		}
		flush()
		out = append(out, p)
	}
	flush()
	return out
}

func letter(s string) bool { return len(s) == 1 && (s[0] < '0' || s[0] > '9') }
