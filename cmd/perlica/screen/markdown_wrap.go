package screen

import (
	"strings"
	"unicode/utf8"
)

// minWidth is the smallest width in columns to which text is wrapped.
const minWidth = 20

// wrapSpans breaks spans into lines. It does not break a word that is longer than a line, so that the word can be
// copied. The terminal breaks such a word.
func (r *renderer) wrapSpans(spans []span, p prefix) string {
	width := r.width - 1
	l := lines{r: r, p: p, width: max(width-TextWidth(p.rest), minWidth)}
	if width < 0 {
		l.width = 1 << 30
	}
	l.setSpans(spans)
	return l.out.String()
}

// setSpans adds spans and ends the last line.
func (l *lines) setSpans(spans []span) {
	for _, s := range spans {
		if s.style == hard {
			l.endLine()
			continue
		}
		for text := s.text; text != ""; {
			n := wordEnd(text)
			l.addWord(text[:n], s.style)
			text = text[n:]
		}
	}
	l.endLine()
}

// wordEnd returns the length of the first part of a text that must not be broken: spaces, one wide character, or a
// word.
func wordEnd(text string) int {
	first := true
	space := text[0] == ' '
	for i, c := range text {
		switch {
		case (c == ' ') != space:
			return i
		case !space && isWide(c):
			if first {
				return len(string(c)) + trailingLength(text[len(string(c)):])
			}
			return i
		}
		first = false
	}
	return len(text)
}

// trailingLength returns the length of the first characters of a text that must not begin a line. These are
// punctuation and characters that join the character before.
func trailingLength(text string) int {
	for i, c := range text {
		joins := c == 0xfe0f || c == 0x200d || c >= 0x300 && c < 0x370
		if !joins && !strings.ContainsRune("，。、；：？！）》」』】”’,.;:?!)", c) {
			return i
		}
	}
	return len(text)
}

// isWide reports whether a line may be broken at a character, as in Chinese, Japanese and Korean. An emoji is not
// wide here, because it must stay with the characters that join it.
func isWide(c rune) bool {
	return c >= 0x2e80 && c <= 0xffdc && !(c >= 0xd800 && c < 0xf900) && c != 0xfe0f || c >= 0x20000 && c <= 0x3fffd
}

// lines breaks text into lines of a given width.
type lines struct {
	r     *renderer
	p     prefix
	width int

	out   strings.Builder
	line  []span // the current line
	used  int    // used columns of the current line
	join  int    // index in line of the first span of the last word, which may have several styles
	joinW int
	space bool // The current line ends with spaces.
}

// addWord adds a word or spaces to the current line. A word directly after another word continues this word.
func (l *lines) addWord(text string, st style) {
	w := TextWidth(text)
	if text[0] == ' ' {
		if l.used > 0 || st&code != 0 {
			l.addSpan(text, st, w)
			l.space = true
			l.join, l.joinW = len(l.line), l.used
		}
		return
	}
	if c, _ := utf8.DecodeRuneInString(text); isWide(c) {
		l.join, l.joinW = len(l.line), l.used
	}
	if l.used+w > l.width && l.join > 0 {
		moved := append([]span(nil), l.line[l.join:]...)
		movedW := l.used - l.joinW
		l.line, l.used = l.line[:l.join], l.joinW
		l.endLine()
		l.line, l.used = moved, movedW
	}
	l.addSpan(text, st, w)
	l.space = false
}

func (l *lines) addSpan(text string, st style, w int) {
	l.line = append(l.line, span{text, st})
	l.used += w
}

// endLine writes the current line. It leaves out the spaces at the end.
func (l *lines) endLine() {
	for len(l.line) > 0 && strings.TrimRight(l.line[len(l.line)-1].text, " ") == "" {
		l.line = l.line[:len(l.line)-1]
	}
	var b strings.Builder
	for i := 0; i < len(l.line); {
		j, text := i, ""
		for ; j < len(l.line) && l.line[j].style == l.line[i].style; j++ {
			text += l.line[j].text
		}
		b.WriteString(l.r.styleText(text, l.line[i].style))
		i = j
	}
	l.out.WriteString(strings.TrimRight(l.p.first+b.String(), " ") + "\n")
	l.p = l.p.next()
	l.line, l.used, l.join, l.joinW, l.space = nil, 0, 0, 0, false
}

// styleText applies a style to text.
func (r *renderer) styleText(text string, st style) string {
	if st&code != 0 {
		text = r.styles.Cyan(text)
	}
	if st&bold != 0 {
		text = r.styles.Bold(text)
	}
	if st&italic != 0 {
		text = r.styles.Italic(text)
	}
	if st&struck != 0 {
		text = r.styles.Strike(text)
	}
	if st&faint != 0 {
		text = r.styles.Dim(text)
	}
	return text
}
