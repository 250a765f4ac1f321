package screen

import (
	"bytes"
	"context"
	"errors"
	"io"
	"time"
	"unicode"
	"unicode/utf8"
)

// keyKind says what was pressed.
type keyKind int

const (
	KeyRune keyKind = iota // a printing character, in Key.Rune
	keyEnter
	KeyEsc // Esc alone; arrow and function keys are ignored
	keyBackspace
	KeyCtrlC
	keyCtrlD
	KeyCtrlZ
	keyControl // any other control character; seen by Line only
)

// Key is one keystroke.
type Key struct {
	Kind keyKind
	Rune rune
}

// Digit returns the value of a decimal digit of any script: 3, ３, ٣.
func (k Key) Digit() (int, bool) {
	if k.Kind != KeyRune || !unicode.Is(unicode.Nd, k.Rune) {
		return 0, false
	}
	// Decimal digits stand in runs of ten that begin with zero.
	for _, r := range unicode.Nd.R16 {
		if rune(r.Lo) <= k.Rune && k.Rune <= rune(r.Hi) {
			return int(k.Rune-rune(r.Lo)) % 10, true
		}
	}
	for _, r := range unicode.Nd.R32 {
		if rune(r.Lo) <= k.Rune && k.Rune <= rune(r.Hi) {
			return int(k.Rune-rune(r.Lo)) % 10, true
		}
	}
	return 0, false
}

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
		key, err := k.next(ctx)
		if err != nil {
			return key, err
		}
		k.pasting = k.pasting && key.Kind != KeyCtrlC
		if key.Kind != keyControl && !k.pasting {
			return key, nil
		}
	}
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
		key, err := k.next(ctx)
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

func (k *Keys) next(ctx context.Context) (Key, error) {
	for {
		if err := ctx.Err(); err != nil {
			return Key{}, err
		}
		key, n, state := decode(k.buf)
		if state == complete {
			k.buf = k.buf[n:]
			return key, nil
		}
		if state == ignored {
			switch string(k.buf[:n]) {
			case pasteBegin:
				k.pasting = true
			case pasteEnd:
				k.pasting = false
			}
			k.buf = k.buf[n:]
			continue
		}
		var wait time.Duration
		if len(k.buf) > 0 {
			wait = escDelay
		}
		b, err := k.read(ctx, wait)
		switch {
		case err == nil:
			k.buf = append(k.buf, b...)
		case errors.Is(err, errNothing), errors.Is(err, io.EOF) && len(k.buf) > 0:
			// No more of it will come. A lone Esc is a key, the rest is noise.
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

const (
	esc = 0x1b

	pasteBegin = "\x1b[200~"
	pasteEnd   = "\x1b[201~"
)

type decoded int

const (
	partial decoded = iota
	complete
	ignored
)

// decode reads one key off the front of b, which took n bytes.
func decode(b []byte) (key Key, n int, state decoded) {
	if len(b) == 0 {
		return key, 0, partial
	}
	switch c := b[0]; {
	case c == esc:
		return decodeEscape(b)
	case c == '\r' || c == '\n':
		return Key{Kind: keyEnter}, 1, complete
	case c == 0x7f || c == '\b':
		return Key{Kind: keyBackspace}, 1, complete
	case c == 3:
		return Key{Kind: KeyCtrlC}, 1, complete
	case c == 4:
		return Key{Kind: keyCtrlD}, 1, complete
	case c == 0x1a:
		return Key{Kind: KeyCtrlZ}, 1, complete
	case c < ' ':
		return Key{Kind: keyControl, Rune: rune(c)}, 1, complete
	case !utf8.FullRune(b):
		return key, 0, partial
	}
	r, n := utf8.DecodeRune(b)
	if r == utf8.RuneError && n == 1 || !harmless(r) {
		return key, n, ignored
	}
	return Key{Kind: KeyRune, Rune: r}, n, complete
}

// decodeEscape measures an escape sequence. Alt with a letter is one too: it must
// not count as the letter.
func decodeEscape(b []byte) (key Key, n int, state decoded) {
	if len(b) == 1 {
		return key, 0, partial
	}
	switch c := b[1]; c {
	case esc:
		return Key{Kind: KeyEsc}, 1, complete
	case '[', 'O': // CSI, SS3: parameters, then a letter
		for i := 2; i < len(b); i++ {
			switch {
			case b[i] == '[' && i == 2: // function keys of the Linux console
			case b[i] >= 0x40 && b[i] <= 0x7e:
				return key, i + 1, ignored
			case b[i] < ' ' || b[i] > 0x7e:
				return key, i, ignored
			}
		}
		return key, 0, partial
	}
	if !utf8.FullRune(b[1:]) {
		return key, 0, partial
	}
	_, size := utf8.DecodeRune(b[1:])
	return key, 1 + size, ignored
}
