package screen

import (
	"bytes"
	"context"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/chzyer/readline"
)

type typedKind int

const (
	keyNone      typedKind = iota
	keyRune                // a printing character
	typedControl           // a control character, as readline knows it
	keyMeta                // Alt with a character
	keyDelete              // forward
	keyNewline             // a line break in the line
	keyPaste
	keyLines   // several lines that came at once
	keyEscape  // Esc, pressed alone
	keyBackTab // Shift-Tab
)

// key is a keystroke, or a paste as a whole.
type key struct {
	kind    typedKind
	rune    rune
	control byte
	text    string
}

const (

	// burst is more bytes at once than a person types: terminals that do not mark what is pasted
	// are taken at their speed.
	burst = 256
	// burstWait is how long a burst may pause.
	burstWait = 20 * time.Millisecond
)

type decoder struct{ buf []byte }

type readFunc func(ctx context.Context, wait time.Duration) ([]byte, error)

func (d *decoder) next(ctx context.Context, read readFunc) (key, error) {
	for {
		if err := ctx.Err(); err != nil {
			return key{}, err
		}
		if n := textLength(d.buf); n >= burst || several(d.buf[:n]) {
			return d.burst(ctx, read)
		}
		k, n, more := decodeTyped(d.buf)
		if n > 0 {
			d.drop(n)
			if k.kind != keyNone {
				return k, nil
			}
			continue
		}
		if bytes.HasPrefix(d.buf, []byte(pasteBegin)) {
			return d.paste(ctx, read)
		}
		wait := time.Duration(0)
		if more {
			wait = escWait
			if len(d.buf) > 2 && strings.HasPrefix(pasteBegin, string(d.buf)) {
				wait = pasteWait // a slow line; no person types this
			}
		}
		b, err := read(ctx, wait)
		if err != nil {
			return key{}, err
		}
		if len(b) == 0 { // no more of it will come
			alone := string(d.buf) == "\x1b"
			d.drop(len(d.buf))
			if alone {
				return key{kind: keyEscape}, nil
			}
			continue
		}
		d.buf = append(d.buf, b...)
	}
}

// textLength is how many bytes at the front of b are text: no control characters but tabs and the
// ends of lines.
func textLength(b []byte) int {
	i := bytes.IndexFunc(b, func(r rune) bool { return r < ' ' && r != '\t' && r != '\r' && r != '\n' || r == 0x7f })
	if i < 0 {
		return len(b)
	}
	return i
}

// several reports whether text that came at once goes on behind an Enter. A person's Enter
// comes alone, or last; this was pasted, or typed ahead over a slow line, and is not sent
// either way.
func several(b []byte) bool {
	i := bytes.IndexByte(b, readline.CharEnter)
	return i >= 0 && len(bytes.TrimLeft(b[i:], "\r\n")) > 0
}

func (d *decoder) drop(n int) {
	d.buf = d.buf[n:]
	if len(d.buf) == 0 {
		d.buf = nil
	}
}

// paste reads until the end of a bracketed paste is there. Cut off by ctx, it begins anew with
// what it has read.
func (d *decoder) paste(ctx context.Context, read readFunc) (key, error) {
	from := len(pasteBegin)
	for {
		if i := bytes.Index(d.buf[from:], []byte(pasteEnd)); i >= 0 {
			k := key{kind: keyPaste, text: pasted(d.buf[len(pasteBegin) : from+i])}
			d.drop(from + i + len(pasteEnd))
			return k, nil
		}
		from = max(len(pasteBegin), len(d.buf)-len(pasteEnd))
		b, err := read(ctx, 0)
		if err != nil {
			return key{}, err
		}
		d.buf = append(d.buf, b...)
	}
}

// pasted is text as a paste brings it, with the ends of its lines as \n.
func pasted(b []byte) string {
	text := strings.ToValidUTF8(string(b), "\ufffd")
	return strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n")
}

// burst reads what arrives faster than it can be typed, up to a control character, as one key.
func (d *decoder) burst(ctx context.Context, read readFunc) (key, error) {
	n := textLength(d.buf)
	for n == len(d.buf) {
		b, err := read(ctx, burstWait)
		if err != nil {
			return key{}, err
		}
		if len(b) == 0 {
			break
		}
		d.buf = append(d.buf, b...)
		n += textLength(d.buf[n:])
	}
	k := key{kind: keyPaste, text: pasted(d.buf[:n])}
	if n < burst {
		k.kind = keyLines
	}
	d.drop(n)
	return k, nil
}

// decodeTyped reads one key off the front of b; n is 0 if that needs more bytes. With more, they
// come at once or never.
func decodeTyped(b []byte) (k key, n int, more bool) {
	if len(b) == 0 {
		return key{}, 0, false
	}
	switch c := b[0]; {
	case c == 0x1b:
		return decodeTypedEscape(b)
	case c == readline.CharCtrlJ:
		return key{kind: keyNewline}, 1, false
	case c == 0x18: // Ctrl-X
		if len(b) == 1 {
			return key{}, 0, false
		}
		if b[1] == 0x05 { // Ctrl-E
			return key{kind: typedControl, control: markEdit}, 2, false
		}
		return key{}, 1, false
	case c == 0, c == markOp, c == markEdit, c == markCycle, c == 0x1f:
		return key{}, 1, false
	case c < ' ', c == 0x7f:
		return key{kind: typedControl, control: c}, 1, false
	case !utf8.FullRune(b):
		return key{}, 0, true
	}
	r, n := utf8.DecodeRune(b)
	if r == utf8.RuneError && n == 1 || r >= 0x80 && r < 0xa0 || r == 0x2028 || r == 0x2029 || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 {
		return key{}, n, false
	}
	return key{kind: keyRune, rune: r}, n, false
}

// decodeTypedEscape reads the sequences of the keys that are used; the others do nothing.
func decodeTypedEscape(b []byte) (k key, n int, more bool) {
	if len(b) == 1 {
		return key{}, 0, true
	}
	switch c := b[1]; c {
	case '[':
		for i := 2; i < len(b); i++ {
			if b[i] >= 0x40 && b[i] <= 0x7e && !(b[i] == '[' && i == 2) {
				if string(b[:i+1]) == pasteBegin {
					return key{}, 0, false
				}
				return named(string(b[2:i]), b[i]), i + 1, false
			}
			if b[i] < ' ' || b[i] > 0x7e {
				return key{}, i, false
			}
		}
		return key{}, 0, true
	case 'O':
		if len(b) == 2 {
			return key{}, 0, true
		}
		return named("", b[2]), 3, false
	case readline.CharEnter, readline.CharCtrlJ:
		return key{kind: keyNewline}, 2, false
	case 'b', 'f', 'd', readline.CharBackspace:
		return key{kind: keyMeta, control: c}, 2, false
	case 0x1b:
		return key{}, 1, false
	}
	if !utf8.FullRune(b[1:]) {
		return key{}, 0, true
	}
	_, size := utf8.DecodeRune(b[1:])
	return key{}, 1 + size, false
}

// named is the key of a CSI or SS3 sequence.
func named(params string, final byte) key {
	if strings.IndexAny(params, "[?<=>") == 0 || strings.HasSuffix(params, ":3") {
		return key{} // a function key of the Linux console, a reply, or a key that was let go
	}
	word := strings.HasSuffix(params, ";5") || strings.HasSuffix(params, ";3") // with Ctrl or Alt
	control := func(c byte) key { return key{kind: typedControl, control: c} }
	switch final {
	case 'A':
		return control(readline.CharPrev)
	case 'B':
		return control(readline.CharNext)
	case 'C':
		if word {
			return key{kind: keyMeta, control: 'f'}
		}
		return control(readline.CharForward)
	case 'D':
		if word {
			return key{kind: keyMeta, control: 'b'}
		}
		return control(readline.CharBackward)
	case 'Z':
		return key{kind: keyBackTab}
	case 'H':
		return control(readline.CharLineStart)
	case 'F':
		return control(readline.CharLineEnd)
	case '~':
		switch params {
		case "1", "7":
			return control(readline.CharLineStart)
		case "4", "8":
			return control(readline.CharLineEnd)
		case "3":
			return key{kind: keyDelete}
		}
	}
	return key{}
}
