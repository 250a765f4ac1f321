package redact

import (
	"slices"
	"strings"
)

// nameEnds are the endings of names of secrets that may have no separator after them.
var nameEnds = []string{
	"word", "WORD", "passwd", "PASSWD", "secret", "Secret", "SECRET", "token", "Token", "TOKEN",
	"-key", "_key", "Key", "_KEY", "pass", "PASS", "auth", "phrase", "PHRASE", "bindpw", "rootpw", "_base", "rization",
}

// setters stand before a name that is followed by its value.
var setters = []string{"set", "-gx", "-x", "-Ux", "setx", "setenv", "SetEnv", "export", "define", "ENV", "putenv"}

// maskSpaced masks values that only a blank or a bracket separates from their names: set API_KEY
// VALUE, -password VALUE, #define TOKEN "VALUE", setPassword("VALUE").
func maskSpaced(t *text) *edits {
	s, sc := t.s, newScanner(t)
	for _, at := range t.spaced {
		c := s[at]
		if at < sc.done {
			continue
		}
		k := nameBefore(s, at)
		if k.naming = sc.nameOf(k.name); k.quote != 0 || k.naming == plainName || k.naming == maybeName && !k.isSet(s) {
			continue
		}
		from, to := 0, 0
		if c == ' ' || c == '\t' {
			from, to = sc.spacedValue(k, at)
		} else {
			from, to = sc.onlyArgument(k, at+1)
		}
		if from < to && (k.naming == secretName || k.looksLike(s[from:to], true)) {
			sc.maskRange(from, to)
		}
	}
	return &sc.edits
}

// spacedValue returns the place of the value after the blanks at s[at].
func (sc *scanner) spacedValue(k key, at int) (from, to int) {
	s := sc.s
	from = at + lengthOf(s[at:], func(c byte) bool { return c == ' ' || c == '\t' })
	flag, set := strings.HasPrefix(k.name, "-"), k.isSet(s)
	compound := len(splitWords(k.name)) > 1
	password := k.endsWith("password", "passwd", "pwd", "passphrase", "pass")
	if from, to, ok := sc.openedString(from); ok {
		v := s[from:to]
		if n := schemeOf(v); n > 0 && k.endsWith("authorization") && !isReference(v[n:]) {
			return from, to
		}
		switch {
		case len(v) < 6 || strings.ContainsAny(v, " /\n\t{") || isReference(v) || isProse(v) || closesHere(v):
		case flag, set, password && !identifierWithDash(v), compound && looksSecret(v):
			return from, to
		}
		return 0, 0
	}
	to = sc.bareEnd(from, " \t,;`|<>&")
	v := s[from:to]
	if len(v) < 4 || strings.IndexByte("-=:({[.+*/|&<>!", v[0]) >= 0 || isReference(v) || strings.Contains(v, redacted) || !notInProse(v) {
		return 0, 0
	}
	ends := to == len(s) || s[to] == '"' || s[to] == '\'' || breakAt(s, to) > 0
	switch {
	case flag && (strings.HasPrefix(k.name, "--") || notWord(v) || password && len(v) >= 6), set && len(v) >= 6 && !sc.isCode(k, v, to, true):
		return from, to
	case ends && len(v) >= 6 && k.name == "password" && isLogin(s[max(0, k.start-64):k.start]):
		return from, to
	case ends && len(v) >= 20 && random(v) && !strings.ContainsAny(v, "./:()"):
		return from, to
	case ends && (compound || k.startsLine(s)) && len(v) >= 12 && random(v) && !strings.ContainsAny(v, "./:()"):
		return from, to
	case ends && k.startsLine(s) && len(v) >= 8 && settingName(k.name) && isLower(v[0]) && lengthOf(v, isLower) == len(v) && !slices.Contains(typeNames, v):
		return from, to
	}
	return 0, 0
}

// isLogin reports whether text ends with user and a user's name.
func isLogin(text string) bool {
	words := strings.Fields(text)
	if n := len(words); n > 1 && strings.HasSuffix(text, " ") {
		return slices.Contains([]string{"user", "username", "connect"}, words[n-2]) && !slices.Contains([]string{"and", "or", "name", "with", "a", "the", "enters", "has"}, words[n-1])
	}
	return false
}

// notWord reports whether v cannot be a word of a sentence.
func notWord(v string) bool {
	return len(v) >= 6 && strings.ContainsAny(v, "0123456789") || len(v) >= 16
}

// settingName reports whether the name is that of a password in settings files.
func settingName(name string) bool {
	return strings.HasSuffix(name, ".password") || strings.HasSuffix(name, "_password") || name == "bindpw" || name == "rootpw" || name == "requirepass" || name == "masterauth"
}

// identifierWithDash reports whether v is an identifier such as my-db-password.
func identifierWithDash(v string) bool {
	return nameOf(v) != plainName && strings.ContainsAny(v, "-_")
}

// isSet reports whether the word before the name sets it.
func (k key) isSet(s string) bool {
	end := k.start
	for end > 0 && s[end-1] == ' ' && k.start-end < 4 {
		end--
	}
	if end == k.start {
		i := strings.LastIndexByte(s[max(0, end-80):end], ' ') // config set //host/:_authToken
		if i < 0 || !strings.HasSuffix(s[:end], "/:") {
			return false
		}
		end = max(0, end-80) + i
	}
	begin := end
	for begin > 0 && end-begin < 12 && (dashed(s[begin-1])) {
		begin--
	}
	word := s[begin:end]
	for len(word) > 1 && word[0] == 'n' && begin > 0 && s[begin-1] == '\\' {
		word = word[1:]
		begin++
	}
	return slices.Contains(setters, word)
}

// openedString returns the text in the quotes that open at s[at].
func (sc *scanner) openedString(at int) (from, to int, ok bool) {
	s := sc.s
	n := lengthOf(s[at:], func(c byte) bool { return c == '\\' })
	q := at + n
	if q >= len(s) || s[q] != '"' && s[q] != '\'' || n&(n+1) != 0 || n == 0 && s[q] == '"' && sc.isJSON(q) {
		return 0, 0, false
	}
	to = sc.closing(q+1, s[q], n)
	return q + 1, to, to+n < len(s) && s[to+n] == s[q]
}

// verbs begin the names of functions that take no secret.
var verbs = []string{
	"get", "read", "has", "is", "find", "load", "parse", "check", "test", "expect", "create", "validate", "delete", "revoke",
	"decode", "verify", "fetch", "next", "peek", "match", "accept", "lookup", "assert", "generate", "no", "require", "resolve", "on", "add", "remove", "use", "ask", "prompt", "forgot", "change",
}

// onlyArgument returns the place of the only argument in setPassword("…"), after its bracket.
func (sc *scanner) onlyArgument(k key, at int) (from, to int) {
	s := sc.s
	from, to, ok := sc.openedString(at)
	if !ok {
		return 0, 0
	}
	after := to + (from - 1 - at) + 1
	v := s[from:to]
	words := splitWords(k.name)
	if after >= len(s) || s[after] != ')' && s[after] != '}' || len(v) < 6 || slices.ContainsFunc(words, func(w string) bool { return slices.Contains(verbs, w) }) {
		return 0, 0
	}
	password := k.endsWith("password", "passwd", "pwd", "passphrase", "pass")
	if strings.ContainsAny(v, " /\n") || isReference(v) || isProse(v) || strings.Contains(v, redacted) || nameOf(v) != plainName ||
		!(looksSecret(v) && random(v) || len(v) >= 24 && !strings.ContainsAny(v, "-_.") || password) {
		return 0, 0
	}
	return from, to
}

// typedName returns the name before a type that ends at the = at s[p]: var password string = "…" or
// token: &str = "…".
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

// afterWrapper skips a constructor of a value from a string: new String("…").
func afterWrapper(s string, at int) int {
	for _, w := range []string{"new String(", "String(", "[]byte(", "SecretStr(", "Secret(", "Buffer.from(", "new SecureString("} {
		if strings.HasPrefix(s[at:], w) {
			if q := at + len(w); q+1 < len(s) && (s[q] == '"' || s[q] == '\'' || s[q] == '\\') {
				return q
			}
		}
	}
	return at
}

// ampersand is & in Go's JSON.
const ampersand = `\u0026`

// afterTag skips a tag or an anchor of YAML: !!str and &name.
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
