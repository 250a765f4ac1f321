// Package redact masks what looks like a secret in text and in JSON. The debug trail, exports
// and, where the configuration says so, the log before it is hashed use it.
//
// It errs on the side of masking, and is no guarantee: a password in the middle of a sentence
// looks like a word. It starts nothing, keeps nothing, and costs nothing until it is used.
package redact

import (
	"slices"
	"strings"
)

// Mask stands behind the recognisable start of a secret: sk-ant-…[redacted].
const Mask = "…" + redacted

const (
	redacted = "[redacted]"
	maxPass  = 8
)

// Text returns s with what looks like a secret masked: known kinds of keys wherever they
// stand, and the value of whatever is named like a secret, in key=value, in headers, in
// command lines, in URLs, in XML and in JSON, also JSON inside a JSON string. A mask keeps the
// recognisable start. Counters such as input_tokens, ids, hashes and base64 stay as they are.
//
// Text(Text(s)) is Text(s). A line of valid JSON stays valid, valid UTF-8 too. A text without
// secrets is returned as it is. One with secrets that are cut by a terminal's colours loses
// its colours.
func Text(s string) string {
	t := &text{s: s}
	for range maxPass { // the second pass changes nothing but in odd cases
		if !t.pass() {
			return t.s
		}
	}
	if validJSON(s) {
		return `"` + redacted + `"`
	}
	return redacted // never seen; better no text than half a mask
}

// pass masks what it finds, and reports whether it found anything.
func (t *text) pass() bool {
	t.invalid = false // a mask may have made it valid
	before := t.s
	if coloured(t.s) && t.uncoloured() {
		return true
	}
	t.rules()
	return t.s != before
}

func (t *text) rules() {
	t.look()
	if t.pem {
		t.apply(maskPEM(t))
	}
	t.apply(maskNamed(t))
	for i, m := range tagMarks {
		if t.tags[i] {
			t.apply(maskXML(t, m))
		}
	}
	for i, mark := range urlMarks {
		if t.urls[i] {
			t.apply(maskURLs(t, mark))
		}
	}
	t.apply(maskCommands(t))
	t.apply(maskFlags(t))
	t.apply(maskSpaced(t))
	t.apply(maskKinds(t))
	for i, p := range patterns {
		if len(t.patterns[i]) > 0 {
			t.apply(p.mask(t, t.patterns[i]))
		}
	}
}

// Named returns the mask for the value of what is called name; ok is false if that is no
// name of a secret.
func Named(name, value string) (mask string, ok bool) {
	if nameOf(name) != secretName {
		return value, false
	}
	return maskOf(value), true
}

// maskOf returns the mask for a whole value, with as much of its start as says what
// it was. The mask of a mask is the mask.
func maskOf(v string) string {
	if v == "" {
		return redacted
	}
	if head, ok := strings.CutSuffix(v, Mask); ok && len(head) < 32 {
		isKind := func(k kind) bool { return k.prefix == head }
		if n := schemeOf(head + "."); n == len(head) || head == "" || slices.ContainsFunc(kinds, isKind) {
			return v
		}
	}
	if n := schemeOf(v); n > 0 {
		return v[:n] + Mask
	}
	if k, end := kindAt(kindIndex(), v, 0, 0); end > 0 {
		return k.prefix + Mask
	}
	return redacted
}

// schemes of the Authorization header whose credentials are one word.
var schemes = []string{"Bearer", "Basic", "Token", "Negotiate", "ApiKey", "SSWS", "Bot", "GenieKey", "NTLM"}

// longSchemes have a list of parameters behind them.
var longSchemes = []string{"Digest", "AWS4-HMAC-SHA256", "OAuth", "Hawk", "MAC", "Signature"}

// schemeOf returns the length of the scheme and the blank that v begins with.
func schemeOf(v string) int { return max(startOf(v, schemes), startOf(v, longSchemes)) }

func startOf(v string, list []string) int {
	for _, scheme := range list {
		if n := len(scheme); len(v) > n+1 && strings.EqualFold(v[:n], scheme) && v[n] == ' ' {
			return n + 1
		}
	}
	return 0
}
