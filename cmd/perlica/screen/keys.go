package screen

import (
	"bytes"
	"context"
	"errors"
	"io"
	"time"

	"github.com/chzyer/readline"
)

// ErrInterrupted is returned by [Keys.Line] when Ctrl-C was pressed, ErrEscaped when Esc,
// ErrSuspended when Ctrl-Z was.
var (
	ErrInterrupted = errors.New("terminal: interrupted")
	ErrEscaped     = errors.New("terminal: escaped")
	ErrSuspended   = errors.New("terminal: suspended")
)

// escDelay is the longest pause within a text that comes at once.
const escDelay = 50 * time.Millisecond

// errNothing is returned by input when the time was up.
var errNothing = errors.New("terminal: nothing typed")

// input is where keys come from.
type input interface {
	// read waits for bytes, at most for wait unless that is 0, and returns
	// errNothing, ctx.Err(), or io.EOF when the terminal is gone.
	read(ctx context.Context, wait time.Duration) ([]byte, error)
	// discard drops what was typed and not read.
	discard() error
	// echo shows what is typed.
	echo(s string)
}

// Keys reads keystrokes while a terminal is in raw mode: see [TTY.Session]. It is for
// one goroutine.
type Keys struct {
	in      input
	replies replies
	buf     []byte
	pasting bool // Next is within a paste that the terminal has marked
}

// Discard drops everything typed so far. Call it when a question has been drawn, so
// that only who has seen it can answer it.
func (k *Keys) Discard() error {
	k.buf, k.pasting, k.replies = nil, false, replies{}
	return k.in.discard()
}

// Next waits for a keystroke. It returns ctx.Err() when ctx ends first, and io.EOF
// when the terminal is gone. Keys it has no kind for are skipped, sequences such as
// arrow keys as a whole, and so are marked pastes: what is pasted was written for another
// place. Ctrl-C is never skipped: the end of a paste may be lost.
func (k *Keys) Next(ctx context.Context) (Key, error) {
	for {
		key, err := k.decodeNext(ctx)
		if err != nil {
			return key, err
		}
		k.pasting = k.pasting && !key.IsControl(CtrlC)
		if key.answers() && !k.pasting {
			return key, nil
		}
	}
}

// answers reports whether Next returns the key.
func (k Key) answers() bool {
	return k.Kind == KeyRune || k.Kind == KeyEsc || k.isEnter() || k.isBackspace() ||
		k.IsControl(CtrlC) || k.IsControl(CtrlZ) || k.IsControl(readline.CharDelete)
}

// Alone reports whether the key that Next returned was pressed by itself, Enter aside, and not
// a part of a text that came at once. Such a text is dropped, up to a Ctrl-C in it.
func (k *Keys) Alone(ctx context.Context) (bool, error) {
	if len(bytes.TrimLeft(k.buf, "\r\n")) == 0 {
		return true, nil
	}
	for {
		if i := bytes.IndexByte(k.buf, 3); i >= 0 {
			k.buf = k.buf[i:]
			return false, nil
		}
		b, err := k.read(ctx, escDelay)
		if errors.Is(err, errNothing) {
			b, err = nil, nil
		}
		if k.buf = b; len(b) == 0 || err != nil {
			return false, err
		}
	}
}

// Pending reports whether anything but Enter is typed within a time, or was typed and not read yet. Next returns
// it. Enter alone is dropped.
func (k *Keys) Pending(ctx context.Context, within time.Duration) (bool, error) {
	for end := time.Now().Add(within); ; {
		if k.buf = bytes.TrimLeft(k.buf, "\r\n"); len(k.buf) > 0 {
			return true, nil
		}
		left := time.Until(end)
		if left <= 0 {
			return false, nil
		}
		b, err := k.read(ctx, left)
		switch {
		case errors.Is(err, errNothing):
			return false, nil
		case err != nil:
			return false, err
		}
		k.buf = b
	}
}

// Read waits for typed bytes and returns them as they came, without the terminal's replies. With a wait that is not 0 it returns nothing when that has passed.
func (k *Keys) Read(ctx context.Context, wait time.Duration) ([]byte, error) {
	if b := k.buf; len(b) > 0 {
		k.buf = nil
		return b, nil
	}
	b, err := k.read(ctx, wait)
	if errors.Is(err, errNothing) {
		return nil, nil
	}
	return b, err
}

// Unread gives back what Read returned and nobody used: it is read next.
func (k *Keys) Unread(b []byte) { k.buf = append(b[:len(b):len(b)], k.buf...) }

// Line reads a line, shows it as it is typed and returns it without its end. The cursor stays
// where the line ends: somebody else may have gone on below it.
// Backspace and Ctrl-U edit it. It returns [ErrInterrupted], [ErrEscaped],
// [ErrSuspended], io.EOF (Ctrl-D on an empty line, or the terminal is gone) or
// ctx.Err(), with no text.
func (k *Keys) Line(ctx context.Context) (string, error) {
	l := line{echo: k.in.echo}
	for {
		key, err := k.decodeNext(ctx)
		if err == nil {
			var done bool
			if done, err = l.key(key); !done {
				continue
			}
		}
		if err != nil {
			return "", err
		}
		return string(l.text), nil
	}
}

// decodeNext waits for the next key that has an effect, within a paste too.
func (k *Keys) decodeNext(ctx context.Context) (Key, error) {
	for {
		if err := ctx.Err(); err != nil {
			return Key{}, err
		}
		key, n, sequence := decodeKey(k.buf)
		if n > 0 {
			k.buf = k.buf[n:]
			switch key.Kind {
			case keyPasteBegin:
				k.pasting = true
			case keyPasteEnd:
				k.pasting = false
			case keyNone:
			default:
				return key, nil
			}
			continue
		}
		var wait time.Duration
		if sequence {
			wait = escDelay
		}
		b, err := k.read(ctx, wait)
		switch {
		case err == nil:
			k.buf = append(k.buf, b...)
		case errors.Is(err, errNothing), errors.Is(err, io.EOF) && len(k.buf) > 0:
			// The rest of the sequence will not come. A lone Esc is a key, everything else is noise.
			alone := len(k.buf) == 1 && k.buf[0] == esc
			k.buf = nil
			if alone {
				return Key{Kind: KeyEsc}, nil
			}
		default:
			return Key{}, err
		}
	}
}
