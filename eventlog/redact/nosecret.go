package redact

import (
	"slices"
	"strings"
)

// typeNames are names of types that follow a name in code: password: string.
var typeNames = []string{
	"string", "str", "String", "number", "int", "bool", "boolean", "none", "None", "null", "NULL", "nullptr",
	"nil", "true", "false", "True", "False", "undefined", "any", "bytes", "Token", "SecretStr", "text", "varchar",
	"VARCHAR", "TEXT", "char", "byte", "Option", "Optional", "object", "Buffer", "unknown", "never", "void",
	"self", "this", "new", "await", "yield", "not", "lambda", "func", "function", "fn", "async", "typeof", "if", "else",
	"return",
	"required", "optional", "input", "value", "default", "len", "len(", "data", "iota", "range", "struct", "interface",
	"enum", "class", "uintptr", "map", "chan", "uint8", "int32", "int64", "float", "Integer",
}

// proseWords are words that follow a colon in a sentence, such as "password: required". They are not secrets.
var proseWords = []string{
	"a", "an", "the", "is", "was", "has", "not", "no", "must", "should", "may", "can", "cannot", "could", "will", "and",
	"or",
	"required", "missing", "invalid", "incorrect", "wrong", "expired", "empty", "none", "too", "please", "failed", "ok",
	"unexpected", "expected", "unknown", "denied", "set", "unset", "changed", "updated", "mismatch", "your", "see", "use",
	"options", "option", "flag", "flags", "argument", "to", "with", "from", "yes", "optional", "enabled", "disabled",
	"rejected", "accepted", "valid", "found", "do", "we", "you", "it", "in", "for", "if",
}

// fetchModes are the values of the option "credentials" of fetch in a browser. They are not secrets.
var fetchModes = []string{"include", "omit", "same-origin"}

// stringPrefixes are the prefixes of strings in programs, such as the r of r"…" in Python.
var stringPrefixes = []string{"r", "b", "f", "u", "rb", "br", "fr", "rf", "L", "@", "$"}

// closesHere reports whether v is program text after a string such as 'Password: '. The quote before v then closed
// that string.
func closesHere(v string) bool {
	for _, begin := range []string{")", ", ", ",", "; ", ";", " +", " %", " .", "]", " {", "} "} {
		if strings.HasPrefix(v, begin) {
			return true
		}
	}
	return false
}

// reference is a row of the table references. It describes values that are no secret, such as a variable or a
// placeholder.
type reference struct {
	kind    string // in words
	fits    func(v string) bool
	example string // a value for which only this row is true
}

var references = []reference{
	{"a scheme before a variable", func(v string) bool { return strings.HasSuffix(v, " ") && schemeOf(v+".") == len(v) },
		"Bearer "},
	{"stars", func(v string) bool { return strings.Trim(v, "*") == "" }, "********"},
	{"crosses", func(v string) bool { return len(v) > 2 && strings.Trim(v, "xX") == "" }, "xxxxxxxx"},
	{"dots", func(v string) bool { return strings.Trim(v, ".") == "" }, "..."},
	{"bullets", func(v string) bool { return strings.Trim(v, "•") == "" }, "••••••••"},
	{"a variable in brackets", func(v string) bool { return strings.HasPrefix(v, "${") || strings.HasPrefix(v, "$(") },
		"${DB_PASSWORD}"},
	{"a template", func(v string) bool { return strings.HasPrefix(v, "{{") }, "{{ db.word | quote"},
	{"an expression of Ruby", func(v string) bool { return strings.HasPrefix(v, "#{") }, "#{db_password}"},
	{"a parameter of SQL", func(v string) bool { return v[0] == '$' && len(v) < 5 && isDigits(v[1:]) }, "$12"},
	{"a variable", func(v string) bool { return v[0] == '$' && isVariable(v[1:]) }, "$DB_PASSWORD"},
	{"a verb of printf", isVerb, "%s:%s"},
	{"a field of a template",
		func(v string) bool { return v[0] == '{' && (v[len(v)-1] == '}' || identifier(trimBrackets(v))) }, "{db_password}"},
	{"a placeholder", func(v string) bool { return v[0] == '<' && v[len(v)-1] == '>' }, "<db-password>"},
	{"a short verb", func(v string) bool { return v[0] == '%' && len(v) <= 3 }, "%5"},
	{"a variable of Windows",
		func(v string) bool { return v[0] == '%' && v[len(v)-1] == '%' && identifier(trimBrackets(v)) }, "%DB_PASSWORD%"},
	{"the place of a secret", namesPlace, "os.environ[X]"},
}

// isReference reports whether a value is a variable, a placeholder or another stand-in for a secret.
func isReference(v string) bool {
	v = strings.Trim(v, `\`)
	if n := schemeOf(v); n > 0 {
		v = v[n:]
	}
	if v == "" {
		return true
	}
	return !strings.Contains(v, redacted) && slices.ContainsFunc(references, func(r reference) bool { return r.fits(v) })
}

// isVariable reports whether name is the name of a variable of a shell or of Perl. The name may end with "[", because
// an index may follow it, as in $token[0].
func isVariable(name string) bool {
	variable := strings.TrimRight(name, "[;")
	if !identifier(variable) {
		return false
	}
	isIndexed := strings.HasSuffix(name, "[")
	return isIndexed || strings.ToUpper(name) == name || nameOf(strings.TrimRight(name, "[")) != plainName
}

func trimBrackets(v string) string { return strings.Trim(v, "{}<>% ") }

// placePrefixes are the beginnings of values that say where a secret is stored.
var placePrefixes = []string{
	"your-", "your_", "your ", "process.env", "os.environ", "os.getenv", "env.", "env:", "secrets.", "vault:", "op://",
	"!ref", "!sub", "arn:aws:", "file:",
}

func namesPlace(v string) bool {
	lower := strings.ToLower(v)
	return slices.ContainsFunc(placePrefixes, func(begin string) bool { return strings.HasPrefix(lower, begin) })
}

// isVerb reports whether v begins with a verb of printf and has little other text.
func isVerb(v string) bool {
	return v[0] == '%' && len(v) > 1 && len(v) < 6 && isLower(v[1]) && (len(v) == 2 || !isWord(v[2]))
}

// isProse reports whether v is a message, such as a label, and not a password with blanks.
func isProse(v string) bool {
	if !strings.Contains(v, " ") {
		return strings.HasSuffix(v, ":")
	}
	for word := range strings.FieldsFuncSeq(strings.ToLower(v), func(r rune) bool { return r < 'a' || r > 'z' }) {
		switch word {
		case "password", "passwords", "token", "tokens", "secret", "secrets", "your", "must", "required", "invalid", "enter",
			"missing", "please", "passphrase", "forgot", "expired", "incorrect", "authentication", "authorization",
			"credentials":
			return true
		}
	}
	return false
}

// codeRows decide whether a word without quotes is program text: a type, a call or another variable.
var codeRows = []row{
	{"a type", nil, func(f *field) bool { return slices.Contains(typeNames, f.word) }, keep, `password=string`},
	{"a type in capitals", isApart, func(f *field) bool { return slices.Contains(typeNames, strings.ToLower(f.word)) },
		keep, `my password = BOOLEAN`},
	{"punctuation: the value begins later or is missing", nil,
		func(f *field) bool { return strings.Trim(f.value, punctuation) == "" }, keep, `password=_`},
	{"a type of Go", nil,
		func(f *field) bool { return strings.HasPrefix(f.value, "[]") || strings.HasPrefix(f.value, "map[") }, keep,
		`password=[]rune{1}`},
	{"a call", func(f *field) bool { return isCall(f) || f.apart && f.nextIs("<") },
		func(f *field) bool { return isPath(strings.SplitN(f.word, "(", 2)[0]) }, keep, `password=read(file)`},
	{"an element of a list", nil,
		func(f *field) bool { list, _, ok := strings.Cut(f.word, "["); return ok && isPath(list) }, keep,
		`password=words2[1]`},
	{"a rule of a grammar", func(f *field) bool { return f.apart && !f.colon }, isGrammar, keep, `token = 1*tchar1`},
	{"a small number", isApart, func(f *field) bool { return isDigits(f.value) && len(f.value) < 4 }, keep,
		`password = 123`},
	{"a counter", func(f *field) bool { return f.endsWith("token", "secret", "key", "cookie", "cookies") },
		func(f *field) bool { return isDigits(f.value) && len(f.value) < 6 }, keep, `token=12345`},
	{"a member of a receiver", isApart, func(f *field) bool {
		first, _, ok := strings.Cut(f.word, ".")
		return ok && slices.Contains(receivers, first) && isPath(f.word)
	}, keep, `password = config.part2`},
	{"no list of names", nil,
		func(f *field) bool { return !isPath(f.word) || strings.ContainsAny(f.word, "0123456789") }, mask,
		`password = hunter2;`},
	{"a list of names", isApart, func(f *field) bool { return strings.ContainsAny(f.word, ".>:") }, keep,
		`password = login.word`},
	{"a list of names that ends with the name of a secret", nil,
		func(f *field) bool { return nameOf(lastName(f.word)) != plainName && lastName(f.word) != f.word }, keep,
		`password=login.jwt`},
	{"a list of names after a receiver", nil, func(f *field) bool { return hasReceiver(f.word) }, keep,
		`password=config.word`},
	{"any other list of names", nil, func(f *field) bool { return lastName(f.word) != f.word }, mask,
		`password=login.passwords`},
	{"another variable", nil, func(f *field) bool { return nameOf(strings.TrimSuffix(f.word, "s")) == secretName }, keep,
		`password=passwords`},
	{"a short variable", nil, func(f *field) bool { return len(f.word) < 3 && f.nextIs(",;)}") }, keep,
		`login(password=pw, x)`},
	{"a word directly after its separator", func(f *field) bool { return !f.apart }, nil, mask, `password=hunter;`},
	{"a class", func(f *field) bool { return !f.colon && f.endsWith("token") },
		func(f *field) bool { return isUpper(f.word[0]) && strings.ToUpper(f.word) != f.word }, keep, `token = Comma`},
	{"a token of a member",
		func(f *field) bool { return !f.colon && f.endsWith("token") && strings.Contains(f.name, ".") }, nil, keep,
		`parser.token = comma`},
	{"the end of an assignment", func(f *field) bool { return !f.colon },
		func(f *field) bool { return f.nextIs(";),}") || strings.HasSuffix(f.value, ";") }, keep, `password = hunter;`},
	{"any other assignment", func(f *field) bool { return !f.colon }, nil, mask, `password = hunter|x`},
	{"a type before its end", nil, func(f *field) bool { return f.nextIs(",)<|&;") }, keep, `(password: hunter, x)`},
	{"a class at the end of a line", func(f *field) bool { return !f.startsLine(f.text) }, isClass, keep,
		`var password: Hunter`},
	{"any other word", nil, nil, mask, `password: hunter`},
}

const punctuation = `+-*/%!?@#$^~.:|\[]{}()=_`

// isCode reports whether the value is program text.
func isCode(f *field) bool {
	f.word = strings.TrimRight(strings.TrimLeft(f.value, "*&!@"), "?!;")
	return !isSecret(codeRows, f)
}

func isApart(f *field) bool { return f.apart }

// isCall reports whether there is an opening bracket in the value or after it.
func isCall(f *field) bool { return f.nextIs("(") || strings.Contains(f.value, "(") }

// isGrammar reports whether the value is a rule of a grammar, such as 1*tchar: a number, a star and a name.
func isGrammar(f *field) bool {
	times, rule, ok := strings.Cut(f.value, "*")
	return ok && identifier(rule) && isDigits(times)
}

// hasReceiver reports whether v is a member of a variable with a common name, such as config.token.
func hasReceiver(v string) bool {
	i := strings.IndexAny(v, ".>:-")
	return i > 0 && slices.Contains(receivers, v[:i])
}

// lastName returns the last name in a list such as a.b or a::b.
func lastName(v string) string { return v[strings.LastIndexAny(v, ".>:")+1:] }

// isClass reports whether the value may be the name of a class. Such a name begins with a capital, and a blank or the
// end of the line follows it.
func isClass(f *field) bool {
	w := f.word
	return isUpper(w[0]) && !isUpper(w[len(w)-1]) && (f.next() == 0 || f.nextIs(" \n"))
}

var receivers = []string{
	"self", "this", "config", "cfg", "conf", "settings", "req", "request", "user", "ctx", "args", "opts", "options",
	"params",
	"data", "secrets", "var", "vars", "local", "module", "input", "state", "props", "body", "form", "env", "flags",
	"creds",
}

// isPath reports whether v consists of names with dots, arrows or double colons between them.
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
	return strings.HasPrefix(v, "/") || strings.HasPrefix(v, "./") || strings.HasPrefix(v, "~") ||
		strings.HasSuffix(v, ".json")
}
