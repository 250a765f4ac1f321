// Package redact masks probable secrets in text and in JSON. The debug trail and exports use it.
// The log uses it before hashing if the configuration says so.
//
// Each pass first finds tokens in the text: separators, prefixes of API keys, commands and names. Tables decide at
// each token whether a secret follows. The table kinds has API keys with a known prefix. The table patterns has URLs
// and formats of files. The table programs has command lines. Tables of rows decide about the values of names. A row
// has the shape of the text before the value, the shape of the value, the verdict and an example.
//
// The package masks too much rather than too little. It guarantees nothing, because a password in a sentence looks
// like a word. It starts no goroutine and stores nothing. It costs nothing before the first use.
package redact

import (
	"slices"
	"strings"
)

// Mask replaces a secret, after its recognizable beginning: sk-ant-…[redacted].
const Mask = "…" + redacted

const (
	redacted = "[redacted]"
	maxPass  = 8
)

// Text returns s with masked secrets. It masks API keys of known kinds everywhere. It masks the values of names such
// as password in key=value, headers, command lines, URLs, XML and JSON, also in JSON inside a JSON string. A mask
// keeps the recognizable beginning of a secret. Text does not mask counters such as input_tokens, ids, hashes and
// base64.
//
// Text(Text(s)) is Text(s). A line of valid JSON stays valid, and so does valid UTF-8. A text without secrets is
// returned unchanged. A text loses its colours if they divide a secret.
func Text(s string) string {
	t := &text{s: s}
	for range maxPass { // usually the second pass changes nothing, which ends the loop
		if !t.maskPass() {
			return t.s
		}
	}
	if validJSON(s) {
		return `"` + redacted + `"`
	}
	return redacted // No input is known that leads here. Return no text rather than half a mask.
}

// maskPass applies all rules once. It reports whether the text changed.
func (t *text) maskPass() bool {
	t.invalid = false // The last mask may have made the text valid.
	before := t.s
	if coloured(t.s) && t.maskColoured() {
		return true
	}
	t.applyRules()
	return t.s != before
}

func (t *text) applyRules() {
	t.findPlaces()
	if t.pem {
		t.applyEdits(maskPEM(t))
	}
	t.applyEdits(maskNamed(t))
	for i, m := range tagMarks {
		if t.tags[i] {
			t.applyEdits(maskXML(t, m))
		}
	}
	for i, mark := range urlMarks {
		if t.urls[i] {
			t.applyEdits(maskURLs(t, mark))
		}
	}
	t.applyEdits(maskCommands(t))
	t.applyEdits(maskFlags(t))
	t.applyEdits(maskSpaced(t))
	t.applyEdits(maskKinds(t))
	for i, p := range patterns {
		if len(t.patterns[i]) > 0 {
			t.applyEdits(p.maskMatches(t, t.patterns[i]))
		}
	}
}

// Named returns the mask for the value of the given name. ok is false if "name" is not the name of a secret.
func Named(name, value string) (mask string, ok bool) {
	if nameOf(name) != secretName {
		return value, false
	}
	return maskOf(value), true
}

// maskOf returns the mask for the whole value v. It keeps the beginning that identifies the kind of secret. If v is a
// mask, maskOf returns v.
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

// schemes are the schemes of the Authorization header after which one word follows.
var schemes = []string{"Bearer", "Basic", "Token", "Negotiate", "ApiKey", "SSWS", "Bot", "GenieKey", "NTLM"}

// longSchemes are the schemes after which a list of parameters follows.
var longSchemes = []string{"Digest", "AWS4-HMAC-SHA256", "OAuth", "Hawk", "MAC", "Signature"}

// schemeOf returns the length of the scheme and the blank at the start of v, or 0.
func schemeOf(v string) int { return max(startOf(v, schemes), startOf(v, longSchemes)) }

func startOf(v string, list []string) int {
	for _, scheme := range list {
		if n := len(scheme); len(v) > n+1 && strings.EqualFold(v[:n], scheme) && v[n] == ' ' {
			return n + 1
		}
	}
	return 0
}
