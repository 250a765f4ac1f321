package evidence

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/mod/sumdb/tlog"
)

// ParseHash reads a hash in its one base64 form.
func ParseHash(s string) (tlog.Hash, error) {
	if strings.ContainsAny(s, "\r\n") { // which the decoder skips
		return tlog.Hash{}, errors.New("it is base64 with line ends")
	}
	b, err := base64.StdEncoding.Strict().DecodeString(s)
	if err != nil {
		return tlog.Hash{}, err
	}
	if len(b) != tlog.HashSize {
		return tlog.Hash{}, fmt.Errorf("%d bytes instead of %d", len(b), tlog.HashSize)
	}
	return tlog.Hash(b), nil
}

// FormatHashes writes the hashes of a proof, a line each.
func FormatHashes(list []tlog.Hash) string {
	var b strings.Builder
	for _, h := range list {
		fmt.Fprintln(&b, h)
	}
	return b.String()
}

// maxPath is more hashes than lead to the root of any tree.
const maxPath = 128

// ParseHashes reads lines of a hash each, up to an empty line, and returns what is behind it. The
// error wraps ErrProof.
func ParseHashes(text string) (list []tlog.Hash, rest string, err error) {
	for len(list) <= maxPath {
		line, rest, ok := strings.Cut(text, "\n")
		if !ok {
			break
		}
		if line == "" {
			return list, rest, nil
		}
		h, err := ParseHash(line)
		if err != nil {
			return nil, "", fmt.Errorf("%w: %q is no hash", ErrProof, line)
		}
		list, text = append(list, h), rest
	}
	return nil, "", fmt.Errorf("%w: there is no empty line behind its hashes", ErrProof)
}
