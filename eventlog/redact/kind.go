package redact

import (
	"encoding/base64"
	"encoding/json"
	"sort"
	"strings"
	"sync"
)

// kind is a kind of API key: the prefix of the keys, and the shape of the text after the prefix.
type kind struct{ prefix, shape string }

// index finds the kinds by the first two bytes of their prefixes. Longer prefixes come first.
type index struct {
	pairs [1 << 16]uint16 // 0, or the position of a list in lists
	lists [][]kind
}

// kindIndex is made at the first use, because most commands mask nothing.
var kindIndex = sync.OnceValue(func() *index {
	t := &index{lists: make([][]kind, 1)}
	for _, k := range kinds {
		p := pairOf(k.prefix, 0)
		if t.pairs[p] == 0 {
			t.pairs[p] = uint16(len(t.lists))
			t.lists = append(t.lists, nil)
		}
		t.lists[t.pairs[p]] = append(t.lists[t.pairs[p]], k)
	}
	for _, list := range t.lists {
		sort.SliceStable(list, func(i, j int) bool { return len(list[i].prefix) > len(list[j].prefix) })
	}
	return t
})

// kindAt returns the kind of the key that begins at s[at], and the offset of the key's end. A kind with the shape
// kindSolid or kindJWT needs a whole run of letters. Such a key cannot begin before the offset "dead", because the run
// up to there was already examined.
func kindAt(table *index, s string, at, dead int) (k kind, end int) {
	if at+1 >= len(s) {
		return kind{}, 0
	}
	for _, k := range table.lists[table.pairs[pairOf(s, at)]] {
		if !strings.HasPrefix(s[at:], k.prefix) || k.wholeRun() && at < dead {
			continue
		}
		if end := k.endOf(s, at); end > 0 {
			return k, end
		}
	}
	return kind{}, 0
}

func (k kind) wholeRun() bool { return k.shape == kindSolid || k.shape == kindJWT }

// endOf returns the offset of the end of the key that has its prefix at s[at]. It returns 0 if there is no key.
func (k kind) endOf(s string, at int) int {
	from := at + len(k.prefix)
	switch k.shape {
	case kindSolid:
		if n := solid(s[from:]); n > 0 {
			return continued(s, from+n)
		}
		return 0
	case kindJWT:
		if n := jwt(s[from:]); n > 0 {
			return continued(s, from+n)
		}
		return 0
	case kindJSON:
		return encodedJSON(s, at)
	}
	shape, wordlike := strings.CutPrefix(k.shape, "?")
	if wordlike && at > 0 && strings.IndexByte("_-./+", s[at-1]) >= 0 && !escapedBreak(s, at) {
		return 0
	}
	end := parts(s, from, shape)
	if end == 0 || wordlike && !random(s[from:end]) {
		return 0
	}
	return end
}

// parts matches the parts of a shape at s[at]. It returns the offset of their end, or 0.
func parts(s string, at int, shape string) int {
	open := false
	for part := range strings.SplitSeq(shape, " ") {
		if part[0] == '\'' {
			if !strings.HasPrefix(s[at:], part[1:]) {
				return 0
			}
			at += len(part) - 1
			continue
		}
		n := 0
		for _, c := range part[1:] {
			if c != '+' {
				n = 10*n + int(c-'0')
			}
		}
		open = strings.HasSuffix(part, "+")
		if at = run(s, at, alphabets[part[0]], n, open); at == 0 {
			return 0
		}
	}
	switch {
	case open:
		for s[at-1] == '.' || s[at-1] == '=' && s[at-2] == '.' { // leave out the dot at the end of a sentence
			at--
		}
		return continued(s, at)
	case at < len(s) && isWord(s[at]):
		return 0
	}
	return at
}

// run matches n bytes of an alphabet at s[at]. The function "of" reports whether a byte is in the alphabet. If "open"
// is true, run matches n or more bytes. If the line ends before the nth byte, the match continues on the next line. run
// returns the offset of the end, or 0.
func run(s string, at int, of func(byte) bool, n int, open bool) int {
	for count := 0; ; {
		for at < len(s) && of(s[at]) && (open || count < n) {
			at, count = at+1, count+1
		}
		if count >= n {
			return at
		}
		next := afterBreak(s, at)
		if count == 0 || next == at || next >= len(s) || !of(s[next]) {
			return 0
		}
		at = next
	}
}

var alphabets = [256]func(byte) bool{
	'w': isWord, 'd': dashed, 'n': isDigit, 'b': isBase64,
	'p': func(c byte) bool { return dashed(c) || c == '.' },
	'h': func(c byte) bool { return isDigit(c) || 'a' <= c|0x20 && c|0x20 <= 'f' },
	'u': func(c byte) bool { return isUpper(c) || isDigit(c) },
}

func dashed(c byte) bool   { return isWord(c) || c == '-' || c == '_' }
func isBase64(c byte) bool { return dashed(c) || c == '+' || c == '/' || c == '=' }

// breakAt returns the length of the line break at s[at], or 0. The line break may be escaped.
func breakAt(s string, at int) int {
	i := at
	for range 2 {
		j := i
		for j < len(s) && s[j] == '\\' {
			j++
		}
		switch {
		case j < len(s) && j > i && (s[j] == 'n' || s[j] == 'r'), j < len(s) && j <= i+1 && (s[j] == '\n' || s[j] == '\r'):
			cr := s[j] == 'r' || s[j] == '\r'
			i = j + 1
			if !cr {
				return i - at
			}
		default:
			return i - at
		}
	}
	return i - at
}

// afterBreak returns the offset of the next line's text if there is a line break at s[at]. Otherwise it returns the
// offset "at".
func afterBreak(s string, at int) int {
	n := breakAt(s, at)
	if n == 0 {
		return at
	}
	i := at + n
	for i < len(s) && i-at < 64 && (s[i] == ' ' || s[i] == '\t') {
		i++
	}
	return i
}

// continued returns the end of a key that ends its line at s[at] and may continue on the next lines. Such a next line
// has only one run of letters and digits.
func continued(s string, at int) int {
	for {
		from := afterBreak(s, at)
		if from == at {
			return at
		}
		to := from
		for to < len(s) && isBase64(s[to]) {
			to++
		}
		v := strings.TrimRight(s[from:to], "=")
		ends := to == len(s) || s[to] == '"' || s[to] == '\'' || breakAt(s, to) > 0
		if !ends || len(v) < 8 || len(s[from:to])-len(v) > 2 || strings.Contains(v, "=") || !random(v) {
			return at
		}
		at = to
	}
}

// random reports whether v looks like a random value and not like words, a name, a number or a path.
func random(v string) bool {
	digits, changes := 0, 0
	for i := range len(v) {
		if isDigit(v[i]) {
			digits++
		}
		if i > 0 && class(v[i]) != class(v[i-1]) {
			changes++
		}
	}
	return digits > 0 && digits < len(v) && changes >= len(v)/6
}

func class(c byte) int {
	switch {
	case isDigit(c):
		return 1
	case isUpper(c):
		return 2
	case isLower(c):
		return 3
	}
	return 4
}

// solid returns the length of a key at the start of the parameter "rest", or 0. The key must have 16 letters and digits
// without a dash between them. sk-folding-cube-animation is a class name and no key.
func solid(rest string) int {
	n := lengthOf(rest, dashed)
	for _, part := range strings.FieldsFunc(rest[:n], func(r rune) bool { return r == '-' || r == '_' }) {
		if len(part) >= 16 && strings.ContainsAny(part, "0123456789") {
			return n
		}
	}
	return 0
}

// jwt returns the length of header.payload.signature at the start of the parameter "rest", or 0. The header alone is
// not enough, because any JSON object in base64 looks like one. An encrypted token has five parts, and one of them may
// be empty.
func jwt(rest string) int {
	n := lengthOf(rest, dashed)
	if n < 8 {
		return 0
	}
	parts := 1
	for n+1 < len(rest) && rest[n] == '.' {
		m := lengthOf(rest[n+1:], dashed)
		if m < 4 && (m > 0 || parts != 1 || !strings.HasPrefix(rest[n+1:], ".")) {
			break
		}
		n, parts = n+1+m, parts+1
	}
	if parts == 2 && strings.HasPrefix(rest[n:], ".") { // a token without a signature
		return n + 1
	}
	if parts < 3 {
		return 0
	}
	return n
}

// encodedJSON returns the end of the base64 text at s[at] if this text encodes JSON with a secret. Otherwise it
// returns 0.
func encodedJSON(s string, at int) int {
	const longest = 64 << 10
	if at > 0 && strings.IndexByte("+/-_", s[at-1]) >= 0 { // s[at] is in the middle of a base64 text
		return 0
	}
	n := lengthOf(s[at:min(len(s), at+longest)], func(c byte) bool { return c != '=' && isBase64(c) })
	standard := strings.NewReplacer("-", "+", "_", "/").Replace(s[at : at+n])
	text, err := base64.RawStdEncoding.DecodeString(standard)
	if err != nil || !json.Valid(text) || Text(string(text)) == string(text) {
		return 0
	}
	return at + n + lengthOf(s[at+n:], func(c byte) bool { return c == '=' })
}

func lengthOf(s string, of func(byte) bool) int {
	n := 0
	for n < len(s) && of(s[n]) {
		n++
	}
	return n
}

// maskKinds masks the keys of known kinds. Their prefixes are at the offsets in t.kinds.
func maskKinds(t *text) *edits {
	s, e := t.s, &edits{text: t}
	dead := 0
	for _, at := range t.kinds {
		if at < e.done {
			continue
		}
		if k, end := kindAt(kindIndex(), s, at, dead); end > 0 {
			e.replace(at, end, k.prefix+Mask)
		} else {
			dead = deadEnd(s, at, dead)
		}
	}
	return e
}

// deadEnd returns the offset of the end of the run at s[at]. No kind that needs the whole run can begin inside this
// run.
func deadEnd(s string, at, dead int) int {
	if at >= dead && (strings.HasPrefix(s[at:], "sk-") || strings.HasPrefix(s[at:], "eyJ")) {
		return at + lengthOf(s[at:], dashed)
	}
	return dead
}

// beginsWord reports whether a word can begin at s[i]. A letter or digit before s[i] prevents that,
// except for the n of an escaped newline and the digits of \u003c.
func beginsWord(s string, i int) bool {
	if i == 0 || !inWord[s[i-1]] {
		return true
	}
	return (i >= 2 && s[i-2] == '\\' || i >= 6 && s[i-6] == '\\') && escapedBreak(s, i)
}

// inWord gives the result of isWord for each byte. It is a table, because every byte of a text is tested.
var inWord = [256]bool{
	'0': true, '1': true, '2': true, '3': true, '4': true, '5': true, '6': true, '7': true, '8': true, '9': true,
	'A': true, 'B': true, 'C': true, 'D': true, 'E': true, 'F': true, 'G': true, 'H': true, 'I': true, 'J': true,
	'K': true, 'L': true, 'M': true, 'N': true, 'O': true, 'P': true, 'Q': true, 'R': true, 'S': true, 'T': true,
	'U': true, 'V': true, 'W': true, 'X': true, 'Y': true, 'Z': true,
	'a': true, 'b': true, 'c': true, 'd': true, 'e': true, 'f': true, 'g': true, 'h': true, 'i': true, 'j': true,
	'k': true, 'l': true, 'm': true, 'n': true, 'o': true, 'p': true, 'q': true, 'r': true, 's': true, 't': true,
	'u': true, 'v': true, 'w': true, 'x': true, 'y': true, 'z': true,
}

// escapedBreak reports whether an escape such as \n or \u003c stands before s[i].
func escapedBreak(s string, i int) bool {
	if strings.IndexByte("nrtbf", s[i-1]) >= 0 && backslashes(s, i-1) > 0 {
		return true
	}
	return i >= 6 && s[i-5] == 'u' && s[i-6] == '\\'
}
