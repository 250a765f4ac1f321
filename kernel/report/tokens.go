package report

import (
	"iter"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// What is searched for is words. SQLite finds them by its tokenizer unicode61, which knows
// neither Chinese nor any other script that writes words without spaces between them: there
// a whole sentence would be one word. Texts in such a dense script are therefore handed to it
// as overlapping pairs of characters, and the last character of a run once more alone, so
// that every character begins a token:
//
//	汉字典 test   becomes   汉字 字典 典 test
//
// A phrase to search for becomes the same, but for that last character where the phrase
// ends with it: in the text, the run may go on.

// dense are the scripts without spaces between words; and Hangul, whose particles are written
// on to their words.
var dense = []*unicode.RangeTable{
	unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Bopomofo, unicode.Yi,
	unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar, unicode.Tibetan,
	// Marks of Japanese that belong to no script of their own.
	{R16: []unicode.Range16{{Lo: 0x30fc, Hi: 0x30fc, Stride: 1}, {Lo: 0xff70, Hi: 0xff70, Stride: 1}}},
}

// run is a stretch of a text that is one word, or dense characters without a gap.
type run struct {
	start, end int // in bytes
	dense      bool
}

// runs yields the words and the dense runs of a text. All else only separates them.
func runs(text string) iter.Seq[run] {
	return func(yield func(run) bool) {
		var at run
		open := false
		for i := 0; i < len(text); {
			r, n := utf8.DecodeRuneInString(text[i:])
			word, isDense := classify(r, n)
			if unicode.IsMark(r) && open {
				word, isDense = true, at.dense // it belongs to what it stands on
			}
			if open && (!word || isDense != at.dense) {
				if !yield(at) {
					return
				}
				open = false
			}
			switch {
			case word && open:
				at.end = i + n
			case word:
				at, open = run{i, i + n, isDense}, true
			}
			i += n
		}
		if open {
			yield(at)
		}
	}
}

// classify reports whether a character is part of a word, and whether its script is dense.
func classify(r rune, size int) (word, isDense bool) {
	switch {
	case r == utf8.RuneError && size == 1:
		return false, false
	case r < 0x80:
		return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9', false
	case !unicode.In(r, unicode.L, unicode.N, unicode.Co, unicode.Mn, unicode.Mc):
		return false, false
	}
	return true, r >= 0x0e00 && unicode.In(r, dense...) && !unicode.IsDigit(r)
}

// segment returns a text as the index takes it: tokens with spaces between them; and each
// of its dense characters once, likewise.
func segment(text string) (tokens, chars string) {
	var b, c strings.Builder
	seen := map[rune]bool{}
	for r := range runs(text) {
		word := text[r.start:r.end]
		if !r.dense {
			b.WriteString(word)
			b.WriteByte(' ')
			continue
		}
		pairs(&b, word, true)
		for _, r := range word {
			if !seen[r] {
				seen[r] = true
				c.WriteRune(r)
				c.WriteByte(' ')
			}
		}
	}
	return b.String(), c.String()
}

// pairs writes the overlapping pairs of a dense run, and its last character if that is
// wanted or all there is.
func pairs(b *strings.Builder, run string, last bool) {
	_, n := utf8.DecodeRuneInString(run)
	alone := n == len(run)
	for n < len(run) {
		_, m := utf8.DecodeRuneInString(run[n:])
		b.WriteString(run[:n+m])
		b.WriteByte(' ')
		run, n = run[n:], m
	}
	if last || alone {
		b.WriteString(run)
		b.WriteByte(' ')
	}
}

// match returns a phrase as an expression of FTS5 that finds it; empty if there is no word
// in it. Nothing of the phrase is syntax: only words come through, and within quotes.
func match(phrase string) string {
	var b strings.Builder
	var list []run
	for r := range runs(phrase) {
		list = append(list, r)
	}
	if len(list) == 0 {
		return ""
	}
	for i, r := range list {
		if word := phrase[r.start:r.end]; r.dense {
			pairs(&b, word, i < len(list)-1)
		} else {
			b.WriteString(word)
			b.WriteByte(' ')
		}
	}
	last := list[len(list)-1]
	words := `"` + strings.TrimSuffix(b.String(), " ") + `"`
	if last.dense && utf8.RuneCountInString(phrase[last.start:last.end]) == 1 {
		if len(list) == 1 {
			return "chars : " + words
		}
		return "text : " + words + " *" // a pair that begins with the character
	}
	return "text : " + words
}

// fold makes letters equal that the index takes for equal, as far as a mark in an excerpt
// depends on it: case, and the accents of Latin letters.
func fold(r rune) rune {
	if r < 0x80 {
		if 'A' <= r && r <= 'Z' {
			r += 'a' - 'A'
		}
		return r
	}
	r = unicode.ToLower(r)
	if base, ok := accents()[r]; ok {
		return base
	}
	return r
}

// accents maps the accented letters of Latin script to the plain ones.
var accents = sync.OnceValue(func() map[rune]rune {
	m := map[rune]rune{}
	for _, group := range strings.Fields(`aàáâãäåāăąǎạảấầẩẫậắằẳẵặ cçćĉċč dďḍ eèéêëēĕėęěẹẻẽếềểễệ gĝğġģǧ hĥḥ iìíîïĩīĭįǐỉị
		jĵ kķǩ lĺļľḷ mṃ nñńņňǹṅṇ oòóôõöōŏőơǒọỏốồổỗộớờởỡợ rŕŗřṛ sśŝşšșṣ tţťțṭ uùúûüũūŭůűųưǔụủứừửữự wŵẁẃẅ yýÿŷỳỵỷỹ zźżžẓ`) {
		base, n := utf8.DecodeRuneInString(group)
		for _, r := range group[n:] {
			m[r] = base
		}
	}
	return m
})
