package model

import (
	"bytes"
	"io"
	"net/http"
	"strings"
)

// hidden is a key that is looked for in what comes back, and replaced: a server may echo it, and what
// comes back is recorded and shown.
type hidden string

// minHidden is how long a key must be to be looked for, in bytes. A shorter one, as servers without keys
// have them, may be a word of the answer.
const minHidden = 16

// keyMark stands where the key was.
const keyMark = "[key]"

// none reports whether there is nothing to look for.
func (h hidden) none() bool { return len(h) < minHidden }

// text is a text without the key.
func (h hidden) text(text string) string {
	if h.none() {
		return text
	}
	return strings.ReplaceAll(text, string(h), keyMark)
}

// header is a header without the key.
func (h hidden) header(header http.Header) http.Header {
	out := http.Header{}
	for name, values := range header {
		for _, v := range values {
			out[name] = append(out[name], h.text(v))
		}
	}
	return out
}

// body is a body without the key.
func (h hidden) body(body io.ReadCloser) io.ReadCloser {
	if h.none() {
		return body
	}
	return &hidingReader{ReadCloser: body, key: []byte(h), buffer: make([]byte, 16<<10)}
}

// hidingReader replaces a key in what is read. Bytes are held back only while they may be the beginning
// of the key.
type hidingReader struct {
	io.ReadCloser
	key    []byte
	buffer []byte
	held   []byte // may begin the key
	out    []byte // can be read
	err    error  // what the body ended with
}

func (r *hidingReader) Read(p []byte) (int, error) {
	for len(r.out) == 0 && r.err == nil {
		n, err := r.ReadCloser.Read(r.buffer)
		r.err = err
		data := bytes.ReplaceAll(append(r.held, r.buffer[:n]...), r.key, []byte(keyMark))
		cut := len(data)
		if err == nil {
			cut -= r.begun(data)
		}
		r.out, r.held = data[:cut], bytes.Clone(data[cut:])
	}
	n := copy(p, r.out)
	r.out = r.out[n:]
	if n == 0 && len(p) > 0 {
		return 0, r.err
	}
	return n, nil
}

// begun is how many bytes at the end of data begin the key.
func (r *hidingReader) begun(data []byte) int {
	for n := min(len(r.key)-1, len(data)); n > 0; n-- {
		if bytes.HasSuffix(data, r.key[:n]) {
			return n
		}
	}
	return 0
}
