package screen

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"time"
	"unicode/utf8"
)

// replies takes the terminal's replies out of the bytes that it sends: control strings such as the answer to a query
// for a colour, and reports such as the position of the cursor. Another program asked for them, and nobody typed them.
// A reply may come in pieces. The bytes of a paste and the sequences of keys stay whole.
type replies struct {
	held    []byte // the beginning of a sequence or of a character
	inside  bool   // a control string has begun
	payload bool   // the control string has content
	pasting bool   // between the marks of a paste
	tail    []byte // the last bytes of a paste, where its end may begin
	given   bool   // the last bytes were given out because nothing followed them
	escaped bool   // Esc was given out, and nothing came since
}

const (
	// startWait is how long the beginning of a sequence waits for its rest. A lone Esc is a key after that time.
	startWait = 150 * time.Millisecond
	// restWait is how long a sequence waits that no person types.
	restWait = time.Second

	// maxReport is the most bytes of a sequence with parameters.
	maxReport = 256
)

// read waits for bytes as input.read does, and drops the terminal's replies.
func (k *Keys) read(ctx context.Context, wait time.Duration) ([]byte, error) {
	r := &k.replies
	if r.given {
		r.given = false
		if wait > 0 {
			return nil, errNothing
		}
	}
	for {
		most, ours := wait, r.patience()
		giveUp := ours > 0 && (wait == 0 || ours <= wait)
		if giveUp {
			most = ours
		}
		b, err := k.in.read(ctx, most)
		switch {
		case err == nil:
			if b = r.filter(b); len(b) > 0 {
				return b, nil
			}
		case giveUp && errors.Is(err, errNothing), len(r.held) > 0 && errors.Is(err, io.EOF):
			if b = r.giveUp(); len(b) > 0 {
				return b, nil
			}
			if wait > 0 || errors.Is(err, io.EOF) {
				return nil, err
			}
		default:
			return nil, err
		}
	}
}

// patience returns how long the rest of a sequence may take. It is 0 when no sequence has begun.
func (r *replies) patience() time.Duration {
	switch {
	case r.inside && !r.payload:
		return startWait
	case r.inside, len(r.held) > 2 && r.held[1] == '[':
		return restWait
	case len(r.held) > 0:
		return startWait
	}
	return 0
}

// giveUp returns the bytes that are keys when nothing follows them, and drops the beginning of a reply.
func (r *replies) giveUp() []byte {
	b := r.held
	r.held = nil
	if r.inside {
		r.inside = false
		return nil
	}
	r.escaped = len(bytes.Trim(b, "\x1b")) == 0
	r.given = r.escaped || b[0] != esc
	if !r.given {
		return nil
	}
	return b
}

// filter returns the bytes that are typed or pasted.
func (r *replies) filter(b []byte) []byte {
	if r.escaped && late(b) {
		b = append([]byte{esc}, b...) // The rest of a reply whose first byte passed for the key Esc.
	}
	r.escaped = r.escaped && len(b) == 0
	b = append(r.held, b...)
	r.held = nil
	var out []byte
	for len(b) > 0 {
		if r.pasting {
			n := r.paste(b)
			out, b = append(out, b[:n]...), b[n:]
			continue
		}
		n, keep := r.control(b)
		if n == 0 {
			r.held = bytes.Clone(b)
			break
		}
		if keep {
			out = append(out, sevenBit(b[:n])...)
		}
		r.pasting = string(b[:n]) == pasteBegin
		b = b[n:]
	}
	return out
}

// paste returns how many bytes belong to a paste. Ctrl-C ends it too, because the mark of its end may be lost.
func (r *replies) paste(b []byte) int {
	for i, c := range b {
		r.tail = append(r.tail, c)
		if c == 3 || bytes.HasSuffix(r.tail, []byte(pasteEnd)) {
			r.pasting, r.tail = false, nil
			return i + 1
		}
		r.tail = r.tail[max(0, len(r.tail)-len(pasteEnd)):]
	}
	return len(b)
}

// control measures the first part of b: a character, a sequence, or a piece of a control string. It returns 0 when the
// part needs more bytes, and whether the part is typed.
func (r *replies) control(b []byte) (n int, keep bool) {
	c, size := c1(b)
	switch {
	case size == 0:
		return 0, false
	case r.inside:
		return r.content(b, c, size)
	case c == 0:
		return size, true
	}
	switch c {
	case esc: // a sequence follows that begins with Esc again
		if len(bytes.Trim(b, "\x1b")) == 0 {
			return 0, false
		}
		return 1, true
	case ']', 'P', '_', '^', 'X':
		r.inside, r.payload = true, false
		return size, false
	case '[':
		return report(b, size)
	case 'O':
		if len(b) <= size {
			return 0, false
		}
		if b[size] < ' ' {
			return size, false
		}
		return size + 1, true
	case '\\':
		return size, false
	}
	if !utf8.FullRune(b[1:]) {
		return 0, false
	}
	_, letter := utf8.DecodeRune(b[1:])
	return 1 + letter, true
}

// content measures a piece of a control string and notes its end. Ctrl-C ends a string too and stays a key.
func (r *replies) content(b []byte, c byte, size int) (n int, keep bool) {
	r.payload = true
	switch {
	case c == '\\', c == 0 && (b[0] == '\a' || b[0] == 0x18 || b[0] == 0x1a):
		r.inside = false
	case c == 0 && b[0] == 3:
		r.inside = false
		return 1, true
	case b[0] == esc: // Another sequence cuts the string.
		r.inside = false
		return r.control(b)
	}
	return size, false
}

// c1 reads a control character of the upper set: as Esc with a byte, as a byte, or as a character of UTF-8. It returns
// the byte that follows Esc in the first form, or 0 for another character, and the size of both.
func c1(b []byte) (c byte, size int) {
	switch {
	case b[0] == esc && len(b) == 1:
		return 0, 0
	case b[0] == esc:
		return b[1], 2
	case !utf8.FullRune(b):
		return 0, 0
	}
	letter, size := utf8.DecodeRune(b)
	if letter == utf8.RuneError && size == 1 {
		letter = rune(b[0])
	}
	if 0x80 <= letter && letter < 0xa0 && strings.ContainsRune("]P_^X[\\", letter-0x40) {
		return byte(letter - 0x40), size
	}
	return 0, size
}

// report measures a sequence with parameters, whose first size bytes begin it. Only the sequences of keys are typed.
func report(b []byte, size int) (n int, keep bool) {
	for i := size; i < len(b); i++ {
		switch c := b[i]; {
		case c == '[' && i == size: // a function key of the Linux console
		case c == 'M' && i == size: // a click of the mouse: three bytes follow
			if len(b) < i+4 {
				return 0, false
			}
			return i + 4, false
		case c >= 0x40 && c <= 0x7e:
			return i + 1, strings.IndexByte("ABCDEFHPQSZ~", c) >= 0 && strings.IndexByte("<=>?", b[size]) < 0
		case c < ' ' || c > 0x7e || i > maxReport:
			return i, false
		}
	}
	return 0, false
}

// sevenBit returns a sequence in the form that begins with Esc.
func sevenBit(b []byte) []byte {
	if c, size := c1(b); c == '[' && b[0] != esc {
		return append([]byte{esc, '['}, b[size:]...)
	}
	return b
}

// late reports whether b can only be the rest of a reply without its first byte: no person types it at once.
func late(b []byte) bool {
	if len(b) < 2 {
		return false
	}
	digit := b[1] >= '0' && b[1] <= '9'
	switch b[0] {
	case ']':
		return digit
	case 'P':
		return digit || strings.IndexByte("!>$|", b[1]) >= 0
	case '_':
		return b[1] == 'G'
	case '[':
		return digit || strings.IndexByte("<=>?", b[1]) >= 0
	}
	return false
}
