package screen

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// Sanitize makes each character in s visible that a terminal would obey. Control characters become pictures such as
// ␛. C1 controls and bidirectional overrides become escapes such as \u009b. Bytes that are not UTF-8 become escapes
// such as \xff. Newline, tab and \r\n stay. Letters of any script, emoji and combining marks stay, too.
func Sanitize(s string) string {
	if !strings.ContainsFunc(s, func(r rune) bool { return r == utf8.RuneError || !harmless(r) }) {
		return s
	}
	out, rest := sanitize(nil, []byte(s))
	return string(flush(out, rest))
}

// SafeWriter sanitizes a stream like [Sanitize]. The writes may divide the stream anywhere. Only one goroutine may
// use it.
type SafeWriter struct {
	w       io.Writer
	pending []byte // a \r, or the first bytes of a character, from the end of the last write
	buf     []byte
	last    byte // the last byte that was written; 0 before the first
}

// NewSafeWriter returns a SafeWriter that writes to w.
func NewSafeWriter(w io.Writer) *SafeWriter { return &SafeWriter{w: w} }

// Write sanitizes p and writes it. It keeps back at most three bytes at the end, until the next Write or Close.
func (w *SafeWriter) Write(p []byte) (int, error) {
	in := p
	if len(w.pending) > 0 {
		in = append(w.pending, p...)
	}
	out, rest := sanitize(w.buf[:0], in)
	w.pending = append([]byte(nil), rest...)
	w.buf = out[:0]
	if err := w.writeOut(out); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Close writes the bytes that Write has kept back. It adds a newline if the text does not end with one. It does not
// close the underlying writer, and the SafeWriter may be used afterwards.
func (w *SafeWriter) Close() error {
	out := flush(w.buf[:0], w.pending)
	w.pending = nil
	if len(out) > 0 {
		w.last = out[len(out)-1]
	}
	if w.last != 0 && w.last != '\n' {
		out = append(out, '\n')
	}
	return w.writeOut(out)
}

func (w *SafeWriter) writeOut(out []byte) error {
	if len(out) == 0 {
		return nil
	}
	if _, err := w.w.Write(out); err != nil {
		return err
	}
	w.last = out[len(out)-1]
	return nil
}

// sanitize appends the sanitized bytes of p to out. The result "rest" has the bytes at the end that can be judged
// only together with the next bytes.
func sanitize(out, p []byte) (done, rest []byte) {
	for i := 0; i < len(p); {
		c := p[i]
		switch {
		case c == '\r' && i+1 == len(p):
			return out, p[i:]
		case c == '\r' && p[i+1] == '\n':
			out = append(out, '\r', '\n')
			i += 2
			continue
		case c < utf8.RuneSelf:
			out = appendRune(out, rune(c))
			i++
			continue
		}
		r, n := utf8.DecodeRune(p[i:])
		if r == utf8.RuneError && n == 1 {
			if !utf8.FullRune(p[i:]) {
				return out, p[i:]
			}
			out = fmt.Appendf(out, `\x%02x`, c)
		} else {
			out = appendRune(out, r)
		}
		i += n
	}
	return out, nil
}

// flush appends bytes that sanitize has kept back. It is called at the end of the text.
func flush(out, rest []byte) []byte {
	for _, c := range rest {
		if c < utf8.RuneSelf {
			out = appendRune(out, rune(c))
		} else {
			out = fmt.Appendf(out, `\x%02x`, c)
		}
	}
	return out
}

func appendRune(out []byte, r rune) []byte {
	switch {
	case harmless(r):
		return utf8.AppendRune(out, r)
	case r < ' ':
		return utf8.AppendRune(out, '␀'+r)
	case r == 0x7f:
		return utf8.AppendRune(out, '␡')
	}
	return fmt.Appendf(out, `\u%04x`, r)
}

// harmless reports whether a terminal only shows r. The caller handles \r\n, so a \r is not harmless here.
func harmless(r rune) bool {
	switch {
	case r == '\n' || r == '\t':
		return true
	case r < ' ', r >= 0x7f && r <= 0x9f: // control characters: C0, DEL and C1
		return false
	case r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069: // bidirectional overrides and isolates
		return false
	}
	return true
}
