package report

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

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

// units takes a text apart.
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
		return fold(r)
	}, word)
}

// left are the combining accents that unicode61 leaves out of words; other marks are letters to
// it.
var left = &unicode.RangeTable{R16: []unicode.Range16{
	{Lo: 0x300, Hi: 0x304, Stride: 1}, {Lo: 0x306, Hi: 0x30c, Stride: 1}, {Lo: 0x30f, Hi: 0x311, Stride: 2},
	{Lo: 0x31b, Hi: 0x31b, Stride: 1}, {Lo: 0x323, Hi: 0x328, Stride: 1}, {Lo: 0x32d, Hi: 0x32e, Stride: 1},
	{Lo: 0x330, Hi: 0x331, Stride: 1},
}}

// span is a stretch of a text in bytes.
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
