package redact

import "strings"

// tagMarks are the spellings of the brackets of a tag: plain, escaped, and escaped in JSON that Go wrote.
var tagMarks = [...]struct{ open, close string }{{"<", ">"}, {`\u003c`, `\u003e`}, {"&lt;", "&gt;"},
	{`\u0026lt;`, `\u0026gt;`}}

// maskXML masks the text between <password> and the next tag. In a list of properties it masks the text of the
// element after <key>password</key>.
func maskXML(t *text, m struct{ open, close string }) *edits {
	s, sc := t.s, newScanner(t)
	pending := false // the previous element was a key, and its text names a secret
	for at := 0; ; {
		i := strings.Index(s[at:], m.open)
		if i < 0 {
			return &sc.edits
		}
		at += i + len(m.open)
		name, from := tag(s, at, m.close)
		if from == 0 {
			continue
		}
		for next := afterBreak(s, from); next > from; next = afterBreak(s, from) {
			from = next
		}
		from = skip(s, from, 0)
		if cdata := m.open + "![CDATA["; strings.HasPrefix(s[from:], cdata) {
			from += len(cdata)
		}
		to := from + textEnd(s[from:], m.open)
		to = sc.upTo(to, true).bareEnd(from, "")
		v := strings.TrimSpace(s[from:to])
		named := sc.nameOf(attributeName(s[at:from])) == secretName
		secret := named || nameOf(name) == secretName || pending && (name == "string" || name == "value")
		pending = name == "key" && nameOf(v) == secretName || named && v == ""
		if secret && v != "" && !isReference(v) && !isProse(v) {
			sc.maskSecret(from, from+len(strings.TrimRight(s[from:to], " \t\r\n\\")))
		}
		at = max(from, sc.done)
	}
}

// tag reads the name of an opening tag. The name begins at s[at]. content is the offset after the tag, or 0 if there
// is no such tag.
func tag(s string, at int, closing string) (name string, content int) {
	const longest = 256
	end := at + lengthOf(s[at:min(len(s), at+longest)], func(c byte) bool { return dashed(c) || c == '.' || c == ':' })
	if end == at || end == len(s) {
		return "", 0
	}
	name = s[at:end]
	if i := strings.LastIndexByte(name, ':'); i >= 0 {
		name = name[i+1:]
	}
	rest := s[end:min(len(s), end+longest)]
	i := strings.Index(rest, closing)
	if i < 0 || strings.ContainsAny(rest[:i], "<\n/") || i > 0 && rest[0] != ' ' && rest[0] != '\\' {
		return "", 0
	}
	return name, end + i + len(closing)
}

// attributeName returns the value of an element's attribute name or key.
func attributeName(tag string) string {
	for _, attribute := range []string{" name=", " key="} {
		if _, v, ok := strings.Cut(tag, attribute); ok {
			v = strings.TrimLeft(v, "\\\"'")
			return v[:lengthOf(v, func(c byte) bool { return dashed(c) || c == '.' })]
		}
	}
	return ""
}

// textEnd returns the length of the text up to the next tag. It returns 0 for a longer text, which is not a password.
func textEnd(s, open string) int {
	const longest = 4 << 10
	s = s[:min(len(s), longest)]
	if i := strings.Index(s, open); i >= 0 {
		return i
	}
	return 0
}
