package shell

import (
	"errors"
	"regexp"
	"slices"
	"strings"
	"sync"

	"mvdan.cc/sh/v3/syntax"
)

// What is longer or deeper is not read, so that the parser's stack stays small.
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

// parse reads text as bash does. It returns the statements, up to the first error if
// there is one, and the text to which their positions belong.
func parse(text string) (list []*syntax.Stmt, read string, err error) {
	if len(text) > maxText || nesting(text) > maxNested {
		return nil, text, errTooLong
	}
	if strings.ContainsRune(text, 0) {
		return nil, text, errZero
	}
	// The text is an agent's: one that makes the parser panic is only unreadable.
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

// falseComment finds a # that the parser takes for a comment and a shell does not: in
// (a $x#y; b) it stands inside a word, and b is run. It returns -1 if there is none.
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

// reread spells a text that cannot be parsed the way bash may read it: it takes (( for
// two subshells where it is no arithmetic, a # inside a word for no comment, and two
// negations for none.
func reread(text string) string {
	text = twoNegations().ReplaceAllString(text, "")
	return wordHash().ReplaceAllString(strings.ReplaceAll(text, "((", "( ("), `$1\#`)
}

// parseSome returns the statements before a syntax error.
func parseSome(text string) (list []*syntax.Stmt) {
	failed := false
	parser := syntax.NewParser(syntax.Variant(syntax.LangBash))
	// The parser may yield once more after an error and panics if the loop has ended, so
	// that it never ends early.
	for stmt, err := range parser.StmtsSeq(strings.NewReader(text)) {
		failed = failed || err != nil
		if !failed && stmt != nil {
			list = append(list, stmt)
		}
	}
	return list
}

// nesting counts what may open a level, so that the parser's stack stays small.
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

// lazily compiles an expression when it is first used: most runs need none of them.
func lazily(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}

// maxBraces bounds the work of the parser, which goes through all of a word again for each brace
// that is not closed.
const maxBraces = 1024

// spreadBraces expands the braces of a word as bash does, before anything else is
// expanded. It counts down left and stops below zero.
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
	return spread(word.Parts, left)
}

func spread(parts []syntax.WordPart, left *int) (out [][]syntax.WordPart) {
	at := slices.IndexFunc(parts, func(p syntax.WordPart) bool { _, ok := p.(*syntax.BraceExp); return ok })
	if at < 0 {
		return [][]syntax.WordPart{rejoin(parts)}
	}
	for _, choice := range alternatives(parts[at].(*syntax.BraceExp)) {
		if *left--; *left < 0 {
			return nil
		}
		out = append(out, spread(slices.Concat(parts[:at], choice.Parts, parts[at+1:]), left)...)
	}
	return out
}

// alternatives are what a pair of braces stands for. Of numbers the first and the last tell all
// that matters.
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
		// Between Z and a lie [ and the backslash, which are quoted here.
		out = append(out, &syntax.Word{Parts: []syntax.WordPart{&syntax.SglQuoted{Value: string(rune(c))}}})
	}
	return out
}

// rejoin makes one literal of those that stand together, so that a ~ stands at the start of its
// word wherever it came from.
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
