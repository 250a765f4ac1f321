package screen

import (
	"bytes"
	"context"
	"strings"
	"time"

	"github.com/chzyer/readline"
)

const (
	// burst is a number of bytes that no person types at once. Some terminals do not mark a paste, and the reader
	// recognises such a paste by its speed.
	burst = 256
	// burstWait is the longest pause between the bytes of a burst.
	burstWait = 20 * time.Millisecond
)

// typingReader reads keys for a line of text. It returns a paste as one key, and also a text that arrives at once.
type typingReader struct{ buf []byte }

// readFunc reads typed bytes. It waits at most for the time wait. 0 means no limit. After this time it returns no
// bytes.
type readFunc func(ctx context.Context, wait time.Duration) ([]byte, error)

// nextKey waits for the next key with an effect.
func (d *typingReader) nextKey(ctx context.Context, read readFunc) (Key, error) {
	for {
		if err := ctx.Err(); err != nil {
			return Key{}, err
		}
		if n := textLength(d.buf); n >= burst || goesOn(d.buf[:n]) {
			return d.readBurst(ctx, read)
		}
		k, n, sequence := decodeKey(d.buf)
		if k.Kind == keyPasteBegin {
			return d.readPaste(ctx, read)
		}
		if n > 0 {
			d.drop(n)
			switch {
			case k.IsControl(readline.CharCtrlJ):
				return Key{Kind: keyNewline}, nil
			// A terminal sends Alt with a key as Esc followed by the key, so this KeyEsc is skipped.
			case k.Kind != keyNone && k.Kind != keyPasteEnd && k.Kind != KeyEsc:
				return k, nil
			}
			continue
		}
		var wait time.Duration
		if sequence {
			wait = escDelay
		}
		b, err := read(ctx, wait)
		if err != nil {
			return Key{}, err
		}
		if len(b) == 0 { // The rest of the sequence will not arrive.
			alone := string(d.buf) == "\x1b"
			d.drop(len(d.buf))
			if alone {
				return Key{Kind: KeyEsc}, nil
			}
			continue
		}
		d.buf = append(d.buf, b...)
	}
}

// textLength returns the number of bytes of text at the beginning of b. A control character is not text, except tab
// and line end.
func textLength(b []byte) int {
	i := bytes.IndexFunc(b, func(r rune) bool { return r < ' ' && r != '\t' && r != '\r' && r != '\n' || r == 0x7f })
	if i < 0 {
		return len(b)
	}
	return i
}

// goesOn reports whether text follows an Enter in b. A person presses Enter alone or last. If text follows, it was
// pasted or typed while the terminal was slow, and the line is not sent.
func goesOn(b []byte) bool {
	i := bytes.IndexByte(b, readline.CharEnter)
	return i >= 0 && len(bytes.TrimLeft(b[i:], "\r\n")) > 0
}

func (d *typingReader) drop(n int) {
	d.buf = d.buf[n:]
	if len(d.buf) == 0 {
		d.buf = nil
	}
}

// readPaste reads until the mark at the end of the paste. If ctx ends first, the bytes that were read stay for the
// next call.
func (d *typingReader) readPaste(ctx context.Context, read readFunc) (Key, error) {
	from := len(pasteBegin)
	for {
		if i := bytes.Index(d.buf[from:], []byte(pasteEnd)); i >= 0 {
			k := Key{Kind: keyPaste, text: pastedText(d.buf[len(pasteBegin) : from+i])}
			d.drop(from + i + len(pasteEnd))
			return k, nil
		}
		from = max(len(pasteBegin), len(d.buf)-len(pasteEnd))
		b, err := read(ctx, 0)
		if err != nil {
			return Key{}, err
		}
		d.buf = append(d.buf, b...)
	}
}

// pastedText returns the text of a paste with \n at the end of its lines.
func pastedText(b []byte) string {
	text := strings.ToValidUTF8(string(b), "\ufffd")
	return strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n")
}

// readBurst reads text that arrives faster than a person types. It returns the text up to a control character as one
// key.
func (d *typingReader) readBurst(ctx context.Context, read readFunc) (Key, error) {
	n := textLength(d.buf)
	for n == len(d.buf) {
		b, err := read(ctx, burstWait)
		if err != nil {
			return Key{}, err
		}
		if len(b) == 0 {
			break
		}
		d.buf = append(d.buf, b...)
		n += textLength(d.buf[n:])
	}
	k := Key{Kind: keyPaste, text: pastedText(d.buf[:n])}
	if n < burst {
		k.Kind = keyLines
	}
	d.drop(n)
	return k, nil
}
