package model

import (
	"compress/gzip"
	"compress/zlib"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// encodings returns the encodings of a body, in the order in which they were applied. No request asks for an
// encoding, but some gateways compress nevertheless.
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

// decoders are the supported encodings.
var decoders = map[string]func(io.Reader) (io.Reader, error){
	"gzip":    func(r io.Reader) (io.Reader, error) { return gzip.NewReader(r) },
	"x-gzip":  func(r io.Reader) (io.Reader, error) { return gzip.NewReader(r) },
	"deflate": func(r io.Reader) (io.Reader, error) { return zlib.NewReader(r) },
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
		inner, err := decoders[name](d.from)
		if err != nil {
			d.err = fmt.Errorf("the body is not in the encoding %q: %w", name, err)
			return 0, d.err
		}
		d.from, d.encodings = inner, d.encodings[:n-1]
	}
	return d.from.Read(p)
}
