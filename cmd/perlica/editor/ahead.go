package editor

import (
	"context"
	"math"
	"strings"
	"time"
	"unicode"

	"github.com/chzyer/readline"
)

// line is text that is typed where there is no prompt.
type line struct{ text []rune }

func (l *line) key(e *Editor, k key) {
	switch {
	case k.kind == keyRune:
		l.text = append(l.text, k.rune)
	case k.kind == keyNewline, k.kind == keyControl && k.control == readline.CharEnter:
		l.text = append(l.text, '\n')
	case k.kind == keyPaste:
		l.text = append(l.text, []rune(e.fold(k.text))...)
	case k.kind == keyLines:
		l.text = append(l.text, []rune(visible(k.text))...)
	case k.kind != keyControl:
	case k.control == readline.CharBackspace, k.control == readline.CharCtrlH:
		if n := len(l.text); n > 0 {
			e.mu.Lock()
			l.text = l.text[:n-max(e.label(l.text), 1)]
			e.mu.Unlock()
		}
	case k.control == readline.CharCtrlU:
		l.text = nil
	case k.control == readline.CharCtrlW:
		s := strings.TrimRightFunc(string(l.text), unicode.IsSpace)
		l.text = []rune(s[:strings.LastIndexFunc(s, unicode.IsSpace)+1])
	}
}

// Events are what happens while there is no prompt.
type Events struct {
	Interrupt func()            // Ctrl-C
	Typed     func(text string) // the line has changed; it is not shown by the editor
}

// Ahead collects what is typed until ctx ends; it appears in the next prompt. It returns
// io.EOF when the terminal is gone, else ctx's error.
func (e *Editor) Ahead(ctx context.Context, on Events) error {
	read := func(ctx context.Context, wait time.Duration) ([]byte, error) {
		b, err := e.keys.Read(ctx, wait)
		if len(b) > 0 {
			now := time.Now()
			e.typed.Store(&now)
		}
		return b, err
	}
	for {
		k, err := e.dec.next(ctx, read)
		if err != nil {
			return err
		}
		switch {
		case k.kind == keyControl && k.control == readline.CharInterrupt:
			on.Interrupt()
		case k.kind == keyControl && k.control == readline.CharCtrlZ:
			if e.o.Suspend != nil {
				e.o.Suspend()
			}
		default:
			e.ahead.key(e, k)
			on.Typed(string(e.ahead.text))
		}
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
