package screen

import (
	"io"
	"strings"

	"github.com/chzyer/readline"
	"github.com/mattn/go-runewidth"
)

const maxLine = 1024 // in characters; more typed characters are dropped

// typedLine is the text that a person types during [Keys.Line].
type typedLine struct {
	text []rune
	echo func(string)
}

// typeKey applies a key to the text. The result "done" means that the line has ended.
func (l *typedLine) typeKey(k Key) (done bool, err error) {
	switch {
	case k.isEnter():
		return true, nil
	case k.IsControl(CtrlC):
		return true, ErrInterrupted
	case k.Kind == KeyEsc:
		return true, ErrEscaped
	case k.IsControl(CtrlZ):
		return true, ErrSuspended
	case k.IsControl(readline.CharDelete) && len(l.text) == 0:
		return true, io.EOF
	case k.isBackspace():
		l.eraseCharacter()
	case k.IsControl(readline.CharCtrlU):
		for len(l.text) > 0 {
			l.eraseCharacter()
		}
	case k.Kind == KeyRune && len(l.text) < maxLine:
		l.text = append(l.text, k.Rune)
		l.echo(string(k.Rune))
	}
	return false, nil
}

// eraseCharacter removes the last character with its combining marks.
func (l *typedLine) eraseCharacter() {
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
