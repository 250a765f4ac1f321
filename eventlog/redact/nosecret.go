package redact

import (
	"slices"
	"strings"
)

// typeNames stand in place of a value in code: password: string.
var typeNames = []string{
	"string", "str", "String", "number", "int", "bool", "boolean", "none", "None", "null", "NULL", "nullptr",
	"nil", "true", "false", "True", "False", "undefined", "any", "bytes", "Token", "SecretStr", "text", "varchar",
	"VARCHAR", "TEXT", "char", "byte", "Option", "Optional", "object", "Buffer", "unknown", "never", "void",
	"self", "this", "new", "await", "yield", "not", "lambda", "func", "function", "fn", "async", "typeof", "if", "else", "return",
	"required", "optional", "input", "value", "default", "len", "len(", "data", "iota", "range", "struct", "interface", "enum", "class", "uintptr", "map", "chan", "uint8", "int32", "int64", "float", "Integer",
}

// proseWords stand after a colon in sentences.
var proseWords = []string{
	"a", "an", "the", "is", "was", "has", "not", "no", "must", "should", "may", "can", "cannot", "could", "will", "and", "or",
	"required", "missing", "invalid", "incorrect", "wrong", "expired", "empty", "none", "too", "please", "failed", "ok",
	"unexpected", "expected", "unknown", "denied", "set", "unset", "changed", "updated", "mismatch", "your", "see", "use",
	"options", "option", "flag", "flags", "argument", "to", "with", "from", "yes", "optional", "enabled", "disabled", "rejected", "accepted", "valid", "found", "do", "we", "you", "it", "in", "for", "if",
}

// fetchModes are the credentials of a browser's fetch.
var fetchModes = []string{"include", "omit", "same-origin"}

// stringPrefixes stand before a string in Python and C.
var stringPrefixes = []string{"r", "b", "f", "u", "rb", "br", "fr", "rf", "L", "@", "$"}

// closesHere reports whether the quote before v closed a string such as 'Password: '. Then v is the
// rest of the program.
func closesHere(v string) bool {
	for _, begin := range []string{")", ", ", ",", "; ", ";", " +", " %", " .", "]", " {", "} "} {
		if strings.HasPrefix(v, begin) {
			return true
		}
	}
	return false
}

// isReference reports whether a value only names the place of the secret, or stands in place of
// one: ${TOKEN}, {{ token }}, <token>, %s, ****.
func isReference(v string) bool {
	v = strings.Trim(v, `\`)
	if n := schemeOf(v); n > 0 {
		v = v[n:]
	}
	switch {
	case v == "", strings.HasSuffix(v, " ") && schemeOf(v+".") == len(v): // "Bearer " + token
		return true
	case strings.Trim(v, "*") == "", len(v) > 2 && strings.Trim(v, "xX") == "", strings.Trim(v, ".") == "", strings.Trim(v, "•") == "":
		return true
	case strings.Contains(v, redacted):
		return false
	case strings.HasPrefix(v, "${") || strings.HasPrefix(v, "$("), strings.HasPrefix(v, "{{"), strings.HasPrefix(v, "#{"):
		return true
	case v[0] == '$':
		name := v[1:]
		if len(name) < 4 && strings.Trim(name, "0123456789") == "" { // a parameter of SQL
			return true
		}
		return identifier(strings.TrimRight(name, "[;")) && (strings.ToUpper(name) == name || nameOf(strings.TrimRight(name, "[")) != plainName || strings.HasSuffix(name, "["))
	case v[0] == '{' || v[0] == '<' || v[0] == '%':
		last := v[len(v)-1]
		inner := strings.Trim(v, "{}<>% ")
		return isVerb(v) || v[0] == '{' && (last == '}' || identifier(inner)) || v[0] == '<' && last == '>' || v[0] == '%' && (len(v) <= 3 || last == '%' && identifier(inner))
	}
	lower := strings.ToLower(v)
	for _, begin := range []string{"your-", "your_", "your ", "process.env", "os.environ", "os.getenv", "env.", "env:", "secrets.", "vault:", "op://", "!ref", "!sub", "arn:aws:", "file:", "file://"} {
		if strings.HasPrefix(lower, begin) {
			return true
		}
	}
	return false
}

// isVerb reports whether v begins with a verb of printf and has little more.
func isVerb(v string) bool {
	return v[0] == '%' && len(v) > 1 && len(v) < 6 && isLower(v[1]) && (len(v) == 2 || !isWord(v[2]))
}

// isProse distinguishes a message, such as a label, from a password with blanks.
func isProse(v string) bool {
	if !strings.Contains(v, " ") {
		return strings.HasSuffix(v, ":")
	}
	for word := range strings.FieldsFuncSeq(strings.ToLower(v), func(r rune) bool { return r < 'a' || r > 'z' }) {
		switch word {
		case "password", "passwords", "token", "tokens", "secret", "secrets", "your", "must", "required", "invalid", "enter",
			"missing", "please", "passphrase", "forgot", "expired", "incorrect", "authentication", "authorization", "credentials":
			return true
		}
	}
	return false
}

// isCode reports whether v, which ends at s[to] without quotes, is program text: a type, a call or
// another variable.
func (sc *scanner) isCode(k key, v string, to int, spaced bool) bool {
	next := byte(0)
	if to < len(sc.s) {
		next = sc.s[to]
	}
	word := strings.TrimRight(strings.TrimLeft(v, "*&!@"), "?!;")
	if slices.Contains(typeNames, word) || slices.Contains(typeNames, strings.ToLower(word)) && spaced {
		return true
	}
	if strings.Trim(v, `+-*/%!?@#$^~.:|\[]{}()=_`) == "" || strings.HasPrefix(v, "[]") || strings.HasPrefix(v, "map[") {
		return true // the value begins later or is missing
	}
	if (next == '(' || strings.Contains(v, "(") || next == '<' && spaced) && isPath(strings.SplitN(word, "(", 2)[0]) {
		return true
	}
	if i := strings.IndexByte(word, '['); i > 0 && isPath(word[:i]) {
		return true
	}
	if _, rule, ok := strings.Cut(v, "*"); ok && spaced && !k.colon && identifier(rule) && isDigits(v[:len(v)-1-len(rule)]) {
		return true // a grammar: token = 1*tchar
	}
	if isDigits(v) {
		return len(v) < 4 && spaced || len(v) < 6 && k.endsWith("token", "secret", "key", "cookie", "cookies")
	}
	if i := strings.IndexByte(word, '.'); i > 0 && spaced && slices.Contains(receivers, word[:i]) && isPath(word) {
		return true
	}
	if !isPath(word) || strings.ContainsAny(word, "0123456789") {
		return false
	}
	if i := strings.LastIndexAny(word, ".>:"); i > 0 {
		return spaced || nameOf(word[i+1:]) != plainName || slices.Contains(receivers, word[:strings.IndexAny(word, ".>:-")])
	}
	if nameOf(strings.TrimSuffix(word, "s")) == secretName || len(word) < 3 && strings.IndexByte(",;)}", next) >= 0 {
		return true // another variable
	}
	if !spaced {
		return false
	}
	if !k.colon && k.endsWith("token") && (isUpper(word[0]) && strings.ToUpper(word) != word || strings.Contains(k.name, ".")) {
		return true // a class or a field
	}
	if !k.colon {
		return next == ';' || next == ')' || next == ',' || next == '}' || strings.HasSuffix(v, ";")
	}
	capital := isUpper(word[0]) && !isUpper(word[len(word)-1])
	return next == ',' || next == ')' || next == '<' || next == '|' || next == '&' || next == ';' || capital && (next == 0 || next == ' ' || next == '\n') && !k.startsLine(sc.s)
}

var receivers = []string{
	"self", "this", "config", "cfg", "conf", "settings", "req", "request", "user", "ctx", "args", "opts", "options", "params",
	"data", "secrets", "var", "vars", "local", "module", "input", "state", "props", "body", "form", "env", "flags", "creds",
}

// isPath reports whether v is a list of names with dots, arrows or colons between them.
func isPath(v string) bool {
	for part := range strings.SplitSeq(strings.ReplaceAll(strings.ReplaceAll(v, "->", "."), "::", "."), ".") {
		if !identifier(part) {
			return false
		}
	}
	return true
}

func isDigits(v string) bool { return strings.Trim(v, "0123456789") == "" }

func identifier(v string) bool {
	for i := range len(v) {
		if !isWord(v[i]) && v[i] != '_' || i == 0 && isDigit(v[i]) {
			return false
		}
	}
	return v != ""
}

// isFile reports whether v names a file.
func isFile(v string) bool {
	return strings.HasPrefix(v, "/") || strings.HasPrefix(v, "./") || strings.HasPrefix(v, "~") || strings.HasSuffix(v, ".json")
}
