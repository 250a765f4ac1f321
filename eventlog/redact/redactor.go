package redact

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// Redactor masks what looks like a secret, as [Text] does, and what matches patterns of
// one's own. A nil one has none of those. It is safe for concurrent use.
type Redactor struct{ own []*regexp.Regexp }

// CheckPattern says what is wrong with a pattern of one's own, or nothing.
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

// New returns a Redactor with regular expressions as package regexp has them. Of what
// one matches its first group is masked, or all of it where it has none.
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
	for range maxPass { // a mask can make room for another pattern
		masked := r.ownText(Text(s))
		if masked == s {
			return s
		}
		s = masked
	}
	return redacted
}

// ownText applies one's own patterns.
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
				e.put(from, to, redacted)
			}
		}
		t.apply(e)
	}
	return t.s
}

// inMask reports whether s[from:to] lies within a mask: "redacted" may match, too.
func inMask(s string, from, to int) bool {
	if to-from > len(redacted) {
		return false
	}
	start := max(0, to-len(redacted))
	i := strings.Index(s[start:min(len(s), from+len(redacted))], redacted)
	return i >= 0 && start+i <= from && to <= start+i+len(redacted)
}

// Payload returns b masked, and b itself if there is nothing to mask. JSON stays valid: in it
// one's own patterns are applied to each string as it reads, but not to names and numbers.
// Anything else is a text.
func (r *Redactor) Payload(b []byte) []byte {
	if len(b) == 0 {
		return b
	}
	if !json.Valid(b) {
		return r.changed(b, r.Text(string(b)))
	}
	out := r.changed(b, Text(string(b)))
	if !json.Valid(out) { // never seen
		return eachString(b, r.Text)
	}
	if r == nil || len(r.own) == 0 {
		return out
	}
	return eachString(out, r.Text)
}

// Changes reports whether Payload would mask something.
func (r *Redactor) Changes(b []byte) bool { return !bytes.Equal(r.Payload(b), b) }

// changed returns b, unless the text is another.
func (r *Redactor) changed(b []byte, text string) []byte {
	if text == string(b) {
		return b
	}
	return []byte(text)
}

// eachString replaces the strings of valid JSON that f changes, but not the names.
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

// stringEnd returns where the string ends that begins at b[at].
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

// isName reports whether what ends at b[at] is the name of a member.
func isName(b []byte, at int) bool {
	rest := bytes.TrimLeft(b[at:], " \t\r\n")
	return len(rest) > 0 && rest[0] == ':'
}

// replaced returns the string literal as f wants it; ok is false if it is as it was.
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
		return nil, false // a string always can be
	}
	return bytes.TrimRight(buf.Bytes(), "\n"), true
}
