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

// Piece is a part of an excerpt. What was searched for is marked.
type Piece struct {
	Text string `json:"text"`
	Mark bool   `json:"mark,omitempty"`
}

// unit is what a phrase is compared by: a word, or one dense character.
type unit struct {
	start, end int
	text       string // folded
	joined     bool   // dense, and the character before belongs to the same run
}

func units(text string) (list []unit) {
	for r := range runs(text) {
		if !r.dense {
			list = append(list, unit{r.start, r.end, folded(text[r.start:r.end]), false})
			continue
		}
		for i, c := range text[r.start:r.end] {
			n := utf8.RuneLen(c)
			at := r.start + i
			list = append(list, unit{at, at + n, text[at : at+n], i > 0})
		}
	}
	return list
}

// folded is a word with its letters folded and without the accents that the index leaves out.
func folded(word string) string {
	return strings.Map(func(r rune) rune {
		if unicode.Is(left, r) {
			return -1
		}
		r = unicode.ToLower(r)
		if base, ok := accents()[r]; ok {
			return base
		}
		return r
	}, word)
}

// left are the combining accents that unicode61 leaves out of words; other marks are letters to
// it.
var left = &unicode.RangeTable{R16: []unicode.Range16{
	{Lo: 0x300, Hi: 0x304, Stride: 1}, {Lo: 0x306, Hi: 0x30c, Stride: 1}, {Lo: 0x30f, Hi: 0x311, Stride: 2},
	{Lo: 0x31b, Hi: 0x31b, Stride: 1}, {Lo: 0x323, Hi: 0x328, Stride: 1}, {Lo: 0x32d, Hi: 0x32e, Stride: 1},
	{Lo: 0x330, Hi: 0x331, Stride: 1},
}}

type span struct{ start, end int }

// occurrences returns where a phrase stands in a text, both taken apart.
func occurrences(text, phrase []unit) (found []span) {
	if len(phrase) == 0 {
		return nil
	}
	for i := 0; i+len(phrase) <= len(text); i++ {
		if at := text[i : i+len(phrase)]; begins(at, phrase) {
			found = append(found, span{at[0].start, at[len(at)-1].end})
		}
	}
	return found
}

func begins(text, phrase []unit) bool {
	for i, u := range phrase {
		if text[i].text != u.text || i > 0 && text[i].joined != u.joined {
			return false
		}
	}
	return true
}

// excerpt returns some runes of a text around the first thing that was found, on one line.
// If nothing of it can be located, that is the text's beginning.
func excerpt(text string, phrases []string, runes int) []Piece {
	marked := make([]bool, len(text)+1)
	list := units(text)
	first := -1
	for _, p := range phrases {
		for _, s := range occurrences(list, units(p)) {
			if first < 0 {
				first = s.start // of the first phrase that is there
			}
			for i := s.start; i < s.end; i++ {
				marked[i] = true
			}
		}
	}
	begin, end := window(text, max(first, 0), runes)
	var pieces []Piece
	if begin > 0 {
		pieces = append(pieces, Piece{Text: "…"})
	}
	for i := begin; i < end; {
		j := i
		for j < end && marked[j] == marked[i] {
			j++
		}
		if s := onOneLine(text[i:j]); s != "" {
			pieces = append(pieces, Piece{Text: s, Mark: marked[i]})
		}
		i = j
	}
	if end < len(text) {
		pieces = append(pieces, Piece{Text: "…"})
	}
	return pieces
}

// window returns where to cut a text so that some runes are left, with what stands at the
// byte at in its first third, and no word cut at its beginning if that can be helped.
func window(text string, at, runes int) (begin, end int) {
	begin = at
	for range runes / 3 {
		if begin == 0 {
			break
		}
		_, n := utf8.DecodeLastRuneInString(text[:begin])
		begin -= n
	}
	if begin > 0 {
		if space := strings.IndexAny(text[begin:at], " \n\t"); space >= 0 {
			begin += space + 1
		}
	}
	end = begin
	for range runes {
		if end == len(text) {
			break
		}
		_, n := utf8.DecodeRuneInString(text[end:])
		end += n
	}
	return begin, end
}

// onOneLine makes every stretch of space one, and keeps one at either end.
func onOneLine(s string) string {
	var b strings.Builder
	space := false
	for _, r := range s {
		if unicode.IsSpace(r) {
			if !space {
				b.WriteByte(' ')
			}
			space = true
			continue
		}
		space = false
		b.WriteRune(r)
	}
	return b.String()
}
