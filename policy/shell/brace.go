package shell

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// spreadBraces expands the braces of a word as bash does, before anything else is
// expanded. It counts down left and stops below zero.
func spreadBraces(parts []syntax.WordPart, left *int) [][]syntax.WordPart {
	word := syntax.Word{Parts: slices.Clone(parts)}
	if !syntax.SplitBraces(&word) {
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
