package model

import (
	"bufio"
	"compress/gzip"
	"compress/zlib"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// encodings returns the encodings of a body, in the order in which they were applied. No request asks for an
// encoding, but some gateways still compress the response.
func encodings(header http.Header) (list []string) {
	for _, values := range header["Content-Encoding"] {
		for name := range strings.SplitSeq(values, ",") {
			if name = strings.ToLower(strings.TrimSpace(name)); name != "" && name != "identity" {
				list = append(list, name)
			}
		}
	}
	return list
}

// decoders are the supported encodings. Some gateways name an encoding and do not encode. A body that does not begin
// with the bytes of the named encoding stays unchanged.
var decoders = map[string]func(*bufio.Reader) (io.Reader, error){"gzip": gunzip, "x-gzip": gunzip, "deflate": inflate}

func gunzip(r *bufio.Reader) (io.Reader, error) {
	if b, _ := r.Peek(2); string(b) != "\x1f\x8b" { // a later Read reports the error
		return r, nil
	}
	return gzip.NewReader(r)
}

func inflate(r *bufio.Reader) (io.Reader, error) {
	b, _ := r.Peek(2) // a later Read reports the error
	if len(b) < 2 || b[0]&0xf != 8 || (int(b[0])<<8|int(b[1]))%31 != 0 {
		return r, nil
	}
	return zlib.NewReader(r)
}

// unreadable returns the first unsupported encoding of the body, or "".
func unreadable(header http.Header) string {
	for _, name := range encodings(header) {
		if decoders[name] == nil {
			return name
		}
	}
	return ""
}

// decoded returns the body without its encodings. A body with an unsupported encoding stays unchanged.
func decoded(resp *http.Response) io.ReadCloser {
	list := encodings(resp.Header)
	if len(list) == 0 || unreadable(resp.Header) != "" {
		return resp.Body
	}
	return &decodingBody{ReadCloser: resp.Body, encodings: list}
}

// decodingBody decodes a body. It starts at the first Read, because the beginning of the body may be late.
type decodingBody struct {
	io.ReadCloser
	encodings []string // not yet decoded
	from      io.Reader
	err       error // the error of starting a decoder
}

func (d *decodingBody) Read(p []byte) (int, error) {
	if d.err != nil {
		return 0, d.err
	}
	if d.from == nil {
		d.from = d.ReadCloser
	}
	for n := len(d.encodings); n > 0; n = len(d.encodings) {
		name := d.encodings[n-1]
		inner, err := decoders[name](bufio.NewReader(d.from))
		if err != nil {
			d.err = fmt.Errorf("the body is not in the encoding %q: %w", name, err)
			return 0, d.err
		}
		d.from, d.encodings = inner, d.encodings[:n-1]
	}
	return d.from.Read(p)
}
