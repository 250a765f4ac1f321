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

// replies removes the terminal's replies from its input: control strings, such as a reply about a colour, and reports,
// such as the place of the cursor. Another program asked for them, and no person typed them. A reply may arrive in
// pieces. Pastes and the sequences of keys stay whole.
type replies struct {
	held    []byte // the beginning of a sequence or of a character
	inside  bool   // a control string has begun
	payload bool   // the control string has content
	pasting bool   // between the marks of a paste
	tail    []byte // the last bytes of a paste, where the mark of its end may begin
	given   bool   // the held bytes were released because no byte followed
	escaped bool   // Esc was released and no byte came since
}

const (
	// startWait is the time that the beginning of a sequence waits for its rest. After it, a lone Esc is a key.
	startWait = 150 * time.Millisecond
	// restWait is the time that a longer sequence waits for its rest. No person types such a sequence.
	restWait = time.Second

	// maxReport is the largest size of a sequence with parameters. It counts bytes.
	maxReport = 256
)

// readTyped waits for bytes as input.readBytes does, and removes the terminal's replies.
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

// patience returns the longest wait for the rest of a sequence. 0 means that no sequence has begun.
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

// releaseHeld returns the held bytes if they are keys. It drops the beginning of a reply.
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

// typedBytes returns the typed and pasted bytes.
func (r *replies) typedBytes(b []byte) []byte {
	if r.escaped && isLateReply(b) {
		b = append([]byte{esc}, b...) // This is the rest of a reply. Its first byte was taken for the key Esc.
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

// pasteLength returns the number of bytes that belong to a paste. Ctrl-C ends the paste too, because the mark of its
// end may be lost.
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

// measurePart measures the first part of b: a character, a sequence, or a piece of a control string. n is 0 when the
// part needs more bytes. keep means that a person typed the part.
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
	case esc: // Another sequence follows this Esc.
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

// measureContent measures a piece of a control string and notes its end. Ctrl-C ends the string and stays a key.
func (r *replies) measureContent(b []byte, c byte, size int) (n int, keep bool) {
	r.payload = true
	switch {
	case c == '\\', c == 0 && (b[0] == '\a' || b[0] == 0x18 || b[0] == 0x1a):
		r.inside = false
	case c == 0 && b[0] == 3:
		r.inside = false
		return 1, true
	case b[0] == esc: // Another sequence cuts the string.
		r.inside = false
		return r.measurePart(b)
	}
	return size, false
}

// c1 reads a C1 control character. It may have three forms: Esc with a byte, one byte, or a character of UTF-8. c is
// the byte after Esc in the first form, and 0 for any other character.
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

// measureReport measures a sequence with parameters. Its first size bytes begin it. keep means that the sequence is a
// key.
func measureReport(b []byte, size int) (n int, keep bool) {
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

// sevenBit returns a sequence in the form with Esc.
func sevenBit(b []byte) []byte {
	if c, size := c1(b); c == '[' && b[0] != esc {
		return append([]byte{esc, '['}, b[size:]...)
	}
	return b
}

// isLateReply reports whether b is the rest of a reply without its first byte. No person types these bytes at once.
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
