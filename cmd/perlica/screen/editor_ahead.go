package screen

import (
	"cmp"
	"context"
	"errors"
	"math"
	"strings"
	"time"
	"unicode"

	"github.com/chzyer/readline"
)

// aheadLine is the text that is typed without a prompt.
type aheadLine struct{ text []rune }

func (l *aheadLine) typeKey(e *Editor, k Key) {
	switch {
	case k.Kind == KeyRune:
		l.text = append(l.text, k.Rune)
	case k.Kind == keyNewline, k.IsControl(readline.CharEnter):
		l.text = append(l.text, '\n')
	case k.Kind == keyPaste:
		l.text = append(l.text, []rune(e.pastedLabel(k.text))...)
	case k.Kind == keyLines:
		l.text = append(l.text, []rune(visible(k.text))...)
	case k.Kind != keyControl:
	case k.Rune == readline.CharBackspace, k.Rune == readline.CharCtrlH:
		if n := len(l.text); n > 0 {
			e.mu.Lock()
			l.text = l.text[:n-max(e.labelLength(l.text), 1)]
			e.mu.Unlock()
		}
	case k.Rune == readline.CharCtrlU:
		l.text = nil
	case k.Rune == readline.CharCtrlW:
		s := strings.TrimRightFunc(string(l.text), unicode.IsSpace)
		l.text = []rune(s[:strings.LastIndexFunc(s, unicode.IsSpace)+1])
	}
}

// AheadEvents are the calls of [Editor.Ahead].
type AheadEvents struct {
	Interrupt func()            // Ctrl-C
	Escape    func()            // Esc; nil means that Esc does nothing
	Typed     func(text string) // the text has changed; the editor does not show it
	// Enter takes the line with the full text of its pastes, and the line is empty again. A nil Enter adds a line
	// break.
	Enter func(line string)
	// Back returns a text for an empty line when Up is pressed. "" and a nil Back leave the line empty.
	Back func() string
}

// Ahead collects the typed text until ctx ends. The text stands in the next prompt. Ahead fails with io.EOF when the
// terminal is gone, and otherwise with ctx's error.
func (e *Editor) Ahead(ctx context.Context, on AheadEvents) error {
	read := func(ctx context.Context, wait time.Duration) ([]byte, error) {
		b, err := e.keys.Read(ctx, wait)
		if len(b) > 0 {
			now := time.Now()
			e.typed.Store(&now)
		}
		return b, err
	}
	for {
		k, err := e.typing.nextKey(ctx, read)
		if err != nil {
			return err
		}
		e.aheadKey(k, on)
	}
}

// errNone ends Early.
var errNone = errors.New("line editor: nothing more was typed")

// Early collects the text that was typed before the editor existed. The text stands in the first prompt.
func (e *Editor) Early(ctx context.Context) {
	read := func(ctx context.Context, wait time.Duration) ([]byte, error) {
		b, err := e.keys.Read(ctx, cmp.Or(wait, time.Millisecond))
		if len(b) == 0 && err == nil && wait == 0 {
			err = errNone
		}
		return b, err
	}
	for {
		k, err := e.typing.nextKey(ctx, read)
		if err != nil {
			return // The first prompt reports a terminal that is gone.
		}
		e.ahead.typeKey(e, k)
	}
}

// aheadKey handles a key that was pressed without a prompt.
func (e *Editor) aheadKey(k Key, on AheadEvents) {
	var control rune
	if k.Kind == keyControl {
		control = k.Rune
	}
	switch {
	case control == readline.CharInterrupt:
		on.Interrupt()
		return
	case k.Kind == KeyEsc:
		if on.Escape != nil {
			on.Escape()
		}
		return
	case control == readline.CharCtrlZ:
		if e.o.Suspend != nil {
			e.o.Suspend()
		}
		return
	case control == readline.CharEnter && on.Enter != nil:
		e.enterLine(on)
	case control == readline.CharPrev && on.Back != nil && len(e.ahead.text) == 0:
		if text := on.Back(); len(text) > maxInline {
			e.ahead.text = []rune(e.foldText(text))
		} else {
			e.ahead.text = []rune(visible(text))
		}
	default:
		e.ahead.typeKey(e, k)
	}
	on.Typed(string(e.ahead.text))
}

// enterLine gives the typed line to on.Enter. A line that ends with a backslash continues.
func (e *Editor) enterLine(on AheadEvents) {
	text := string(e.ahead.text)
	if continues(text) {
		e.ahead.text = []rune(strings.TrimSuffix(text, `\`) + "\n")
		return
	}
	e.ahead.text = nil
	if strings.TrimSpace(text) != "" {
		e.rememberLine(text)
		on.Enter(e.unfoldLabels(text))
	}
}

// Quiet returns the time since the last typed byte, also within a paste.
func (e *Editor) Quiet() time.Duration {
	if last := e.typed.Load(); last != nil {
		return time.Since(*last)
	}
	return math.MaxInt64
}

// takeAhead returns the text that was typed without a prompt. It drops line breaks at the end: there, Enter was pressed
// to send the text.
func (e *Editor) takeAhead() string {
	text := strings.TrimRight(string(e.ahead.text), "\n")
	e.ahead.text = nil
	return text
}
