package redact

import (
	"slices"
	"strings"
)

// key is a name in the text. Its value may be a secret that must be masked.
type key struct {
	name     string
	start    int  // offset of the name
	quote    byte // quote around the name, or 0
	level    int  // number of backslashes before the quote
	naming   naming
	query    bool // the name is a parameter in a URL
	colon    bool // the separator is a colon
	compares bool // the separator compares or maps: ==, ===, =>
	spaced   bool // the name consists of two words with a blank between them
}

// field is a name with its value. A table of rows decides whether the value is a secret.
type field struct {
	key
	text    string // the whole text
	value   string
	word    string // the value without signs for pointers and optional values; set by isCode
	end     int    // offset of the end of the value
	opening byte   // the quote before the value, or 0
	// apart means that there is a blank before the value.
	apart bool
	// marked means that the value has quotes, or that a word such as set or export precedes the name.
	marked bool
	// closed means that there is a closing bracket after the value.
	closed bool
}

// fieldOf returns a field with the name k and the value s[from:to]. The next call overwrites the field.
func (sc *scanner) fieldOf(k key, from, to int) *field {
	sc.field = field{key: k, text: sc.s, value: sc.s[from:to], end: to}
	return &sc.field
}

func (k key) endsWith(with ...string) bool {
	lower := strings.TrimRight(strings.ToLower(k.name), "0123456789")
	return slices.ContainsFunc(with, func(w string) bool { return strings.HasSuffix(lower, w) })
}

func (k key) isPassword() bool { return k.endsWith("password", "passwd", "pwd", "passphrase", "pass") }

func (k key) isFlag() bool { return strings.HasPrefix(k.name, "-") }

// isCompound reports whether the name has several words.
func (k key) isCompound() bool { return len(splitWords(k.name)) > 1 }

// next returns the byte after the value, or 0 at the end of the text.
func (f *field) next() byte {
	if f.end < len(f.text) {
		return f.text[f.end]
	}
	return 0
}

// nextIs reports whether one of these bytes follows the value.
func (f *field) nextIs(bytes string) bool { return strings.IndexByte(bytes, f.next()) >= 0 }

// endsLine reports whether the line or the quoted string ends directly after the value.
func (f *field) endsLine() bool {
	return f.end == len(f.text) || f.nextIs(`"'`) || breakAt(f.text, f.end) > 0
}

// lineStarters are the words that may be between the start of a line and a name.
var lineStarters = []string{"export", "set", "ENV", "ARG", "setenv", "+"}

// startsLine reports whether the name is at the start of its line. Blanks, dashes and one of lineStarters may precede
// it.
func (k key) startsLine(s string) bool {
	i := k.start
	if k.quote != 0 && i > k.level {
		i -= 1 + k.level
	}
	for i > 0 && (s[i-1] == ' ' || s[i-1] == '\t' || s[i-1] == '-') && k.start-i < 64 {
		i--
	}
	for _, word := range lineStarters {
		if strings.HasSuffix(s[:i], word) && i < k.start {
			i -= len(word)
			break
		}
	}
	return i == 0 || s[i-1] == '\n' || s[i-1] == '"' || i > 1 && s[i-1] == 'n' && s[i-2] == '\\'
}

// setters are words after which come a name and its value.
var setters = []string{"set", "-gx", "-x", "-Ux", "setx", "setenv", "SetEnv", "export", "define", "ENV", "putenv"}

// isSet reports whether the word before the name is one of setters.
func (k key) isSet(s string) bool {
	end := k.start
	for end > 0 && s[end-1] == ' ' && k.start-end < 4 {
		end--
	}
	if end == k.start {
		i := strings.LastIndexByte(s[max(0, end-80):end], ' ') // for example, config set //host/:_authToken
		if i < 0 || !strings.HasSuffix(s[:end], "/:") {
			return false
		}
		end = max(0, end-80) + i
	}
	begin := end
	for begin > 0 && end-begin < 12 && dashed(s[begin-1]) {
		begin--
	}
	word := s[begin:end]
	for len(word) > 1 && word[0] == 'n' && begin > 0 && s[begin-1] == '\\' {
		word = word[1:]
		begin++
	}
	return slices.Contains(setters, word)
}

// inName reports whether c can be part of a name.
func inName(c byte) bool { return isWord(c) || c == '_' || c == '-' || c == '.' }

// nameBefore returns the name that ends before the offset p.
func nameBefore(s string, p int) (k key) {
	end := p
	for end > 0 && (s[end-1] == ' ' || s[end-1] == '\t') && p-end < 8 {
		end--
	}
	if end > 0 && s[end-1] == ']' {
		end--
	}
	if end > 0 && (s[end-1] == '"' || s[end-1] == '\'') {
		k.quote, k.level = s[end-1], backslashes(s, end-1)
		end -= 1 + k.level
	}
	start := end
	for start > 0 && end-start <= 128 && inName(s[start-1]) {
		start--
	}
	for end > start && s[end-1] == '.' { // leave out the dots in tables: password.....: VALUE
		end--
	}
	// Leave out the n of an escaped newline, because it does not belong to the name.
	if start < end && strings.IndexByte("nrtbf", s[start]) >= 0 && backslashes(s, start)%2 == 1 {
		start++
	}
	k.name, k.start = s[start:end], start
	return k
}

// afterSeparator returns the offset after the separator at s[p]: one of = : := => == and ===. The result "compares"
// is true for the last three.
func afterSeparator(s string, p int) (at int, compares bool) {
	at = p + 1
	if at < len(s) && s[p] == ':' && s[at] == '=' {
		return at + 1, false
	}
	for at < len(s) && s[p] == '=' && (s[at] == '=' || s[at] == '>') {
		at++
		compares = true
	}
	if n := backslashesAt(s, at); n > 0 && strings.HasPrefix(s[at+n:], "u003e") { // Go's JSON has =\u003e for =>
		at, compares = at+n+len("u003e"), true
	}
	return at, compares
}

// valueStart returns the offset of the value. It skips blanks, tags of YAML and constructors at s[at].
func (k key) valueStart(s string, at int) int {
	for at < len(s) && (s[at] == ' ' || s[at] == '\t' || k.quote != 0 && s[at] == '\n') {
		at++
	}
	if k.colon {
		at = afterTag(s, at)
	}
	if k.naming == secretName {
		at = afterWrapper(s, at)
	}
	return at
}

// typedName returns the name in a declaration with a type, such as var password string = "…" or token: &str = "…".
// The = is at s[p].
func typedName(s string, p int) string {
	const longest = 64
	text := strings.TrimRight(s[max(0, p-longest):p], " ")
	word := len(text)
	for word > 0 && (inWord[text[word-1]] || strings.IndexByte(">]?", text[word-1]) >= 0) {
		word--
	}
	if word == 0 || strings.IndexByte("\n;({\"'", text[word-1]) >= 0 {
		return "" // no name stands before the type
	}
	if i := strings.LastIndexAny(text, "\n;(,{\"'"); i >= 0 {
		text = text[i+1:]
	}
	text = strings.ReplaceAll(text, ampersand, "&")
	last := text[strings.LastIndexAny(text, " :.<[&*")+1:]
	if !slices.Contains(typeNames, strings.TrimRight(last, ">]?")) {
		return ""
	}
	end := len(text) - len(last)
	if i := strings.LastIndex(text[:end], ": "); i >= 0 {
		end = i
	} else if i := strings.LastIndexByte(text[:end], ':'); i >= 0 && (i == 0 || text[i-1] != ':') {
		end = i
	} else {
		end = max(0, strings.LastIndexByte(text[:end], ' '))
	}
	return nameBefore(text, end).name
}

// wrappers are the beginnings of constructors that make a value from a string: new String("…").
var wrappers = []string{
	"new String(", "String(", "[]byte(", "SecretStr(", "Secret(", "Buffer.from(", "new SecureString(",
}

// afterWrapper returns the offset after a constructor at s[at].
func afterWrapper(s string, at int) int {
	for _, w := range wrappers {
		if strings.HasPrefix(s[at:], w) {
			if q := at + len(w); q+1 < len(s) && (s[q] == '"' || s[q] == '\'' || s[q] == '\\') {
				return q
			}
		}
	}
	return at
}

// ampersand is the spelling of & in JSON that Go wrote.
const ampersand = `\u0026`

// afterTag returns the offset after a tag or an anchor of YAML at s[at]: !!str and &name.
func afterTag(s string, at int) int {
	for at < len(s) && (s[at] == '!' || s[at] == '&' || strings.HasPrefix(s[at:], ampersand)) {
		end := at
		if s[at] == '\\' {
			end += len(ampersand)
		}
		end += lengthOf(s[end:], func(c byte) bool { return dashed(c) || c == '!' || c == '&' })
		if end-at < 2 || end+1 >= len(s) || s[end] != ' ' {
			break
		}
		at = end + 1
	}
	return at
}

// backslashes counts the backslashes directly before s[p].
func backslashes(s string, p int) int {
	n := 0
	for n < p && s[p-1-n] == '\\' {
		n++
	}
	return n
}

// backslashesAt counts the backslashes from s[p] on.
func backslashesAt(s string, p int) int {
	return lengthOf(s[p:], func(c byte) bool { return c == '\\' })
}
