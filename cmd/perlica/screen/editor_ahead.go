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

// aheadLine is text that a person typed while there was no prompt.
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

// AheadEvents are the functions that [Editor.Ahead] calls.
type AheadEvents struct {
	Interrupt func()            // for Ctrl-C
	Escape    func()            // for Esc; nil means that Esc does nothing
	Typed     func(text string) // for each change of the text, which the editor does not show
	// Enter receives the line with the full text of its pastes. The typed text is empty afterwards. If Enter is nil,
	// the key Enter adds a line break.
	Enter func(line string)
	// Back is called for the key Up if the typed text is empty. It returns a new text. If Back is nil or returns "",
	// the text stays empty.
	Back func() string
}

// Ahead collects the text that a person types until ctx ends. The next prompt contains this text. Ahead fails with
// io.EOF if the terminal is closed, and otherwise with ctx's error.
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

// errNone ends Early, because no typed bytes are left.
var errNone = errors.New("line editor: nothing more was typed")

// Early collects the text that was typed before the editor existed. The first prompt contains this text.
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
			return // The first prompt reports a closed terminal.
		}
		e.ahead.typeKey(e, k)
	}
}

// aheadKey handles a key that was pressed while there was no prompt.
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

// enterLine passes the typed line to on.Enter. A line that ends with a backslash gets a line break instead.
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

// Quiet returns the time since the last byte was typed or pasted.
func (e *Editor) Quiet() time.Duration {
	if last := e.typed.Load(); last != nil {
		return time.Since(*last)
	}
	return math.MaxInt64
}

// takeAhead returns the text that was typed while there was no prompt, and forgets it. It removes line breaks at the
// end, because the person pressed Enter there to send the text.
func (e *Editor) takeAhead() string {
	text := strings.TrimRight(string(e.ahead.text), "\n")
	e.ahead.text = nil
	return text
}
