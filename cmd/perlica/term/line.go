package term

import (
	"io"
	"strings"

	"github.com/mattn/go-runewidth"
)

const maxLine = 1024 // runes; what is typed beyond is dropped

// line is the text being typed.
type line struct {
	text []rune
	echo func(string)
}

// key applies a keystroke; done is true when the line has ended.
func (l *line) key(k Key) (done bool, err error) {
	const ctrlU = 0x15
	switch {
	case k.Kind == KeyEnter:
		return true, nil
	case k.Kind == KeyCtrlC:
		return true, ErrInterrupted
	case k.Kind == KeyEsc:
		return true, ErrEscaped
	case k.Kind == KeyCtrlZ:
		return true, ErrSuspended
	case k.Kind == KeyCtrlD && len(l.text) == 0:
		return true, io.EOF
	case k.Kind == KeyBackspace:
		l.erase()
	case k.Kind == keyControl && k.Rune == ctrlU:
		for len(l.text) > 0 {
			l.erase()
		}
	case k.Kind == KeyRune && len(l.text) < maxLine:
		l.text = append(l.text, k.Rune)
		l.echo(string(k.Rune))
	}
	return false, nil
}

// erase removes the last character together with its combining marks.
func (l *line) erase() {
	c := runewidth.Condition{StrictEmojiNeutral: true}
	for len(l.text) > 0 {
		r := l.text[len(l.text)-1]
		l.text = l.text[:len(l.text)-1]
		if w := c.RuneWidth(r); w > 0 {
			l.echo(strings.Repeat("\b \b", w))
			return
		}
	}
}
