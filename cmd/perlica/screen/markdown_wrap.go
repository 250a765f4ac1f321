package screen

import (
	"strings"
	"unicode/utf8"
)

// minWidth is the least that text is wrapped to.
const minWidth = 20

// wrap sets spans in lines. Words that are longer than a line are left whole, for the terminal
// to break: so they can be copied.
func (r *renderer) wrap(spans []span, p prefix) string {
	width := r.width - 1
	l := lines{r: r, p: p, width: max(width-TextWidth(p.rest), minWidth)}
	if width < 0 {
		l.width = 1 << 30
	}
	l.set(spans)
	return l.out.String()
}

// set sets spans, and ends the line.
func (l *lines) set(spans []span) {
	for _, s := range spans {
		if s.style == hard {
			l.newline()
			continue
		}
		for text := s.text; text != ""; {
			n := wordEnd(text)
			l.word(text[:n], s.style)
			text = text[n:]
		}
	}
	l.newline()
}

// wordEnd measures what cannot be broken at the beginning of a text: spaces, one wide
// character, or a word.
func wordEnd(text string) int {
	first := true
	space := text[0] == ' '
	for i, c := range text {
		switch {
		case (c == ' ') != space:
			return i
		case !space && isWide(c):
			if first {
				return len(string(c)) + trailing(text[len(string(c)):])
			}
			return i
		}
		first = false
	}
	return len(text)
}

// trailing measures what must not begin a line: punctuation, and whatever joins the character
// before it.
func trailing(text string) int {
	for i, c := range text {
		if !strings.ContainsRune("，。、；：？！）》」』】”’,.;:?!)", c) && c != 0xfe0f && c != 0x200d && !(c >= 0x300 && c < 0x370) {
			return i
		}
	}
	return len(text)
}

// isWide reports whether a line may be broken at a character: those of Chinese, Japanese and
// Korean. Emoji are kept together with what joins them.
func isWide(c rune) bool {
	return c >= 0x2e80 && c <= 0xffdc && !(c >= 0xd800 && c < 0xf900) && c != 0xfe0f || c >= 0x20000 && c <= 0x3fffd
}

// lines is text being set.
type lines struct {
	r     *renderer
	p     prefix
	width int

	out   strings.Builder
	line  []span // the line so far
	used  int    // its columns
	join  int    // where the last word begins in line; words of several styles are one
	joinW int
	space bool // the line ends with spaces
}

// word adds a word, or the spaces between two. A word that follows another without a space is
// part of it.
func (l *lines) word(text string, st style) {
	w := TextWidth(text)
	if text[0] == ' ' {
		if l.used > 0 || st&code != 0 {
			l.add(text, st, w)
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
		l.newline()
		l.line, l.used = moved, movedW
	}
	l.add(text, st, w)
	l.space = false
}

func (l *lines) add(text string, st style, w int) {
	l.line = append(l.line, span{text, st})
	l.used += w
}

// newline writes the line, without the spaces at its end.
func (l *lines) newline() {
	for len(l.line) > 0 && strings.TrimRight(l.line[len(l.line)-1].text, " ") == "" {
		l.line = l.line[:len(l.line)-1]
	}
	var b strings.Builder
	for i := 0; i < len(l.line); {
		j, text := i, ""
		for ; j < len(l.line) && l.line[j].style == l.line[i].style; j++ {
			text += l.line[j].text
		}
		b.WriteString(l.r.paint(text, l.line[i].style))
		i = j
	}
	l.out.WriteString(strings.TrimRight(l.p.first+b.String(), " ") + "\n")
	l.p = l.p.next()
	l.line, l.used, l.join, l.joinW, l.space = nil, 0, 0, 0, false
}

// paint sets text off.
func (r *renderer) paint(text string, st style) string {
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
