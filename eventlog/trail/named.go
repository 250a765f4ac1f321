package trail

import (
	"encoding/json"
	"slices"
	"strings"
)

// maskNamed masks the values of what is named like a secret. It walks from one
// separator to the next and looks at the name before it.
func maskNamed(s string) string {
	sc := scanner{edits: edits{s: s}}
	for at := 0; ; {
		i := strings.IndexAny(s[at:], ":=")
		if i < 0 {
			return sc.String()
		}
		at = sc.separator(at + i)
	}
}

type scanner struct {
	edits
	lineEnd  int // of the line that lineJSON is about
	lineJSON bool
	allJSON  *bool
}

// separator handles the name and value around the separator at p and returns where
// to go on.
func (sc *scanner) separator(p int) int {
	s := sc.s
	name, quote, level := nameBefore(s, p)
	if name == "" {
		return p + 1
	}
	at, compares := afterSeparator(s, p)
	if quote == '"' && (name == "name" || name == "key" || name == "header") {
		sc.pair(at, level)
		return at
	}
	if !isSecretKey(name) {
		return at
	}
	sc.value(key{name, quote, level, s[p] == ':' && at == p+1, compares}, at)
	return max(at, sc.done)
}

// key is the name of a value that is to be masked.
type key struct {
	name     string
	quote    byte // 0: the name stands without quotes
	level    int  // backslashes before its quote
	colon    bool // name: value
	compares bool // name == value, name => value
}

func (k key) ends(with ...string) bool {
	lower := strings.ToLower(k.name)
	return slices.ContainsFunc(with, func(w string) bool { return strings.HasSuffix(lower, w) })
}

// nameBefore returns the name that ends before p, its quote, and the number of
// backslashes before the quote.
func nameBefore(s string, p int) (name string, quote byte, level int) {
	end := p
	for end > 0 && (s[end-1] == ' ' || s[end-1] == '\t') && p-end < 8 {
		end--
	}
	if end > 0 && s[end-1] == ']' {
		end--
	}
	if end > 0 && (s[end-1] == '"' || s[end-1] == '\'') {
		quote, level = s[end-1], backslashes(s, end-1)
		end -= 1 + level
	}
	start := end
	for start > 0 && end-start <= 128 && (isWord(s[start-1]) || s[start-1] == '_' || s[start-1] == '-' || s[start-1] == '.') {
		start--
	}
	// The n of an escaped newline is no part of the name.
	if start < end && strings.IndexByte("nrtbf", s[start]) >= 0 && backslashes(s, start)%2 == 1 {
		start++
	}
	return s[start:end], quote, level
}

// afterSeparator skips := and =>, == and ===, which compare, and blanks.
func afterSeparator(s string, p int) (at int, compares bool) {
	at = p + 1
	if at < len(s) && s[p] == ':' && s[at] == '=' {
		at++
	} else {
		for at < len(s) && s[p] == '=' && (s[at] == '=' || s[at] == '>') {
			at++
			compares = true
		}
	}
	return at, compares
}

// value masks the value of a secret that begins, after blanks, at at.
func (sc *scanner) value(k key, at int) {
	s := sc.s
	from := at
	for from < len(s) && (s[from] == ' ' || s[from] == '\t' || k.quote != 0 && s[from] == '\n') {
		from++
	}
	spaced := from > at
	q := from
	for q < len(s) && s[q] == '\\' {
		q++
	}
	n := q - from
	if q < len(s) && (s[q] == '"' || s[q] == '\'' || s[q] == '`') && n&(n+1) == 0 {
		if s[q] == '"' && (n < k.level || n == 0 && k.quote != '"') && sc.isJSON(q) {
			return // not an opening quote: a string around the name ends here
		}
		end := sc.closing(q+1, s[q], n)
		sc.mask(q+1, end)
		return
	}
	switch {
	case k.compares || k.colon && strings.HasPrefix(s[at:], ":") || strings.HasPrefix(s[at:], "//"):
	case k.quote != 0 && sc.isJSON(from):
		sc.number(k, from)
	default:
		sc.bare(k, from, spaced)
	}
}

func (sc *scanner) mask(from, to int) {
	if from < to {
		sc.replace(from, to, maskOf(sc.s[from:to]))
	}
}

// number masks a password that is a number; a token that is one is a counter.
func (sc *scanner) number(k key, from int) {
	to := from
	for to < len(sc.s) && (isDigit(sc.s[to]) || to > from && strings.IndexByte(".eE+-", sc.s[to]) >= 0) {
		to++
	}
	if to > from && !k.ends("token") {
		quote := strings.Repeat(`\`, k.level) + string(k.quote)
		sc.replace(from, to, quote+redacted+quote)
	}
}

// bare masks a value without quotes: a word, for authorization a scheme and a word,
// for cookies all up to the end of the line or string.
func (sc *scanner) bare(k key, from int, spaced bool) {
	const stop = " \t,;&)}]>(<|`"
	header := k.ends("authorization", "cookie", "cookies")
	if k.colon && k.ends("cookie", "cookies") {
		sc.mask(from, sc.bareEnd(from, ""))
		return
	}
	if rest := sc.s[from:]; k.ends("authorization") {
		if n := schemeOf(rest); n > 0 {
			from += n
		}
	}
	to := sc.bareEnd(from, stop)
	v := sc.s[from:to]
	switch {
	case slices.Contains(typeNames, v):
	case spaced && to < len(sc.s) && sc.s[to] == '(': // a call
	case k.colon && spaced && !header && !strings.Contains(strings.ToLower(k.name), "pass") &&
		!k.ends("key") && !looksSecret(v): // prose: "unexpected token: foo"
	default:
		sc.mask(from, to)
	}
}

// typeNames stand where a value would, in code: password: string.
var typeNames = []string{
	"string", "str", "String", "number", "int", "bool", "boolean", "none", "None", "null",
	"nil", "true", "false", "True", "False", "undefined", "any", "bytes",
}

// bareEnd returns where a value without quotes ends: at one of stop, a quote, a
// control character, or the escape of one.
func (sc *scanner) bareEnd(from int, stop string) int {
	s := sc.s
	for i := from; i < len(s); i++ {
		switch c := s[i]; {
		case strings.HasPrefix(s[i:], redacted):
			i += len(redacted) - 1
		case c == '"' || c == '\'' || c < ' ' || c == 0x7f || strings.IndexByte(stop, c) >= 0:
			return i
		case c == '\\':
			run := i
			for run < len(s) && s[run] == '\\' {
				run++
			}
			if run == len(s) {
				return run - (run-i)%2
			}
			if (run-i)%2 == 1 && (s[run] == '"' || s[run] == '\'' || sc.isJSON(i)) {
				return run - 1
			}
			i = run - 1
		}
	}
	return len(s)
}

// closing returns where a quoted value ends whose opening quote had n backslashes:
// at its closing quote, at a quote of a string around it, or at the end of the line.
func (sc *scanner) closing(from int, quote byte, n int) int {
	s := sc.s
	run := 0
	for i := from; i < len(s); i++ {
		switch c := s[i]; {
		case c == '\\':
			run++
			continue
		case c == '\n':
			return i
		case c == quote && run%(2*(n+1)) == n:
			return i - n
		case c == '"' && (quote == '"' || sc.isJSON(i)):
			for m := 0; m < n || m == 0 && quote != '"'; m = 2*m + 1 {
				if run%(2*(m+1)) == m {
					return i - m
				}
			}
		}
		run = 0
	}
	return len(s) - run%2
}

// pair handles {"name": "API_KEY", "value": "…"}, as ACP has environment variables
// and headers.
func (sc *scanner) pair(at, level int) {
	name, rest, ok := sc.quoted(at, level)
	if !ok || !isSecretKey(sc.s[name[0]:name[1]]) {
		return
	}
	rest = skip(sc.s, rest, ',')
	key, rest, ok := sc.quoted(rest, level)
	if !ok || !strings.EqualFold(sc.s[key[0]:key[1]], "value") {
		return
	}
	if value, _, ok := sc.quoted(skip(sc.s, rest, ':'), level); ok {
		sc.mask(value[0], value[1])
	}
}

// quoted reads a string whose quotes have n backslashes.
func (sc *scanner) quoted(at, n int) (span [2]int, rest int, ok bool) {
	s := sc.s
	at = skip(s, at, ' ')
	open := at + n
	if open >= len(s) || s[open] != '"' || backslashes(s, open) != n {
		return span, at, false
	}
	end := sc.closing(open+1, '"', n)
	if end+n >= len(s) || s[end+n] != '"' {
		return span, at, false
	}
	return [2]int{open + 1, end}, end + n + 1, true
}

// skip passes over blanks and one c between them.
func skip(s string, at int, c byte) int {
	for seen := false; at < len(s); at++ {
		switch s[at] {
		case ' ', '\t', '\n', '\r':
			continue
		case c:
			if !seen {
				seen = true
				continue
			}
		}
		break
	}
	return at
}

// isJSON reports whether the line around p, or all of the text, is JSON, so that its
// quotes may not be taken for anything else.
func (sc *scanner) isJSON(p int) bool {
	if p >= sc.lineEnd {
		start := strings.LastIndexByte(sc.s[:min(p, len(sc.s))], '\n') + 1
		sc.lineEnd = len(sc.s) + 1
		if i := strings.IndexByte(sc.s[start:], '\n'); i >= 0 {
			sc.lineEnd = start + i + 1
		}
		sc.lineJSON = json.Valid([]byte(sc.s[start:min(sc.lineEnd, len(sc.s))]))
	}
	if sc.lineJSON {
		return true
	}
	if sc.allJSON == nil {
		valid := json.Valid([]byte(sc.s))
		sc.allJSON = &valid
	}
	return *sc.allJSON
}

// backslashes counts those directly before s[p].
func backslashes(s string, p int) int {
	n := 0
	for n < p && s[p-1-n] == '\\' {
		n++
	}
	return n
}

// looksSecret tells keys from words: long, or of some length with a digit.
func looksSecret(v string) bool {
	return len(v) >= 20 || len(v) >= 8 && strings.ContainsAny(v, "0123456789")
}
