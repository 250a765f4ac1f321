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

// replies removes the terminal's replies from its input. Replies are control strings, such as the value of a colour,
// and reports, such as the place of the cursor. Another program asked for them, and no person typed them. A reply
// may arrive in parts. Pastes and the sequences of keys are not changed.
type replies struct {
	held    []byte // bytes that wait for more: the beginning of a sequence or of a character
	inside  bool   // within a control string
	payload bool   // true if the control string has content
	pasting bool   // between the marks of a paste
	tail    []byte // the last bytes of a paste, because the mark of its end may begin there
	given   bool   // true after the bytes in held were returned, because the rest did not come
	escaped bool   // true after Esc was returned as a key, until the next byte
}

const (
	// startWait is the time to wait for the rest after the beginning of a sequence. After this time, a single Esc is
	// a key.
	startWait = 150 * time.Millisecond
	// restWait is the time to wait for the rest of a longer sequence. No person types such a sequence.
	restWait = time.Second

	// maxReport is the largest size of a sequence with parameters, in bytes.
	maxReport = 256
)

// readTyped waits for bytes, as input.readBytes does, and removes the terminal's replies from them.
func (k *Keys) readTyped(ctx context.Context, wait time.Duration) ([]byte, error) {
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
		b, err := k.in.readBytes(ctx, most)
		switch {
		case err == nil:
			if b = r.typedBytes(b); len(b) > 0 {
				return b, nil
			}
		case giveUp && errors.Is(err, errNothing), len(r.held) > 0 && errors.Is(err, io.EOF):
			if b = r.releaseHeld(); len(b) > 0 {
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

// patience returns the longest time to wait for the rest of a sequence. 0 means that no sequence has begun.
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

// releaseHeld returns the bytes in held if they are keys. It drops them if they are the beginning of a reply.
func (r *replies) releaseHeld() []byte {
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

// typedBytes returns the bytes of b that a person typed or pasted.
func (r *replies) typedBytes(b []byte) []byte {
	if r.escaped && isLateReply(b) {
		// These bytes are the rest of a reply. Its first byte, Esc, was returned as a key before.
		b = append([]byte{esc}, b...)
	}
	r.escaped = r.escaped && len(b) == 0
	b = append(r.held, b...)
	r.held = nil
	var out []byte
	for len(b) > 0 {
		if r.pasting {
			n := r.pasteLength(b)
			out, b = append(out, b[:n]...), b[n:]
			continue
		}
		n, keep := r.measurePart(b)
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

// pasteLength returns the number of bytes of b that belong to the paste. Ctrl-C ends the paste, too, because the
// mark of its end may be lost.
func (r *replies) pasteLength(b []byte) int {
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

// measurePart returns the length of the first part of b: a character, a sequence, or a part of a control string. n is 0
// if more bytes are needed. The result "keep" means that a person typed this part.
func (r *replies) measurePart(b []byte) (n int, keep bool) {
	c, size := c1(b)
	switch {
	case size == 0:
		return 0, false
	case r.inside:
		return r.measureContent(b, c, size)
	case c == 0:
		return size, true
	}
	switch c {
	case esc: // Another sequence may follow this Esc.
		if len(bytes.Trim(b, "\x1b")) == 0 {
			return 0, false
		}
		return 1, true
	case ']', 'P', '_', '^', 'X':
		r.inside, r.payload = true, false
		return size, false
	case '[':
		return measureReport(b, size)
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

// measureContent returns the length of the first part of a control string and notices the end of the string. Ctrl-C
// also ends the string, and is kept as a key.
func (r *replies) measureContent(b []byte, c byte, size int) (n int, keep bool) {
	r.payload = true
	switch {
	case c == '\\', c == 0 && (b[0] == '\a' || b[0] == 0x18 || b[0] == 0x1a):
		r.inside = false
	case c == 0 && b[0] == 3:
		r.inside = false
		return 1, true
	case b[0] == esc: // A new sequence ends the control string.
		r.inside = false
		return r.measurePart(b)
	}
	return size, false
}

// c1 reads a C1 control character, which has three encodings: Esc with a byte, one byte, or a character of UTF-8. c
// is the byte after Esc in the first encoding. For any other character c is 0.
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

// measureReport returns the length of a sequence with parameters. size is the number of bytes before the parameters.
// The result "keep" means that the sequence is a key.
func measureReport(b []byte, size int) (n int, keep bool) {
	for i := size; i < len(b); i++ {
		switch c := b[i]; {
		case c == '[' && i == size: // a function key of the Linux console
		case c == 'M' && i == size: // a click of the mouse, after which three bytes follow
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

// sevenBit returns a sequence in the encoding that begins with Esc.
func sevenBit(b []byte) []byte {
	if c, size := c1(b); c == '[' && b[0] != esc {
		return append([]byte{esc, '['}, b[size:]...)
	}
	return b
}

// isLateReply reports whether b is a reply without its first byte. No person types these bytes at once.
func isLateReply(b []byte) bool {
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
