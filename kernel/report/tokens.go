package report

import (
	"iter"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// A search looks for words. SQLite finds them with its tokenizer unicode61. But that tokenizer does not split Chinese,
// or other scripts without spaces: a whole sentence would be one word. So the index stores such dense text as
// overlapping pairs of characters. After the last pair it stores the last character alone, so that a token begins at
// every character:
//
// 汉字典 test   becomes   汉字 字典 典 test
//
// A search phrase is split in the same way. If the phrase ends with dense text, its last character is not added alone,
// because the text may continue there.

// dense are the scripts without spaces between words. Hangul is one of them, because its particles have no space before
// them.
var dense = []*unicode.RangeTable{
	unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Bopomofo, unicode.Yi,
	unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar, unicode.Tibetan,
	// The Japanese sound marks have no script in Unicode.
	{R16: []unicode.Range16{{Lo: 0x30fc, Hi: 0x30fc, Stride: 1}, {Lo: 0xff70, Hi: 0xff70, Stride: 1}}},
}

// run is a word of a text, or a sequence of dense characters without a separator.
type run struct {
	start, end int // offsets in bytes
	dense      bool
}

// runs yields the words and the dense sequences of a text. All other characters only separate them.
func runs(text string) iter.Seq[run] {
	return func(yield func(run) bool) {
		var at run
		open := false
		for i := 0; i < len(text); {
			r, n := utf8.DecodeRuneInString(text[i:])
			word, isDense := classify(r, n)
			if unicode.IsMark(r) && open {
				word, isDense = true, at.dense // a mark belongs to the previous character
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

// classify reports whether a character is part of a word, and whether its script is dense: a script without spaces
// between words.
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

// segment returns the two indexed forms of a text. tokens has its words and pairs of dense characters, with spaces
// between them. chars has each of its dense characters once, with spaces between them.
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

// pairs writes the overlapping pairs of a dense sequence. If "last" is true, or if the sequence is a single character,
// it also writes the last character alone.
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

// match returns an FTS5 expression that finds a phrase. For a phrase without words it returns "". The expression has
// only the words of the phrase, in quotes, so that the phrase cannot add FTS5 syntax.
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
		return "text : " + words + " *" // finds each pair that begins with this character
	}
	return "text : " + words
}

// accents maps the accented letters of the Latin script to letters without accents.
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

// Piece is a part of an excerpt. Mark is true for found words.
type Piece struct {
	Text string `json:"text"`
	Mark bool   `json:"mark,omitempty"`
}

// unit is the smallest part of a text that phrases are compared by: a word or one dense character.
type unit struct {
	start, end int
	text       string // without case and accents
	// joined means that the unit is dense and follows the previous dense unit without a separator.
	joined bool
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

// folded returns a word in lower case, without the accents that the index omits.
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

// left has the combining accents that the index leaves out, as unicode61 does. All other combining marks count as
// letters.
var left = &unicode.RangeTable{R16: []unicode.Range16{
	{Lo: 0x300, Hi: 0x304, Stride: 1}, {Lo: 0x306, Hi: 0x30c, Stride: 1}, {Lo: 0x30f, Hi: 0x311, Stride: 2},
	{Lo: 0x31b, Hi: 0x31b, Stride: 1}, {Lo: 0x323, Hi: 0x328, Stride: 1}, {Lo: 0x32d, Hi: 0x32e, Stride: 1},
	{Lo: 0x330, Hi: 0x331, Stride: 1},
}}

type span struct{ start, end int }

// occurrences returns the positions of a phrase in a text. The phrase and the text are lists of units.
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

// excerpt returns a part of a text around the first match, on one line, with about the given number of runes. Without a
// match it returns the beginning of the text.
func excerpt(text string, phrases []string, runes int) []Piece {
	marked := make([]bool, len(text)+1)
	list := units(text)
	first := -1
	for _, p := range phrases {
		for _, s := range occurrences(list, units(p)) {
			if first < 0 {
				first = s.start // the first match of the first phrase that occurs
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

// window returns the limits of a part of the text with the given number of runes. The parameter "at" is a byte offset.
// It lies in the first third of the part. If possible, the part does not begin inside a word.
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

// onOneLine replaces each sequence of white space with one space, also at both ends.
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
