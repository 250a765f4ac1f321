package form

import (
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// words splits a text into lower-case words without accents and invisible characters. It replaces a lookalike by the
// Latin letters that the lookalike imitates. It splits a name in camel case into several words.
func words(text string) []string {
	return strings.FieldsFunc(folded(text), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsMark(r) &&
			!unicode.IsDigit(r)
	})
}

// folded returns the same text for all spellings that look alike.
func folded(text string) string {
	var b strings.Builder
	var last rune
	for _, r := range norm.NFKD.String(text) {
		if unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf, unicode.Variation_Selector) || blank(r) {
			continue
		}
		if unicode.IsUpper(r) && unicode.IsLower(last) {
			b.WriteByte(' ')
		}
		last = r
		letters, ok := lookalike()[r]
		if !ok {
			r = unicode.ToLower(r)
			letters, ok = lookalike()[r]
		}
		if !ok {
			letters = string(r)
		}
		b.WriteString(letters)
	}
	return norm.NFC.String(b.String())
}

// blank reports whether Unicode calls r a letter or a symbol although a screen shows nothing for it.
func blank(r rune) bool {
	return r == 0x115f || r == 0x1160 || r == 0x3164 || r == 0xffa0 || r == 0x2800
}

// lookalike maps each lookalike to its Latin letters. A small letter without an entry uses the entry of its capital.
var lookalike = sync.OnceValue(func() map[rune]string {
	table := map[rune]string{}
	for row := range strings.Lines(lookalikes) {
		letters, alike, _ := strings.Cut(strings.TrimSuffix(row, "\n"), " ")
		for _, r := range alike {
			table[r] = letters
		}
	}
	for r, letters := range table {
		if _, ok := table[unicode.ToLower(r)]; !ok && unicode.ToLower(r) >= utf8.RuneSelf {
			table[unicode.ToLower(r)] = letters
		}
	}
	return table
})

// respelled returns the readings of a text in which digits and signs replace letters, as in "p4ssw0rd".
func respelled(text string) []string {
	mixed := false
	for _, w := range strings.Fields(text) {
		mixed = mixed || strings.ContainsAny(w, "013457@$!|€") && strings.ContainsFunc(w, unicode.IsLetter)
	}
	if !mixed {
		return []string{text}
	}
	of := []string{"0", "o", "3", "e", "4", "a", "5", "s", "7", "t", "@", "a", "$", "s", "€", "e"}
	return []string{text,
		strings.NewReplacer(append(of, "1", "i", "!", "i", "|", "i")...).Replace(text),
		strings.NewReplacer(append(of, "1", "l", "!", "l", "|", "l")...).Replace(text),
	}
}
