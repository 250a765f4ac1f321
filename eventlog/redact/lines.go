package redact

import (
	"encoding/json"
	"strings"
)

// keyLines bounds how long a private key may be whose end does not come.
const keyLines = 400

// Lines returns a function that masks a text which arrives line by line, without their ends: a
// private key over many lines, and a value that goes on in the next line. It is for one
// goroutine.
func (r *Redactor) Lines() func(line []byte) []byte {
	l := &lines{r: r}
	return func(line []byte) []byte { return []byte(l.next(string(line))) }
}

type lines struct {
	r      *Redactor
	before string // the line before as it came, and those whose value went on in it
	left   int    // of the private key, or of the value in three quotes, that has begun
	quotes string // that end the value
}

func (l *lines) next(line string) string {
	const longest = 8 << 10 // of a value over many lines
	before := l.before
	l.before = line
	if l.left > 0 && l.inKey(line) {
		return Mask
	}
	l.left, l.quotes = 0, ""
	if l.quotes = l.openQuotes(line); l.quotes != "" {
		l.left = keyLines
	}
	if i := strings.LastIndex(line, "-----BEGIN "); i >= 0 && strings.Contains(line[i:], "PRIVATE KEY") && !strings.Contains(line[i:], "-----END ") {
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
	case strings.Count(both, "\n") <= strings.Count(first, "\n") && both != alone: // the value before goes on
		last = Mask
	case last == alone || !strings.Contains(last, redacted):
		return alone
	}
	if len(joined) <= longest {
		l.before = joined
	}
	return last
}

// openQuotes returns the three quotes that a secret's value begins behind at the end of a line.
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

// inKey reports whether a line is part of the key or value that has begun: its end, a header, nothing,
// or a run of base64.
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
	const shortest = 32 // of base64 behind what a logger puts before a line
	last := text[strings.LastIndexAny(text, " \t")+1:]
	return len(last) >= shortest && lengthOf(last, isBase64) == len(last)
}

// passwordLine returns where the password stands of a line of .pgpass whose first colon is
// s[p]: host:port:database:user:password, and nothing else.
func passwordLine(s string, p int) (from, to int) {
	if p+2 >= len(s) || s[p] != ':' || s[p+1] != '*' && !isDigit(s[p+1]) {
		return 0, 0
	}
	const longest = 256
	start := p
	for start > 0 && p-start < longest && (dashed(s[start-1]) || s[start-1] == '.' || s[start-1] == '*' || s[start-1] == '/') {
		start--
	}
	if start < p && s[start] == 'n' && backslashes(s, start) > 0 {
		start++ // of an escaped line end
	} else if start == p || start > 0 && s[start-1] != '\n' && s[start-1] != '"' {
		return 0, 0
	}
	end := p + lengthOf(s[p:min(len(s), p+longest)], func(c byte) bool { return c > ' ' && c < 0x7f && strings.IndexByte("\"'\\,;()[]{}<>", c) < 0 })
	if start == p || end < len(s) && s[end] != '"' && breakAt(s, end) == 0 {
		return 0, 0
	}
	f := strings.Split(s[p+1:end], ":")
	if len(f) != 4 || f[0] != "*" && (len(f[0]) < 4 || len(f[0]) > 5 || !isDigits(f[0])) {
		return 0, 0
	}
	isRole := func(v string) bool { return v == "*" || v != "" && !isDigits(v) && lengthOf(v, dashed) == len(v) }
	if !isRole(f[1]) || !isRole(f[2]) || len(f[3]) < 4 || isReference(f[3]) || strings.Contains(f[3], "/") {
		return 0, 0
	}
	return end - len(f[3]), end
}

// Args returns the words of a command line with its secrets masked: what follows a flag that
// is named like one, and what Text finds.
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
	// As one line: some programs have flags of their own.
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
