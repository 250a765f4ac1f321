package screen

import (
	"bytes"
	"context"
	"errors"
	"io"
	"time"

	"github.com/chzyer/readline"
)

// ErrInterrupted, ErrEscaped and ErrSuspended are the errors of [Keys.Line] after Ctrl-C, Esc and Ctrl-Z.
// [Editor.Line] and [Pick] fail with ErrInterrupted, too.
var (
	ErrInterrupted = errors.New("terminal: interrupted")
	ErrEscaped     = errors.New("terminal: escaped")
	ErrSuspended   = errors.New("terminal: suspended")
)

// escDelay is the longest pause between two bytes of a text that arrives at once.
const escDelay = 50 * time.Millisecond

// errNothing is the error of readBytes if no byte arrived in time.
var errNothing = errors.New("terminal: nothing typed")

// input is a source of typed bytes.
type input interface {
	// readBytes waits for bytes, but not longer than wait. 0 means no limit. It fails with errNothing, with
	// ctx.Err(), or with io.EOF if the terminal is closed.
	readBytes(ctx context.Context, wait time.Duration) ([]byte, error)
	// discardTyped drops the typed bytes that nobody has read.
	discardTyped() error
	// echoText shows typed text.
	echoText(s string)
}

// Keys reads keys while a terminal is in raw mode, see [TTY.Session]. Only one goroutine may use it.
type Keys struct {
	in      input
	replies replies
	buf     []byte
	pasting bool // true between the marks of a paste
}

// Discard drops all typed bytes. A caller uses it after it has drawn a question, so that a key from before the
// question does not answer it.
func (k *Keys) Discard() error {
	k.buf, k.pasting, k.replies = nil, false, replies{}
	return k.in.discardTyped()
}

// Next waits for a key that can answer a question. It fails with ctx.Err(), or with io.EOF if the terminal is
// closed. Next skips other keys, such as arrow keys, and pastes between marks. It does not skip Ctrl-C in a paste,
// because the mark at the end of the paste may be lost.
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

// answers reports whether the key can answer a question, so that Next returns it.
func (k Key) answers() bool {
	return k.Kind == KeyRune || k.Kind == KeyEsc || k.isEnter() || k.isBackspace() ||
		k.IsControl(CtrlC) || k.IsControl(CtrlZ) || k.IsControl(readline.CharDelete)
}

// Alone reports whether the last key of Next arrived alone, or only with Enter. Otherwise the key belongs to a text
// that arrived at once. In this case Alone drops the text, but not a Ctrl-C in it and the bytes after the Ctrl-C.
func (k *Keys) Alone(ctx context.Context) (bool, error) {
	if len(bytes.TrimLeft(k.buf, "\r\n")) == 0 {
		return true, nil
	}
	for {
		if i := bytes.IndexByte(k.buf, 3); i >= 0 {
			k.buf = k.buf[i:]
			return false, nil
		}
		b, err := k.readTyped(ctx, escDelay)
		if errors.Is(err, errNothing) {
			b, err = nil, nil
		}
		if k.buf = b; len(b) == 0 || err != nil {
			return false, err
		}
	}
}

// Pending reports whether a byte other than Enter is typed. It waits for such a byte, but not longer than the
// parameter "within" says. A byte that was typed earlier and not read counts, too. The bytes stay for Next, but
// Pending drops Enter.
func (k *Keys) Pending(ctx context.Context, within time.Duration) (bool, error) {
	for end := time.Now().Add(within); ; {
		if k.buf = bytes.TrimLeft(k.buf, "\r\n"); len(k.buf) > 0 {
			return true, nil
		}
		left := time.Until(end)
		if left <= 0 {
			return false, nil
		}
		b, err := k.readTyped(ctx, left)
		switch {
		case errors.Is(err, errNothing):
			return false, nil
		case err != nil:
			return false, err
		}
		k.buf = b
	}
}

// Read waits for typed bytes and returns them without the terminal's replies. If "wait" is not 0, Read returns no bytes
// after this time.
func (k *Keys) Read(ctx context.Context, wait time.Duration) ([]byte, error) {
	if b := k.buf; len(b) > 0 {
		k.buf = nil
		return b, nil
	}
	b, err := k.readTyped(ctx, wait)
	if errors.Is(err, errNothing) {
		return nil, nil
	}
	return b, err
}

// Unread puts bytes back that Read has returned. The next call reads them first.
func (k *Keys) Unread(b []byte) { k.buf = append(b[:len(b):len(b)], k.buf...) }

// Line reads a line and returns it without its end. It shows the line while the person types. Backspace and Ctrl-U
// edit the line. At the end the cursor stays at the end of the line.
//
// Line fails with [ErrInterrupted], [ErrEscaped], [ErrSuspended], io.EOF or ctx.Err(). io.EOF means Ctrl-D on an
// empty line, or that the terminal is closed. With an error, Line returns no text.
func (k *Keys) Line(ctx context.Context) (string, error) {
	l := typedLine{echo: k.in.echoText}
	for {
		key, err := k.decodeNext(ctx)
		if err == nil {
			var done bool
			if done, err = l.typeKey(key); !done {
				continue
			}
		}
		if err != nil {
			return "", err
		}
		return string(l.text), nil
	}
}

// decodeNext waits for the next key with an effect. It returns the keys of a paste, too.
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
		b, err := k.readTyped(ctx, wait)
		switch {
		case err == nil:
			k.buf = append(k.buf, b...)
		case errors.Is(err, errNothing), errors.Is(err, io.EOF) && len(k.buf) > 0:
			// The rest of the sequence will not arrive. A single Esc is the key Esc. All other bytes are noise.
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
