// Package screen draws on a terminal and reads its keys.
//
// The parts:
//   - [Sanitize] and [SafeWriter] make an agent's text harmless: no terminal obeys it.
//   - [Styles] colour text. [TextWidth] and [TextRows] measure it.
//   - [TTY] is the terminal from which [Keys] reads keystrokes. [TTY.Session] restores the terminal's mode at its end.
//   - [StatusLine] is the line at the bottom that shows the progress. [LiveText] stands above it and may still change.
//   - [Editor] is the line in which a person writes to an agent. [Pick] and [ShowPages] show lists.
//   - [MarkdownStream] and [RenderMarkdown] show Markdown.
//
// The package promises:
//   - A terminal obeys nothing that an agent writes.
//   - A session ends with the terminal in its old mode, also after a panic.
//   - A key that was pressed before a question appeared does not answer the question.
//   - Only Enter at the prompt sends a line. Pasted text stays in the line.
//   - The line on the screen is the line that is sent. A large paste stands in it as one word.
//
// The package decides nothing: the caller knows the meaning of a key and of a line. The package reads no environment
// variable and opens no standard stream. The caller passes files and getenv.
package screen

import (
	"io"
	"os"
	"strings"

	"github.com/chzyer/readline"
	"github.com/mattn/go-runewidth"
	"golang.org/x/term"
)

// IsTerminal reports whether f is a terminal.
func IsTerminal(f *os.File) bool {
	return f != nil && term.IsTerminal(int(f.Fd()))
}

// TerminalWidth returns the columns of the terminal f. It returns 0 if f is not a terminal or does not know its size.
func TerminalWidth(f *os.File) int {
	w, _ := size(f)
	return w
}

// TerminalHeight returns the rows of the terminal f. It returns 0 if f is not a terminal or does not know its size.
func TerminalHeight(f *os.File) int {
	_, h := size(f)
	return h
}

func size(f *os.File) (w, h int) {
	if f == nil {
		return 0, 0
	}
	w, h, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0, 0
	}
	return w, h
}

// StatusWidth returns a width function for [NewStatusLine]. It returns nil if f cannot show a status line: f is not a
// terminal or cannot move its cursor.
func StatusWidth(f *os.File, getenv func(string) string) func() int {
	if !IsTerminal(f) || getenv("TERM") == "dumb" {
		return nil
	}
	return func() int { return TerminalWidth(f) }
}

// Styles colour text. The zero value leaves text alone.
type Styles struct{ on bool }

// NewStyles decides about colours. NO_COLOR turns them off, and CLICOLOR_FORCE (other than 0) turns them on. Otherwise
// a terminal has colours unless it is dumb or CLICOLOR is 0.
func NewStyles(getenv func(string) string, terminal bool) Styles {
	force := getenv("CLICOLOR_FORCE")
	switch {
	case getenv("NO_COLOR") != "":
		return Styles{}
	case force != "" && force != "0":
		return Styles{on: true}
	}
	return Styles{on: terminal && getenv("TERM") != "dumb" && getenv("CLICOLOR") != "0"}
}

// On reports whether text is coloured.
func (s Styles) On() bool { return s.on }

// Bold returns bold text.
func (s Styles) Bold(text string) string { return s.wrap("\x1b[1m", text, "\x1b[22m") }

// Dim returns dim text.
func (s Styles) Dim(text string) string { return s.wrap("\x1b[2m", text, "\x1b[22m") }

// Italic returns italic text.
func (s Styles) Italic(text string) string { return s.wrap("\x1b[3m", text, "\x1b[23m") }

// Strike returns text that is struck through.
func (s Styles) Strike(text string) string { return s.wrap("\x1b[9m", text, "\x1b[29m") }

// Red returns red text.
func (s Styles) Red(text string) string { return s.wrap("\x1b[31m", text, "\x1b[39m") }

// Green returns green text.
func (s Styles) Green(text string) string { return s.wrap("\x1b[32m", text, "\x1b[39m") }

// Yellow returns yellow text.
func (s Styles) Yellow(text string) string { return s.wrap("\x1b[33m", text, "\x1b[39m") }

// Cyan returns cyan text.
func (s Styles) Cyan(text string) string { return s.wrap("\x1b[36m", text, "\x1b[39m") }

func (s Styles) wrap(begin, text, end string) string {
	if !s.on || text == "" {
		return text
	}
	return begin + text + end
}

const maxLine = 1024 // runes; further keys are dropped

// line is the typed text of [Keys.Line].
type typedLine struct {
	text []rune
	echo func(string)
}

// typeKey applies a keystroke. done means that the line has ended.
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
