package redact

import (
	"slices"
	"strings"
)

// maskValue masks the value of the name k. The value begins after the blanks at s[at].
func (sc *scanner) maskValue(k key, at int) {
	s := sc.s
	from := k.valueStart(s, at)
	n := backslashesAt(s, from)
	q := from + n
	if isMasked(s, from, q) {
		return
	}
	if q < len(s) && isQuote(s[q]) && n&(n+1) == 0 {
		if s[q] == '"' && (n < k.level || n == 0 && k.quote != '"') && sc.isJSON(q) {
			return // This quote ends a string around the name.
		}
		sc.quotedValue(k, q, n)
		return
	}
	switch {
	case k.quote != 0 && from < len(s) && s[from] == '[':
		sc.maskElements(k, from+1)
	case k.compares || k.colon && strings.HasPrefix(s[at:], ":") || strings.HasPrefix(s[at:], "//"):
	case k.quote != 0 && sc.isJSON(from):
		sc.maskNumber(k, from)
	case k.colon && sc.maskBlock(k, from):
	default:
		sc.maskBare(k, from, from > at)
	}
}

func isQuote(c byte) bool { return c == '"' || c == '\'' || c == '`' }

// maskElements masks the values in a list after a name: "x-api-key": ["…"], as in headers and forms. If the list has
// only one string, that string is the value. If it has several, each is masked only if it looks like a secret. The
// list begins at s[at].
func (sc *scanner) maskElements(k key, at int) {
	at = sc.skipGap(at, 0, k)
	for first := true; ; first = false {
		span, rest, ok := sc.quotedBy(at, k)
		if !ok {
			return
		}
		next := sc.skipGap(rest, ',', k)
		if first && next < len(sc.s) && sc.s[next] == ']' || k.endsWith("cookie") ||
			valueInList(k.name, sc.s[span[0]:span[1]]) {
			sc.quotedValue(k, span[0]-1, k.level)
		}
		if next == rest {
			return
		}
		at = next
	}
}

// isMasked reports whether the value is a mask. A mask fills its quotes or ends the line. s[from:q] has the
// backslashes before the opening quote, which is at s[q].
func isMasked(s string, from, q int) bool {
	if rest, ok := strings.CutPrefix(s[q:], redacted); ok {
		return rest == "" || rest[0] == '\n' || rest[0] == '"'
	}
	return q < len(s) && strings.HasPrefix(s[q+1:], redacted) && strings.HasPrefix(s[q+1+len(redacted):], s[from:q+1])
}

// folded returns the end of a quoted word that continues on the line after the offset "at" of s. Otherwise it returns
// the offset "at".
func folded(s string, at int, quote byte) int {
	from := afterBreak(s, at)
	to := from + lengthOf(s[from:], func(c byte) bool {
		return c > ' ' && c < 0x7f && c != '"' && c != '\'' && c != '\\' && c != ':' && c != '='
	})
	if from > at && to > from && to < len(s) && s[to] == quote && (to+1 == len(s) || breakAt(s, to+1) > 0) {
		return to
	}
	return at
}

// quotedValue masks the value of k. The opening quote is at s[q], with n backslashes before it.
func (sc *scanner) quotedValue(k key, q, n int) {
	s := sc.s
	if from, to, ok := sc.tripleQuoted(q, n); ok {
		sc.maskSecret(from, to)
		return
	}
	end := sc.closing(q+1, s[q], n)
	f := sc.fieldOf(k, q+1, end)
	f.opening, f.marked = s[q], true
	switch {
	case !isSecret(quotedRows, f):
	case end < len(s) && s[end] == '\n':
		sc.maskSecret(q+1, max(continued(s, end), folded(s, end, s[q])))
	default:
		sc.maskSecret(q+1, end)
	}
}

// tripleQuoted returns the bounds of a text in triple quotes, as in TOML and Python.
func (sc *scanner) tripleQuoted(q, n int) (from, to int, ok bool) {
	s := sc.s
	mark := strings.Repeat(strings.Repeat(`\`, n)+s[q:q+1], 3)
	if s[q] == '`' || sc.noTriple[mark] || !strings.HasPrefix(s[q-n:], mark) || n == 0 && s[q] == '"' && sc.isJSON(q) {
		return 0, 0, false
	}
	from = q - n + len(mark)
	i := strings.Index(s[from:], mark)
	if i < 0 {
		if sc.noTriple == nil {
			sc.noTriple = map[string]bool{}
		}
		sc.noTriple[mark] = true
		return 0, 0, false
	}
	to = from + i
	inString := n > 0 || sc.isJSON(q)
	for j := from; inString && j < to; j++ { // a surrounding string may end before the offset "to"
		if s[j] == '\n' || s[j] == '"' && backslashes(s, j) < max(n, 1) {
			return 0, 0, false
		}
	}
	return from, to, true
}

// maskSecret masks s[from:to], which is a whole secret.
func (sc *scanner) maskSecret(from, to int) {
	if from < to {
		sc.replace(from, to, maskOf(sc.s[from:to]))
	}
}

// maskNumber masks a password that is a number. A small number after a name such as token is a counter, and it stays.
func (sc *scanner) maskNumber(k key, from int) {
	const counter = 8 // minimum number of digits of a secret
	to := from
	for to < len(sc.s) && (isDigit(sc.s[to]) || to > from && strings.IndexByte(".eE+-", sc.s[to]) >= 0) {
		to++
	}
	if to == from || k.level&(k.level+1) != 0 || k.naming == maybeName || k.endsWith("token", "cookie", "cookies") &&
		to-from < counter {
		return
	}
	quote := strings.Repeat(`\`, k.level) + string(k.quote)
	sc.putMask(from, to, quote+redacted+quote)
}

// maskBlock masks a block of YAML: password: | and the more deeply indented lines after it. It reports whether there
// was such a block.
func (sc *scanner) maskBlock(k key, at int) bool {
	s := sc.s
	if k.naming != secretName || at >= len(s) {
		return false
	}
	i := at + 1
	switch n := backslashesAt(s, at); {
	case s[at] == '|' || s[at] == '>':
	case n > 0 && strings.HasPrefix(s[at+n:], "u003e"):
		i = at + n + len("u003e")
	default:
		return false
	}
	marks := i + 2
	for i < len(s) && i < marks && (s[i] == '+' || s[i] == '-' || isDigit(s[i])) {
		i++
	}
	margin := indentation(s, k.start)
	from, end := 0, i
	for n := breakAt(s, end); n > 0; n = breakAt(s, end) {
		text := end + n
		for text < len(s) && (s[text] == ' ' || s[text] == '\t') {
			text++
		}
		if text-end-n <= margin && breakAt(s, text) == 0 {
			break
		}
		if from == 0 {
			from = text
		}
		next := sc.lineEndFrom(text)
		if next == end {
			break
		}
		end = next
	}
	if from == 0 || from >= end {
		return false
	}
	sc.replace(from, end, redacted)
	return true
}

// indentation counts the blanks and dashes directly before s[at].
func indentation(s string, at int) int {
	n := 0
	for n < at && (s[at-1-n] == ' ' || s[at-1-n] == '-') {
		n++
	}
	return n
}

// lineEndFrom returns the offset at which the line of s[i], or the string around it, ends.
func (sc *scanner) lineEndFrom(i int) int {
	for s := sc.s; i < len(s); i++ {
		n := backslashesAt(s, i)
		if breakAt(s, i) > 0 || i+n == len(s) || s[i+n] == '"' || s[i+n] == '\'' && n > 0 {
			return i
		}
		i += n
	}
	return len(sc.s)
}

// wordEnds are the bytes that end a word without quotes.
const wordEnds = " \t,;&)}]>(<|`"

// maskBare masks a value without quotes. The value is usually a word. For an authorization it is a scheme and a word.
// For a cookie it is the rest of the line or string.
func (sc *scanner) maskBare(k key, from int, apart bool) {
	s := sc.s
	switch next := afterBreak(s, from); {
	case k.colon && next > from:
		sc.maskNextLine(k, next)
		return
	case k.colon && k.endsWith("cookie", "cookies") && isCookie(s, from):
		sc.maskSecret(from, sc.bareEnd(from, ""))
		return
	case k.endsWith("authorization"):
		sc.maskAuthorization(k, from)
		return
	}
	to := sc.bareEnd(from, wordEnds)
	if sc.isPrefix(from, to) {
		sc.quotedValue(k, to, 0)
		return
	}
	if k.endsWith("phrase", "mnemonic") {
		to = phraseEnd(s, to)
	}
	if !apart && !k.query && k.startsLine(s) && k.naming == secretName && !isPath(s[from:to]) {
		to = sc.bareEnd(from, " \t;`") // in a file of variables, a value may contain brackets
	}
	f := sc.fieldOf(k, from, to)
	f.apart = apart
	switch {
	case !isSecret(bareRows, f):
	case to-from >= 8:
		sc.maskSecret(from, continued(s, to))
	default:
		sc.maskSecret(from, to)
	}
}

// isCookie reports whether a cookie's name and value begin at s[at].
func isCookie(s string, at int) bool {
	const longest = 256
	if at == len(s) || !isWord(s[at]) && s[at] != '_' {
		return false
	}
	value := s[at+lengthOf(s[at:min(len(s), at+longest)], func(c byte) bool { return dashed(c) || c == '.' }):]
	isNext := func(begin string) bool { return strings.HasPrefix(value, begin) }
	return slices.ContainsFunc([]string{"=", "\\u003d", redacted, Mask}, isNext)
}

// isPrefix reports whether s[from:to] is the prefix of a string in Python or C, with the string after it.
func (sc *scanner) isPrefix(from, to int) bool {
	if to == from || to == len(sc.s) || !slices.Contains(stringPrefixes, sc.s[from:to]) {
		return false
	}
	return sc.s[to] == '\'' || sc.s[to] == '"' && !sc.isJSON(to)
}

// phraseEnd returns the end of the line if only words follow s[at]. Otherwise it returns the offset "at".
func phraseEnd(s string, at int) int {
	end := at
	for end+1 < len(s) && s[end] == ' ' && isLower(s[end+1]) {
		end += 1 + lengthOf(s[end+1:], isLower)
	}
	if strings.Count(s[at:end], " ") >= 2 && (end == len(s) || s[end] == '"' || breakAt(s, end) > 0) {
		return end
	}
	return at
}

// maskNextLine masks a value that is alone on the line after its name. That line begins at s[from].
func (sc *scanner) maskNextLine(k key, from int) {
	to := sc.bareEnd(from, " \t,;&)}]>(<|`:=")
	v := sc.s[from:to]
	if k.naming == secretName && k.startsLine(sc.s) && len(v) >= 8 && random(v) &&
		(to == len(sc.s) || breakAt(sc.s, to) > 0 || sc.s[to] == '"') {
		sc.maskSecret(from, to)
	}
}

// maskAuthorization masks the value of an Authorization header. After a scheme of schemes it masks one word,
// otherwise the whole value.
func (sc *scanner) maskAuthorization(k key, from int) {
	s := sc.s
	rest := s[from:]
	if n := startOf(rest, schemes); n > 0 {
		if to := sc.bareEnd(from+n, wordEnds); !isReference(s[from+n : to]) {
			sc.maskSecret(from+n, to)
		}
		return
	}
	word := sc.bareEnd(from, wordEnds)
	f := sc.fieldOf(k, from, word)
	f.apart = true
	if !notInProse(f.value) || !strings.Contains(f.value, redacted) && isCode(f) {
		return
	}
	if !k.colon {
		sc.maskSecret(from, word)
		return
	}
	to := sc.headerEnd(k, from)
	from += startOf(rest, longSchemes)
	if from < to && s[from:to] != Mask {
		sc.replace(from, to, Mask)
	}
}

// headerEnd returns the offset at which a header's value ends. That is the end of the line or string, or the same
// quote as before the header's name. Other quotes belong to the value.
func (sc *scanner) headerEnd(k key, from int) int {
	s := sc.s
	open, level := byte(0), 0
	if k.start > 0 && (s[k.start-1] == '"' || s[k.start-1] == '\'') {
		open, level = s[k.start-1], backslashes(s, k.start-1)
	}
	for i := from; i < len(s); i++ {
		n := 0
		for i < len(s) && s[i] == '\\' {
			i, n = i+1, n+1
		}
		switch {
		case i == len(s):
			return i - n%2
		case n%2 == 1 && (s[i] == 'n' || s[i] == 'r'), s[i] < ' ':
			return i - n
		case s[i] == open && n <= level, s[i] == '"' && n == 0 && sc.isJSON(i):
			return i - n
		case s[i] == '"' && n > 0 && n < level:
			return i - n
		}
	}
	return len(s)
}
