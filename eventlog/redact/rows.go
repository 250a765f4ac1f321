package redact

import (
	"slices"
	"strings"
)

// row is a row of a table that decides whether the value of a field is a secret. The first row that matches the field
// decides. If no row matches, the value is not a secret.
type row struct {
	kind    string // the kind of value, in words
	before  shape  // the shape of the name and of the text before the value; nil matches every field
	value   shape  // the shape of the value and of the text after it; nil matches every field
	secret  bool
	example string // a text for which this row decides
}

// shape reports whether a field has a certain shape.
type shape func(f *field) bool

// The verdicts of a row.
const (
	keep = false
	mask = true
)

func isSecret(rows []row, f *field) bool {
	for i := range rows {
		r := &rows[i]
		if (r.before == nil || r.before(f)) && (r.value == nil || r.value(f)) {
			return r.secret
		}
	}
	return keep
}

// quotedRows decide about a value in quotes after a separator.
var quotedRows = []row{
	{"a value that does not look like one", isMaybe, looksPlain, keep, `my_key = "the name"`},
	{"the accesskey of HTML", func(f *field) bool { return f.endsWith("accesskey") },
		func(f *field) bool { return len(f.value) < 3 }, keep, `<a accesskey="k">`},
	{"the rest of a program after a label", func(f *field) bool { return f.quote == 0 },
		func(f *field) bool { return closesHere(f.value) }, keep, `print("password: ", end="")`},
	{"the kind of a token in a comparison", func(f *field) bool { return f.compares && f.endsWith("token") },
		func(f *field) bool { return !looksSecret(f.value) }, keep, `if token == "comma" {`},
	{"a reference", nil, func(f *field) bool { return isReference(f.value) }, keep, `password = "${DB_PASSWORD}"`},
	{"a message", nil, func(f *field) bool { return isProse(f.value) }, keep, `password: "must not be empty"`},
	{"the name itself", nil, func(f *field) bool { return strings.EqualFold(f.value, f.name) }, keep,
		`password = "Password"`},
	{"a character as a token", func(f *field) bool { return f.opening == '\'' && f.endsWith("token") },
		func(f *field) bool { return len(strings.TrimLeft(f.value, `\`)) == 1 }, keep, `token = '\n'`},
	{"the credentials of a browser's fetch", isCredentials, isFetchMode, keep, `credentials: "include"`},
	{"any other text", nil, nil, mask, `password = "hunter2"`},
}

// bareRows decide about a value without quotes after a separator.
var bareRows = []row{
	{"a reference", nil, func(f *field) bool { return isReference(f.value) }, keep, `password=${DB_PASSWORD}`},
	{"the credentials of a browser's fetch, or their file", isCredentials,
		func(f *field) bool { return isFetchMode(f) || isFile(f.value) }, keep, `credentials=/etc/shop.conf`},
	{"a value that does not look like one", isMaybe, looksPlain, keep, `my_key=name`},
	{"a word after a name of two words", func(f *field) bool { return f.spaced },
		func(f *field) bool { return (!looksSecret(f.value) || isPath(f.value)) && len(f.value) < 20 }, keep,
		`the api key: rotated`},
	{"an element of a list with colons", func(f *field) bool { return f.colon && f.start > 0 && f.text[f.start-1] == ':' },
		func(f *field) bool { return len(f.value) < 20 }, keep, `app.js:token:expected1`},
	{"program text", func(f *field) bool { return !f.query },
		func(f *field) bool { return !strings.Contains(f.value, redacted) && isCode(f) }, keep, `password: string`},
	{"a word of a sentence", func(f *field) bool { return f.colon && f.apart }, isWordInProse, keep,
		`unexpected token: identifier`},
	{"a working directory", func(f *field) bool { return f.naming == secretName && f.endsWith("pwd") },
		func(f *field) bool { return strings.HasPrefix(f.value, "/") && strings.Count(f.value, "/") > 1 }, keep,
		`pwd=/home/ann/src`},
	{"any other word", nil, nil, mask, `password=hunter2`},
}

// spacedRows decide about a value without quotes if only blanks separate it from its name.
var spacedRows = []row{
	{"a short word", nil, func(f *field) bool { return len(f.value) < 4 }, keep, `tool --db.password abc x`},
	{"a word of a sentence", nil, func(f *field) bool { return !notInProse(f.value) }, keep, `the --password option`},
	{"punctuation", nil, func(f *field) bool { return strings.IndexByte("-=:({[.+*/|&<>!", f.value[0]) >= 0 }, keep,
		`tool --password -verbose1`},
	{"a mask", nil, func(f *field) bool { return strings.Contains(f.value, redacted) }, keep,
		`tool --password a[redacted]`},
	{"the value of a long flag", func(f *field) bool { return strings.HasPrefix(f.name, "--") }, nil, mask,
		`tool --db.password abcd x`},
	{"the value of a flag", func(f *field) bool { return f.isFlag() },
		func(f *field) bool { return notWord(f.value) || f.isPassword() && len(f.value) >= 6 }, mask,
		`tool -password letmein x`},
	{"the value after a setter", isSet, func(f *field) bool { return len(f.value) >= 6 && !isCode(f) }, mask,
		`set API_TOKEN hunters x`},
	{"the password after a user", func(f *field) bool { return f.name == "password" },
		func(f *field) bool { return len(f.value) >= 6 && f.endsLine() && followsUser(f) }, mask, `user bob password hunter`},
	{"a long random word", nil, func(f *field) bool { return f.endsLine() && len(f.value) >= 20 && isRandomWord(f) }, mask,
		`the token a1b2c3d4e5f6g7h8i9j0`},
	{"a random word in a file of settings", func(f *field) bool { return f.isCompound() || f.startsLine(f.text) },
		func(f *field) bool { return f.endsLine() && len(f.value) >= 12 && isRandomWord(f) }, mask,
		`requirepass a1b2c3d4e5f6`},
	{"a word in a file of settings", func(f *field) bool { return f.startsLine(f.text) && settingName(f.name) },
		func(f *field) bool { return f.endsLine() && isLongWord(f) }, mask, `database.password correcthorse`},
}

// spacedQuotedRows decide about a value in quotes if only blanks separate it from its name.
var spacedQuotedRows = []row{
	{"the credentials of a scheme", func(f *field) bool { return f.endsWith("authorization") }, isCredential, mask,
		`[:authorization "Bearer hunter2"]`},
	{"a short text", nil, func(f *field) bool { return len(f.value) < 6 }, keep, `#define PASSWORD "abc"`},
	{"a path or a message", nil,
		func(f *field) bool { return strings.ContainsAny(f.value, " /\n\t{") || isProse(f.value) }, keep,
		`import password "example.com/x"`},
	{"a reference", nil, func(f *field) bool { return isReference(f.value) }, keep, `set API_TOKEN "$API_TOKEN"`},
	{"the rest of a program after a label", nil, func(f *field) bool { return closesHere(f.value) }, keep,
		`set API_TOKEN "),abcdef"`},
	{"the value of a flag or after a setter", func(f *field) bool { return f.isFlag() || f.isSet(f.text) }, nil, mask,
		`#define TOKEN "hunter"`},
	{"a password", func(f *field) bool { return f.isPassword() },
		func(f *field) bool { return !identifierWithDash(f.value) }, mask, `WITH PASSWORD 'hunter2'`},
	{"a key", func(f *field) bool { return f.isCompound() }, func(f *field) bool { return looksSecret(f.value) }, mask,
		`(setq api-key "hunter22")`},
}

// argumentRows decide about the argument of a function that has the name of a secret.
var argumentRows = []row{
	{"an argument that others follow", nil, func(f *field) bool { return !f.closed }, keep, `setPassword("hunter2", 1)`},
	{"a short text", nil, func(f *field) bool { return len(f.value) < 6 }, keep, `setPassword("abc")`},
	{"an argument of a function that takes no secret", hasVerb, nil, keep, `getPassword("hunter2")`},
	{"a path or a message", nil, func(f *field) bool { return strings.ContainsAny(f.value, " /\n") || isProse(f.value) },
		keep, `setPassword("a/b/c/d")`},
	{"a reference", nil, func(f *field) bool { return isReference(f.value) }, keep, `setPassword("${DB_PASSWORD}")`},
	{"a mask", nil, func(f *field) bool { return strings.Contains(f.value, redacted) }, keep,
		`setPassword("abc[redacted]")`},
	{"a name of a secret", nil, func(f *field) bool { return nameOf(f.value) != plainName }, keep,
		`setPassword("db_password")`},
	{"a password", func(f *field) bool { return f.isPassword() }, nil, mask, `setPassword("hunter")`},
	{"a random text", nil, func(f *field) bool { return looksSecret(f.value) && random(f.value) }, mask,
		`setToken("a1b2c3d4")`},
	{"a long text", nil, func(f *field) bool { return len(f.value) >= 24 && !strings.ContainsAny(f.value, "-_.") }, mask,
		`setToken("abcdefghijklmnopqrstuvwx")`},
}

func isMaybe(f *field) bool { return f.naming == maybeName }

func looksPlain(f *field) bool { return !f.looksLike() }

func isCredentials(f *field) bool { return f.endsWith("credentials") }

func isFetchMode(f *field) bool { return slices.Contains(fetchModes, f.value) }

func isSet(f *field) bool { return f.isSet(f.text) }

// isCredential reports whether the value is a scheme with a credential.
func isCredential(f *field) bool {
	n := schemeOf(f.value)
	return n > 0 && !isReference(f.value[n:])
}

// followsUser reports whether the word user and the name of a user precede the name.
func followsUser(f *field) bool {
	before := f.text[max(0, f.start-64):f.start]
	words := strings.Fields(before)
	if n := len(words); n > 1 && strings.HasSuffix(before, " ") {
		return slices.Contains(logins, words[n-2]) && !slices.Contains(notUsers, words[n-1])
	}
	return false
}

var (
	logins   = []string{"user", "username", "connect"}
	notUsers = []string{"and", "or", "name", "with", "a", "the", "enters", "has"}
)

// isRandomWord reports whether the value is random and not an address or a path.
func isRandomWord(f *field) bool { return random(f.value) && !strings.ContainsAny(f.value, "./:()") }

// isLongWord reports whether the value has only small letters.
func isLongWord(f *field) bool {
	v := f.value
	return len(v) >= 8 && lengthOf(v, isLower) == len(v) && !slices.Contains(typeNames, v)
}

// notWord reports whether v cannot be a word of a sentence.
func notWord(v string) bool {
	return len(v) >= 6 && strings.ContainsAny(v, "0123456789") || len(v) >= 16
}

// settingNames are names of passwords in settings files.
var settingNames = []string{"bindpw", "rootpw", "requirepass", "masterauth"}

// settingName reports whether name is the name of a password in settings files.
func settingName(name string) bool {
	return slices.Contains(settingNames, name) ||
		strings.HasSuffix(name, ".password") || strings.HasSuffix(name, "_password")
}

// identifierWithDash reports whether v is an identifier such as my-db-password.
func identifierWithDash(v string) bool {
	return nameOf(v) != plainName && strings.ContainsAny(v, "-_")
}

// verbs are words in names of functions, such as the word get in getPassword. The argument of such a function is not a
// secret.
var verbs = []string{
	"get", "read", "has", "is", "find", "load", "parse", "check", "test", "expect", "create", "validate", "delete",
	"revoke", "decode", "verify", "fetch", "next", "peek", "match", "accept", "lookup", "assert", "generate", "no",
	"require", "resolve", "on", "add", "remove", "use", "ask", "prompt", "forgot", "change",
}

func hasVerb(f *field) bool {
	return slices.ContainsFunc(splitWords(f.name), func(w string) bool { return slices.Contains(verbs, w) })
}

// isWordInProse reports whether the value is a word of a sentence. It is one in "unexpected token: foo", but not in
// the line "token: foo" of a settings file.
func isWordInProse(f *field) bool {
	v := f.value
	if slices.Contains(proseWords, strings.ToLower(strings.Trim(v, ".!?"))) {
		return true
	}
	if f.isPassword() || f.endsWith("key", "passwort") || looksSecret(v) {
		return false
	}
	return !f.startsLine(f.text) && !f.isCompound() || len(v) < 6
}
