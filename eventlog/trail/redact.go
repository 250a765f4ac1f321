package trail

import (
	"strings"
)

const (
	redacted = "[redacted]"
	maskTail = "…" + redacted
	maxPass  = 8
)

// Redact returns s with what looks like a secret masked: known kinds of keys
// wherever they stand, and the value of whatever is named like a secret, in
// key=value, in headers, in command lines, in URLs and in JSON, also JSON inside a
// JSON string. A mask keeps the recognisable start: sk-ant-…[redacted]. Counters
// such as input_tokens, ids, hashes and base64 stay as they are.
//
// Redact(Redact(s)) is Redact(s). A line of valid JSON stays valid, valid UTF-8
// too. A text without secrets is returned as it is, without an allocation.
//
// It errs on the side of masking, and is no guarantee: a password in the middle of
// a sentence looks like a word.
func Redact(s string) string {
	for range maxPass { // the second pass changes nothing but in odd cases
		masked := pass(s)
		if masked == s {
			return s
		}
		s = masked
	}
	return redacted // never seen; better no text than half a mask
}

func pass(s string) string {
	s = maskPEM(s)
	s = maskNamed(s)
	s = maskURLs(s)
	s = maskPrefixed(s)
	for _, p := range patterns {
		if p.present(s) {
			s = p.mask(s)
		}
	}
	return s
}

// maskOf returns the mask for a whole value, with as much of its start as says what
// it was. The mask of a mask is the mask.
func maskOf(v string) string {
	for _, k := range known {
		if strings.HasPrefix(v, k.prefix) {
			return k.prefix + maskTail
		}
	}
	if n := schemeOf(v); n > 0 {
		return v[:n] + maskTail
	}
	return redacted
}

// schemes of the Authorization header.
var schemes = []string{"Bearer", "Basic", "Token", "Digest", "Negotiate", "AWS4-HMAC-SHA256"}

// schemeOf returns the length of the scheme and the blank that v begins with.
func schemeOf(v string) int {
	for _, scheme := range schemes {
		if n := len(scheme); len(v) > n && strings.EqualFold(v[:n], scheme) && v[n] == ' ' {
			return n + 1
		}
	}
	return 0
}

// edits collects replacements in a text from left to right.
type edits struct {
	s    string
	out  strings.Builder
	done int
}

// replace puts mask in the place of s[from:to]; what was replaced before lies left
// of it.
func (e *edits) replace(from, to int, mask string) {
	if from < e.done || e.s[from:to] == mask {
		return
	}
	e.out.WriteString(e.s[e.done:from])
	e.out.WriteString(mask)
	e.done = to
}

func (e *edits) String() string {
	if e.done == 0 {
		return e.s
	}
	e.out.WriteString(e.s[e.done:])
	return e.out.String()
}
