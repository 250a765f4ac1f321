package shell

import (
	"errors"
	"regexp"
	"slices"
	"strings"
	"sync"

	"mvdan.cc/sh/v3/syntax"
)

// These limits keep the parser's stack and work small. The parser does not read longer or deeper texts. maxRepaired
// is the maximum number of false comments that parse corrects in a text. The function falseComment has an example.
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

// parse parses text as a bash script. It returns the statements up to the first error. It may correct the text for the
// parser, so it also returns the corrected text, to which the positions of the statements belong.
func parse(text string) (list []*syntax.Stmt, read string, err error) {
	if len(text) > maxText || nesting(text) > maxNested {
		return nil, text, errTooLong
	}
	if strings.ContainsRune(text, 0) {
		return nil, text, errZero
	}
	// The text comes from an agent. If the parser panics, the text is unreadable.
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

// falseComment returns the index of a # at which the parser wrongly starts a comment, or -1. In (a $x#y; b) the # is
// inside a word, so a shell runs b.
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

// reread changes a text that the parser rejects and bash may accept. It changes "((" into two subshells, escapes "#"
// inside a word, and removes double negations.
func reread(text string) string {
	text = twoNegations().ReplaceAllString(text, "")
	return wordHash().ReplaceAllString(strings.ReplaceAll(text, "((", "( ("), `$1\#`)
}

// parseSome returns the statements before the first syntax error.
func parseSome(text string) (list []*syntax.Stmt) {
	failed := false
	parser := syntax.NewParser(syntax.Variant(syntax.LangBash))
	// Do not break at an error: the parser may yield once more after an error, and it would panic after a break.
	for stmt, err := range parser.StmtsSeq(strings.NewReader(text)) {
		failed = failed || err != nil
		if !failed && stmt != nil {
			list = append(list, stmt)
		}
	}
	return list
}

// nesting returns the maximum number of brackets that are open at one place in the text. The parser needs stack for
// each open bracket.
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

// lazily returns a function that compiles expr at its first call, because most runs need few of the expressions. Copies
// of the function at its uses would add 0.1 MB to the program.
//
//go:noinline
func lazily(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}

// maxBraces is the maximum number of open braces in a word, because the parser reads the whole word again for each
// open brace.
const maxBraces = 1024

// spreadBraces expands the braces of a word as bash does, before all other expansions. It returns the parts of each
// resulting word. It subtracts 1 from *left for each result, and stops when *left is negative.
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

// alternatives returns the words to which a brace expression such as {a,b} or {1..9} expands. For a range of
// numbers it returns only the first and the last, because the numbers between do not change the verdict.
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
		// Each character is quoted, because the range from Z to a contains "[" and the backslash.
		out = append(out, &syntax.Word{Parts: []syntax.WordPart{&syntax.SglQuoted{Value: string(rune(c))}}})
	}
	return out
}

// rejoin joins adjacent literal parts of a word, so that {~,x}/y expands the ~ at the start of the word ~/y.
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
