package shell

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// A piece is one unquoted character of a word, with its backslash if it has one, or a
// part into which braces do not look: quotes, variables, substitutions.
type piece struct {
	text string
	part syntax.WordPart
}

// spreadBraces expands the braces of a word as bash does, before anything else is
// expanded. It counts down left and stops below zero.
func spreadBraces(parts []syntax.WordPart, left *int) [][]syntax.WordPart {
	var ps []piece
	braced := false
	for _, part := range parts {
		lit, ok := part.(*syntax.Lit)
		if !ok {
			ps = append(ps, piece{part: part})
			continue
		}
		for i := 0; i < len(lit.Value); i++ {
			n := 1
			if lit.Value[i] == '\\' && i+1 < len(lit.Value) {
				n = 2
			}
			braced = braced || lit.Value[i] == '{'
			ps = append(ps, piece{text: lit.Value[i : i+n]})
			i += n - 1
		}
	}
	if !braced {
		return [][]syntax.WordPart{parts}
	}
	var out [][]syntax.WordPart
	for _, word := range spread(ps, left) {
		out = append(out, rejoin(word))
	}
	return out
}

// rejoin makes literals of characters again, so that a ~ stands at the start of its
// word wherever it came from.
func rejoin(ps []piece) []syntax.WordPart {
	var out []syntax.WordPart
	var text strings.Builder
	flush := func() {
		if text.Len() > 0 {
			out = append(out, &syntax.Lit{Value: text.String()})
			text.Reset()
		}
	}
	for _, p := range ps {
		if p.part == nil {
			text.WriteString(p.text)
			continue
		}
		flush()
		out = append(out, p.part)
	}
	flush()
	return out
}

func spread(ps []piece, left *int) [][]piece {
	closing := matching(ps)
	words := [][]piece{nil}
	from := 0 // what lies before it is in words
	for i := 0; i < len(ps); i++ {
		if closing[i] == 0 {
			continue
		}
		choices := alternatives(ps[i+1:closing[i]], left)
		if choices == nil {
			continue
		}
		head := ps[from:i]
		var next [][]piece
		for _, word := range words {
			for _, c := range choices {
				if *left--; *left < 0 {
					return nil
				}
				longer := append(append(word[:len(word):len(word)], head...), c...)
				next = append(next, longer)
			}
		}
		words = next
		i = closing[i]
		from = i + 1
	}
	for i := range words {
		words[i] = append(words[i][:len(words[i]):len(words[i])], ps[from:]...)
	}
	return words
}

// matching gives each opening brace that is closed the place where it is.
func matching(ps []piece) []int {
	closing := make([]int, len(ps))
	var open []int
	for i, p := range ps {
		switch {
		case p.text == "{":
			open = append(open, i)
		case p.text == "}" && len(open) > 0:
			closing[open[len(open)-1]] = i
			open = open[:len(open)-1]
		}
	}
	return closing
}

// alternatives are what a pair of braces stands for; nil if it stands for itself.
func alternatives(inside []piece, left *int) [][]piece {
	var out [][]piece
	closing := matching(inside)
	from := 0
	for i := 0; i < len(inside); i++ {
		if closing[i] > 0 {
			i = closing[i]
		} else if inside[i].text == "," {
			out = append(out, spread(inside[from:i], left)...)
			from = i + 1
		}
	}
	if from == 0 {
		return sequence(inside, left)
	}
	return append(out, spread(inside[from:], left)...)
}

var sequences = lazily(`^(-?[0-9]{1,18}|[A-Za-z])\.\.(-?[0-9]{1,18}|[A-Za-z])(\.\.-?[0-9]{1,18})?$`)

// sequence is {1..3} or {a..c}: of numbers the first and the last tell all that matters.
func sequence(inside []piece, left *int) [][]piece {
	var text strings.Builder
	for _, p := range inside {
		if p.part != nil || text.Len() > 64 {
			return nil
		}
		text.WriteString(p.text)
	}
	m := sequences().FindStringSubmatch(text.String())
	if m == nil || letter(m[1]) != letter(m[2]) {
		return nil
	}
	if !letter(m[1]) {
		*left -= 2
		return [][]piece{{{text: m[1]}}, {{text: m[2]}}}
	}
	var out [][]piece
	from, to, step := int(m[1][0]), int(m[2][0]), 1
	if from > to {
		step = -1
	}
	for c := from; c != to+step; c += step {
		// Between Z and a lie [ and the backslash, which are quoted here.
		out = append(out, []piece{{part: &syntax.SglQuoted{Value: string(rune(c))}}})
	}
	return out
}

func letter(s string) bool { return len(s) == 1 && (s[0] < '0' || s[0] > '9') }
