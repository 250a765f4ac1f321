package model

import (
	"bytes"
	"io"
	"net/http"
	"strings"
)

// hidden is a key. Its methods replace the key wherever it occurs in a response, because a server may echo the key. The
// response is recorded and shown.
type hidden string

// minHidden is the length from which a key is replaced, in bytes. A shorter placeholder key for a server
// without keys may be a word of the answer.
const minHidden = 16

// keyMark replaces the key.
const keyMark = "[key]"

// isShort reports whether the key is too short to be replaced.
func (h hidden) isShort() bool { return len(h) < minHidden }

// text returns the text without the key.
func (h hidden) text(text string) string {
	if h.isShort() {
		return text
	}
	return strings.ReplaceAll(text, string(h), keyMark)
}

// header returns the header without the key.
func (h hidden) header(header http.Header) http.Header {
	out := http.Header{}
	for name, values := range header {
		for _, v := range values {
			out[name] = append(out[name], h.text(v))
		}
	}
	return out
}

// body returns the body without the key.
func (h hidden) body(body io.ReadCloser) io.ReadCloser {
	if h.isShort() {
		return body
	}
	return &hidingReader{ReadCloser: body, key: []byte(h), buffer: make([]byte, 16<<10)}
}

// hidingReader replaces a key in the data that is read. It holds bytes back only while they may be the
// beginning of the key.
type hidingReader struct {
	io.ReadCloser
	key    []byte
	buffer []byte
	held   []byte // may be the beginning of the key
	out    []byte // ready to be read
	err    error  // the error that ended the body
}

func (r *hidingReader) Read(p []byte) (int, error) {
	for len(r.out) == 0 && r.err == nil {
		n, err := r.ReadCloser.Read(r.buffer)
		r.err = err
		data := bytes.ReplaceAll(append(r.held, r.buffer[:n]...), r.key, []byte(keyMark))
		cut := len(data)
		if err == nil {
			cut -= r.keyPrefix(data)
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

// keyPrefix returns the number of bytes at the end of data that may be the beginning of the key.
func (r *hidingReader) keyPrefix(data []byte) int {
	for n := min(len(r.key)-1, len(data)); n > 0; n-- {
		if bytes.HasSuffix(data, r.key[:n]) {
			return n
		}
	}
	return 0
}
