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

// aheadLine is text that is typed where there is no prompt.
type aheadLine struct{ text []rune }

func (l *aheadLine) key(e *Editor, k Key) {
	switch {
	case k.Kind == KeyRune:
		l.text = append(l.text, k.Rune)
	case k.Kind == keyNewline, k.IsControl(readline.CharEnter):
		l.text = append(l.text, '\n')
	case k.Kind == keyPaste:
		l.text = append(l.text, []rune(e.paste(k.text))...)
	case k.Kind == keyLines:
		l.text = append(l.text, []rune(visible(k.text))...)
	case k.Kind != keyControl:
	case k.Rune == readline.CharBackspace, k.Rune == readline.CharCtrlH:
		if n := len(l.text); n > 0 {
			e.mu.Lock()
			l.text = l.text[:n-max(e.label(l.text), 1)]
			e.mu.Unlock()
		}
	case k.Rune == readline.CharCtrlU:
		l.text = nil
	case k.Rune == readline.CharCtrlW:
		s := strings.TrimRightFunc(string(l.text), unicode.IsSpace)
		l.text = []rune(s[:strings.LastIndexFunc(s, unicode.IsSpace)+1])
	}
}

// AheadEvents are what happens while there is no prompt.
type AheadEvents struct {
	Interrupt func()            // Ctrl-C
	Escape    func()            // Esc; may be nil
	Typed     func(text string) // the line has changed; it is not shown by the editor
	// Enter takes the line, with pastes unfolded; it is then empty again. Nil: Enter breaks the line.
	Enter func(line string)
	// Back returns what stands in an empty line after Up, if anything; may be nil.
	Back func() string
}

// Ahead collects what is typed until ctx ends; it appears in the next prompt. It returns
// io.EOF when the terminal is gone, else ctx's error.
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

// Early takes what was typed before there was an editor; it appears in the first prompt.
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
			return // a terminal that is gone says so to the first prompt
		}
		e.ahead.key(e, k)
	}
}

// aheadKey does what a key means while there is no prompt.
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
		e.enter(on)
	case control == readline.CharPrev && on.Back != nil && len(e.ahead.text) == 0:
		if text := on.Back(); len(text) > maxInline {
			e.ahead.text = []rune(e.fold(text))
		} else {
			e.ahead.text = []rune(visible(text))
		}
	default:
		e.ahead.key(e, k)
	}
	on.Typed(string(e.ahead.text))
}

// enter hands over the line that is typed, unless it goes on in the next one.
func (e *Editor) enter(on AheadEvents) {
	text := string(e.ahead.text)
	if continues(text) {
		e.ahead.text = []rune(strings.TrimSuffix(text, `\`) + "\n")
		return
	}
	e.ahead.text = nil
	if strings.TrimSpace(text) != "" {
		e.remember(text)
		on.Enter(e.unfold(text))
	}
}

// Quiet is how long nothing was typed for the next prompt, not even a part of a paste.
func (e *Editor) Quiet() time.Duration {
	if last := e.typed.Load(); last != nil {
		return time.Since(*last)
	}
	return math.MaxInt64
}

// takeAhead returns what was typed while there was no prompt. Enter at its end was meant to
// send it, when nothing could be sent.
func (e *Editor) takeAhead() string {
	text := strings.TrimRight(string(e.ahead.text), "\n")
	e.ahead.text = nil
	return text
}
