package redact

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// Redactor masks the same secrets as [Text], and also the matches of the user's own patterns. A nil Redactor has no
// patterns. It is safe for concurrent use.
type Redactor struct{ own []*regexp.Regexp }

// CheckPattern returns an error if a pattern of the user cannot be used.
func CheckPattern(pattern string) error {
	re, err := regexp.Compile(pattern)
	switch {
	case err != nil:
		return err
	case re.MatchString(""):
		return errors.New("it matches where there is nothing")
	}
	return nil
}

// New returns a Redactor with these regular expressions of package regexp. The Redactor masks the first group of each
// match. If the expression has no group, it masks the whole match.
func New(patterns ...string) (*Redactor, error) {
	r := &Redactor{}
	for _, p := range patterns {
		if err := CheckPattern(p); err != nil {
			return nil, fmt.Errorf("redact: pattern %q: %w", p, err)
		}
		r.own = append(r.own, regexp.MustCompile(p))
	}
	return r, nil
}

// Text returns s masked. Text(Text(s)) is Text(s).
func (r *Redactor) Text(s string) string {
	for range maxPass { // After a mask, another pattern may match.
		masked := r.ownText(Text(s))
		if masked == s {
			return s
		}
		s = masked
	}
	return redacted
}

// ownText applies the user's patterns.
func (r *Redactor) ownText(s string) string {
	if r == nil {
		return s
	}
	t := &text{s: s}
	for _, re := range r.own {
		e := &edits{text: t}
		for _, m := range re.FindAllStringSubmatchIndex(t.s, -1) {
			from, to := m[0], m[1]
			if len(m) > 2 && m[2] >= 0 {
				from, to = m[2], m[3]
			}
			if from < to && !inMask(t.s, from, to) {
				e.putMask(from, to, redacted)
			}
		}
		t.applyEdits(e)
	}
	return t.s
}

// inMask reports whether s[from:to] is inside a mask. A pattern may match the word "redacted".
func inMask(s string, from, to int) bool {
	if to-from > len(redacted) {
		return false
	}
	start := max(0, to-len(redacted))
	i := strings.Index(s[start:min(len(s), from+len(redacted))], redacted)
	return i >= 0 && start+i <= from && to <= start+i+len(redacted)
}

// Payload returns b masked. If b has no secret, it returns b itself. JSON stays valid. In JSON, the user's patterns
// are applied to each decoded string, but not to names and numbers. Any other payload is masked as a text.
func (r *Redactor) Payload(b []byte) []byte {
	if len(b) == 0 {
		return b
	}
	if !json.Valid(b) {
		return r.bytesOf(b, r.Text(string(b)))
	}
	out := r.bytesOf(b, Text(string(b)))
	if !json.Valid(out) { // This was never seen.
		return eachString(b, r.Text)
	}
	if r == nil || len(r.own) == 0 {
		return out
	}
	return eachString(out, r.Text)
}

// Changes reports whether Payload would mask a part of b.
func (r *Redactor) Changes(b []byte) bool { return !bytes.Equal(r.Payload(b), b) }

// bytesOf returns b if b equals text, otherwise text as bytes.
func (r *Redactor) bytesOf(b []byte, text string) []byte {
	if text == string(b) {
		return b
	}
	return []byte(text)
}

// eachString applies the function f to each string of valid JSON. It does not change the names of members.
func eachString(b []byte, f func(string) string) []byte {
	var out []byte
	done := 0
	for at := 0; at < len(b); {
		if b[at] != '"' {
			at++
			continue
		}
		end := stringEnd(b, at)
		if !isName(b, end) {
			if s, ok := replaced(b[at:end], f); ok {
				out = append(append(out, b[done:at]...), s...)
				done = end
			}
		}
		at = end
	}
	if done == 0 {
		return b
	}
	return append(out, b[done:]...)
}

// stringEnd returns the offset of the end of the string that begins at b[at].
func stringEnd(b []byte, at int) int {
	for i := at + 1; i < len(b); i++ {
		switch b[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(b)
}

// isName reports whether the string that ends at b[at] is the name of a member.
func isName(b []byte, at int) bool {
	rest := bytes.TrimLeft(b[at:], " \t\r\n")
	return len(rest) > 0 && rest[0] == ':'
}

// replaced applies the function f to a string literal. ok is false if f does not change the string.
func replaced(literal []byte, f func(string) string) (out []byte, ok bool) {
	var s string
	if json.Unmarshal(literal, &s) != nil {
		return nil, false
	}
	masked := f(s)
	if masked == s {
		return nil, false
	}
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if enc.Encode(masked) != nil {
		return nil, false // a string can always be encoded
	}
	return bytes.TrimRight(buf.Bytes(), "\n"), true
}
