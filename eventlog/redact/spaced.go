package redact

// nameEnds are the endings of names of secrets that are recognized without a separator after them.
var nameEnds = []string{
	"word", "WORD", "passwd", "PASSWD", "secret", "Secret", "SECRET", "token", "Token", "TOKEN",
	"-key", "_key", "Key", "_KEY", "pass", "PASS", "auth", "phrase", "PHRASE", "bindpw", "rootpw", "_base", "rization",
}

// maskSpaced masks values with only a blank or a bracket between them and their names: set API_KEY VALUE, -password
// VALUE, #define TOKEN "VALUE", setPassword("VALUE").
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
		f := (*field)(nil)
		if c == ' ' || c == '\t' {
			f = sc.spacedValue(k, at)
		} else {
			f = sc.argument(k, at+1)
		}
		if f != nil && (k.naming == secretName || f.looksLike()) {
			sc.maskRange(f.end-len(f.value), f.end)
		}
	}
	return &sc.edits
}

// spacedValue returns the field with the name k and the value after the blanks at s[at]. It returns nil if the value
// is not a secret.
func (sc *scanner) spacedValue(k key, at int) *field {
	start := at + lengthOf(sc.s[at:], func(c byte) bool { return c == ' ' || c == '\t' })
	rows := spacedQuotedRows
	from, to, ok := sc.openedString(start)
	if !ok {
		rows = spacedRows
		from, to = start, sc.bareEnd(start, " \t,;`|<>&")
	}
	f := sc.fieldOf(k, from, to)
	f.apart, f.marked = true, true
	if !isSecret(rows, f) {
		return nil
	}
	return f
}

// openedString returns the bounds of the text in the quotes that open at s[at].
func (sc *scanner) openedString(at int) (from, to int, ok bool) {
	s := sc.s
	n := backslashesAt(s, at)
	q := at + n
	if q >= len(s) || s[q] != '"' && s[q] != '\'' || n&(n+1) != 0 || n == 0 && s[q] == '"' && sc.isJSON(q) {
		return 0, 0, false
	}
	to = sc.closing(q+1, s[q], n)
	return q + 1, to, to+n < len(s) && s[to+n] == s[q]
}

// argument returns the field with the only argument in setPassword("…"). The argument begins at s[at], after the
// bracket. The result is nil if the argument is not a secret.
func (sc *scanner) argument(k key, at int) *field {
	from, to, ok := sc.openedString(at)
	if !ok {
		return nil
	}
	after := to + from - at
	f := sc.fieldOf(k, from, to)
	f.marked = true
	f.closed = after < len(sc.s) && (sc.s[after] == ')' || sc.s[after] == '}')
	if !isSecret(argumentRows, f) {
		return nil
	}
	return f
}
