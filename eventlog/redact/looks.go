package redact

import (
	"encoding/base64"
	"strings"
)

// look is a row of the table looks. The first row with a matching name decides. Its function in the field "secret"
// reports whether the value is a secret.
type look struct {
	names   shape // nil matches every name
	secret  shape
	example string // a text for which this row decides
}

// looks decide about the value of a name such as key or auth, which may be harmless.
var looks = []look{
	{func(f *field) bool { return strings.HasSuffix(f.value, redacted) }, func(f *field) bool { return true },
		`auth=bob[redacted]`},
	{func(f *field) bool { return f.query },
		func(f *field) bool {
			return len(f.value) >= 8 && (looksSecret(f.value) || f.endsWith("key")) && !strings.ContainsAny(f.value, "./")
		}, `?key=abcdefgh`},
	{func(f *field) bool { return f.endsWith("pass") && f.isCompound() },
		func(f *field) bool {
			return len(f.value) >= 8 && random(f.value) && !strings.ContainsAny(f.value, "/ .:")
		}, `second_pass=shadow`},
	{func(f *field) bool { return f.endsWith("pass", "pw") },
		func(f *field) bool {
			return f.isMarked() && len(f.value) >= 4 && !isDigits(f.value) && !strings.ContainsAny(f.value, "/ ")
		}, `pass=hunter`},
	{func(f *field) bool { return f.endsWith("pin", "otp") },
		func(f *field) bool {
			return f.isMarked() && isDigits(f.value) && len(f.value) >= 4 && len(f.value) <= 8
		}, `pin=1234`},
	{func(f *field) bool { return f.endsWith("key") },
		func(f *field) bool {
			return random(f.value) && !strings.ContainsAny(f.value, " :") && isLongKey(f.value)
		}, `my_key=a1b2c3d4`},
	{func(f *field) bool { return f.endsWith("mnemonic") },
		func(f *field) bool { return len(strings.Fields(f.value)) >= 12 }, `mnemonic="a b c d e f g h i j k l"`},
	{func(f *field) bool { return f.endsWith("auth") && f.marked },
		func(f *field) bool {
			return len(f.value) >= 20 && isRun(f.value) ||
				len(f.value) >= 8 && random(f.value) && !strings.Contains(f.value, " ")
		}, `auth="abcdefghijklmnopqrst"`},
	{nil,
		func(f *field) bool {
			return len(f.value) >= 8 && !strings.Contains(f.value, " ") && (random(f.value) || isBasic(f.value))
		}, `jwt=a1b2c3d4`},
}

// looksLike reports whether the value of a maybeName looks like a secret.
func (f field) looksLike() bool {
	f.value = strings.TrimPrefix(f.value, "base64:")
	for i := range looks {
		if l := &looks[i]; l.names == nil || l.names(&f) {
			return l.secret(&f)
		}
	}
	return false
}

// isMarked reports whether quotes, a word such as export, or a separator other than a colon mark the value. After a
// colon, an unmarked word can belong to a sentence.
func (f *field) isMarked() bool { return f.marked || !f.colon }

// isLongKey reports whether v is long enough for a key. A text with a slash or dot must be longer, because it may be
// part of an address.
func isLongKey(v string) bool { return len(v) >= 32 || len(v) >= 16 && !strings.ContainsAny(v, "/.") }

// isRun reports whether v has only the letters of base64.
func isRun(v string) bool { return lengthOf(v, isBase64) == len(v) }

// looksSecret reports whether v looks like a key and not like a word. A key is long, or it is shorter and has a
// digit.
func looksSecret(v string) bool {
	return len(v) >= 20 || len(v) >= 8 && strings.ContainsAny(v, "0123456789")
}

// isBasic reports whether s is base64 of user:password.
func isBasic(s string) bool {
	b, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(s, "="))
	return err == nil && strings.Contains(string(b), ":")
}
