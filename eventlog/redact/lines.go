package redact

import (
	"encoding/json"
	"strings"
)

// keyLines is the maximum number of lines that are masked if a private key has no end line.
const keyLines = 400

// Lines returns a function that masks a text line by line. Each line is passed without its newline. The function also
// masks private keys with many lines, and values that continue on the next line. Only one goroutine may use the
// function.
func (r *Redactor) Lines() func(line []byte) []byte {
	l := &lines{r: r}
	return func(line []byte) []byte { return []byte(l.maskLine(string(line))) }
}

type lines struct {
	r *Redactor
	// before is the previous line, unmasked. If a value continued on that line, before also has the earlier lines of
	// the value.
	before string
	// left is the maximum number of further lines of the current private key or quoted value.
	left int
	// quotes are the three quotes that end the current value. Empty means that no such value is open.
	quotes string
}

func (l *lines) maskLine(line string) string {
	const longest = 8 << 10 // bytes of a value over many lines
	before := l.before
	l.before = line
	if l.left > 0 && l.inKey(line) {
		return Mask
	}
	l.left, l.quotes = 0, ""
	if l.quotes = l.openQuotes(line); l.quotes != "" {
		l.left = keyLines
	}
	if i := strings.LastIndex(line, "-----BEGIN "); i >= 0 && strings.Contains(line[i:], "PRIVATE KEY") &&
		!strings.Contains(line[i:], "-----END ") {
		l.left = keyLines
	}
	alone := l.r.Text(line)
	if before == "" || strings.TrimSpace(line) == "" {
		return alone
	}
	joined := before + "\n" + line
	first, both := l.r.Text(before), l.r.Text(joined)
	last := both[strings.LastIndexByte(both, '\n')+1:]
	switch {
	case both == first+"\n"+alone:
		return alone
	case strings.Count(both, "\n") <= strings.Count(first, "\n") && both != alone: // the value goes on
		last = Mask
	case last == alone || !strings.Contains(last, redacted):
		return alone
	}
	if len(joined) <= longest {
		l.before = joined
	}
	return last
}

// openQuotes returns the three quotes at the end of a line if they begin the value of a secret. Otherwise it returns
// "".
func (l *lines) openQuotes(line string) string {
	const value = "a1b2c3d4e5f6"
	line = strings.TrimRight(line, " \t\r")
	for _, quotes := range []string{`"""`, "'''"} {
		if strings.HasSuffix(line, quotes) && !strings.Contains(l.r.Text(line+value+quotes), value) {
			return quotes
		}
	}
	return ""
}

// inKey reports whether a line belongs to the current key or value. The lines of a key are base64, a header, an empty
// line and the end line.
func (l *lines) inKey(line string) bool {
	l.left--
	if l.quotes != "" {
		if strings.Contains(line, l.quotes) {
			l.left = 0
		}
		return true
	}
	if strings.Contains(line, "-----END ") {
		l.left = 0
		return true
	}
	text := strings.TrimSpace(line)
	if text == "" || len(text) < 80 && pemRun(text, "") == len(text) && !strings.Contains(text, " ") {
		return true
	}
	if name, _, ok := strings.Cut(text, ": "); ok && l.left > keyLines-8 && lengthOf(name, dashed) == len(name) {
		return true
	}
	const shortest = 32 // minimum length of base64 after the prefix of a logger
	last := text[strings.LastIndexAny(text, " \t")+1:]
	return len(last) >= shortest && lengthOf(last, isBase64) == len(last)
}

// lineFields check the fields of a line of .pgpass after the host: port, database, user and password.
var lineFields = [...]func(v string) bool{isPort, isRole, isRole, isLinePassword}

func isHost(c byte) bool { return dashed(c) || c == '.' || c == '*' || c == '/' }

func isPort(v string) bool { return v == "*" || len(v) >= 4 && len(v) <= 5 && isDigits(v) }

func isRole(v string) bool {
	return v == "*" || v != "" && !isDigits(v) && lengthOf(v, dashed) == len(v)
}

func isLinePassword(v string) bool {
	return len(v) >= 4 && !isReference(v) && !strings.Contains(v, "/")
}

// inLine reports whether a line of .pgpass may contain c.
func inLine(c byte) bool { return c > ' ' && c < 0x7f && strings.IndexByte("\"'\\,;()[]{}<>", c) < 0 }

// passwordLine returns the bounds of the password in a line of .pgpass. The line's first colon is at s[p]. The whole
// line must have the form host:port:database:user:password.
func passwordLine(s string, p int) (from, to int) {
	if p+2 >= len(s) || s[p] != ':' || s[p+1] != '*' && !isDigit(s[p+1]) {
		return 0, 0
	}
	const longest = 256
	start := p
	for start > 0 && p-start < longest && isHost(s[start-1]) {
		start--
	}
	switch {
	case start < p && s[start] == 'n' && backslashes(s, start) > 0:
		start++ // This n belongs to an escaped newline.
	case start > 0 && s[start-1] != '\n' && s[start-1] != '"':
		return 0, 0
	}
	end := p + lengthOf(s[p:min(len(s), p+longest)], inLine)
	if start == p || end < len(s) && s[end] != '"' && breakAt(s, end) == 0 {
		return 0, 0
	}
	fields := strings.Split(s[p+1:end], ":")
	if len(fields) != len(lineFields) {
		return 0, 0
	}
	for i, fits := range lineFields {
		if !fits(fields[i]) {
			return 0, 0
		}
	}
	return end - len(fields[len(fields)-1]), end
}

// Args returns the words of a command line with masked secrets. It masks the value of a flag that has the name of a
// secret, and the secrets that Text finds.
func Args(argv []string) []string {
	out := make([]string, len(argv))
	for i, arg := range argv {
		out[i] = Text(arg)
		flag, value, ok := strings.Cut(arg, "=")
		if ok && isSecretFlag(flag) && value != "" {
			out[i] = flag + "=" + maskOf(value)
		}
		if i > 0 && isSecretFlag(argv[i-1]) && arg != "" && !strings.HasPrefix(arg, "-") {
			out[i] = maskOf(arg)
		}
	}
	// Programs have special flags for secrets, so also mask the words together as one line.
	b, err := json.Marshal(out)
	if err != nil {
		return out
	}
	var whole []string
	if json.Unmarshal([]byte(Text(string(b))), &whole) != nil || len(whole) != len(out) {
		return out
	}
	return whole
}

func isSecretFlag(flag string) bool {
	name := strings.TrimLeft(flag, "-")
	if name == flag {
		return false
	}
	return nameOf(name) != plainName || name == "key" || name == "secret" || name == "pass"
}
