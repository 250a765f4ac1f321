package redact

import "strings"

// maskNamed masks the values of names of secrets. It visits each separator and reads the name before the separator.
func maskNamed(t *text) *edits {
	sc := newScanner(t)
	at := 0
	for _, p := range t.separators {
		switch {
		case p < at: // The separator is a part of the previous value.
		case t.s[p] == '[':
			at = sc.maskList(p + 1)
		default:
			at = sc.maskAround(p)
		}
	}
	return &sc.edits
}

type scanner struct {
	edits
	// field is the field that is being judged. It is here so that it is allocated only once for a text.
	field field
	// noTriple has the triple quotes for which the text has no closing quotes.
	noTriple map[string]bool
}

func newScanner(t *text) *scanner { return &scanner{edits: edits{text: t}} }

// upTo returns a scanner for s[:end]. isJSON says whether that text is JSON.
func (sc *scanner) upTo(end int, isJSON bool) *scanner {
	return newScanner(&text{s: sc.s[:end], valid: isJSON, invalid: true, lineEnd: end + 1})
}

// maskAround masks the value that belongs to the separator at s[p]. It returns the offset at which to continue.
func (sc *scanner) maskAround(p int) int {
	s := sc.s
	if from, to := passwordLine(s, p); from < to {
		sc.maskSecret(from, to)
		return to
	}
	k := nameBefore(s, p)
	if s[p] == '=' && k.quote == 0 && quoteFollows(s, p+1) {
		if from := sc.maskTyped(p); from > 0 {
			return from
		}
	}
	if k.name == "" {
		return p + 1
	}
	at, compares := afterSeparator(s, p)
	if k.quote != 0 && s[p] == ':' && pairing(k.name) != 0 {
		sc.maskPair(k, at)
		return max(at, sc.done)
	}
	if k.quote == 0 {
		sc.maskNamesake(k, s[p], at)
	}
	if sc.judgeName(&k, s[p]); k.naming == plainName {
		return at
	}
	k.colon, k.compares = s[p] == ':' && at == p+1, compares
	sc.maskValue(k, at)
	return max(at, sc.done)
}

// maskNamesake masks a value if the secret's name is itself a value: key="Password" value="…" and name: PASSWORD,
// value: …. It does nothing unless k.name is key, name or header. The secret's name begins at s[at].
func (sc *scanner) maskNamesake(k key, separator byte, at int) {
	switch {
	case separator == '=' && (k.name == "name" || k.name == "key" || k.name == "header"):
		sc.maskAttribute(at)
	case separator == ':' && k.name == "name":
		sc.maskEntry(at)
	}
}

// judgeName sets k.naming. It also recognizes a parameter of a URL, and a name of two words such as secret key.
func (sc *scanner) judgeName(k *key, separator byte) {
	k.naming = sc.nameOf(k.name)
	if k.naming == secretName || k.quote != 0 {
		return
	}
	if separator == '=' {
		if naming := queryNameOf(sc.s, k.start, k.name); naming != plainName {
			k.naming, k.query = naming, true
		}
	}
	if k.naming != secretName && strings.EqualFold(k.name, "key") {
		sc.joinWords(k)
	}
}

// maskTyped masks the value of a name with a type, such as var password string = "…". The = is at s[p]. maskTyped
// returns the offset at which to continue, or 0 if there is no such name.
func (sc *scanner) maskTyped(p int) int {
	name := typedName(sc.s, p)
	if name == "" || sc.nameOf(name) != secretName {
		return 0
	}
	from, _, ok := sc.openedString(skip(sc.s, p+1, 0))
	if !ok {
		return 0
	}
	sc.maskValue(key{name: name, start: p, naming: secretName}, p+1)
	return max(from, sc.done)
}

// nameOf returns the result of the function nameOf. It caches the results, because a text repeats its names.
func (t *text) nameOf(name string) naming {
	const most = 512
	if !plausible(name) {
		return plainName
	}
	what, ok := t.names[name]
	if !ok {
		if len(t.names) == 0 || len(t.names) > most {
			t.names = map[string]naming{}
		}
		what = nameOf(name)
		t.names[name] = what
	}
	return what
}

// quoteFollows reports whether a quote is at s[at] or after a blank there.
func quoteFollows(s string, at int) bool {
	if at < len(s) && s[at] == ' ' {
		at++
	}
	return at < len(s) && (s[at] == '"' || s[at] == '\'' || s[at] == '\\')
}

// bareEnd returns the offset of the end of a value without quotes. The value ends at a byte of the parameter "stop", a
// quote, a control character, or the escape of one of them.
func (sc *scanner) bareEnd(from int, stop string) int {
	s := sc.s
	for i := from; i < len(s); i++ {
		switch c := s[i]; {
		case strings.HasPrefix(s[i:], redacted):
			i += len(redacted) - 1
		case c == '"' || c == '\'' || c < ' ' || c == 0x7f || strings.IndexByte(stop, c) >= 0:
			return i
		case c == '\\':
			run := i
			for run < len(s) && s[run] == '\\' {
				run++
			}
			if run == len(s) {
				return run - (run-i)%2
			}
			if (run-i)%2 == 1 && (s[run] == '"' || s[run] == '\'' || sc.isJSON(i)) {
				return run - 1
			}
			i = run - 1
		}
	}
	return len(s)
}

// closing returns the offset of the end of a quoted value. Its opening quote had n backslashes. The value ends at its
// closing quote, at a quote of a surrounding string, or at the end of the line.
func (sc *scanner) closing(from int, quote byte, n int) int {
	s := sc.s
	run := 0
	for i := from; i < len(s); i++ {
		switch c := s[i]; {
		case c == '\\':
			run++
			continue
		case c == '\n':
			return i
		case c == quote && run%(2*(n+1)) == n:
			return i - n
		case c == '"' && (quote == '"' || sc.isJSON(i)):
			for m := 0; m < n || m == 0 && quote != '"'; m = 2*m + 1 {
				if run%(2*(m+1)) == m {
					return i - m
				}
			}
		}
		run = 0
	}
	return len(s) - run%2
}

// pairing returns the role of a member in an object such as {"name": "API_KEY", "value": "…"}. The result 'n' means
// that the member has the name of a variable or header, and 'v' means its value. The result 't' means the type of a
// form's field. For other members the result is 0.
func pairing(member string) byte {
	switch strings.ToLower(strings.NewReplacer("_", "", "-", "").Replace(member)) {
	case "name", "key", "header", "headername", "variable", "variablename", "varname", "envname", "envvar", "envkey",
		"field", "fieldname",
		"param", "parameter", "paramname", "secretname", "k":
		return 'n'
	case "value", "val", "headervalue", "variablevalue", "varvalue", "envvalue", "fieldvalue", "paramvalue", "stringvalue",
		"secretvalue", "v":
		return 'v'
	case "type", "inputtype", "fieldtype":
		return 't'
	}
	return 0
}

// maxMembers is the maximum number of members between the name and the value of a pair.
const maxMembers = 8

// maskPair masks {"name": "API_KEY", "value": "…"} and {"type": "password", "value": "…"}, with the members in any
// order. ACP has environment variables and headers in this form. k is one of the two members, and the member's value
// begins at s[at].
func (sc *scanner) maskPair(k key, at int) {
	name, value := "", -1
	for range maxMembers {
		start := sc.skipGap(at, 0, k)
		span, rest, isText := sc.quotedBy(start, k)
		if !isText {
			rest = start + lengthOf(sc.s[start:], func(c byte) bool { return isWord(c) || c == '.' || c == '-' || c == '+' })
		}
		switch pairing(k.name) {
		case 'n':
			if name == "" && isText {
				name = sc.s[span[0]:span[1]]
			}
		case 't':
			if isText && strings.EqualFold(sc.s[span[0]:span[1]], "password") { // a form's field, with any name
				name = "password"
			} else if name == "" && value < 0 {
				return
			}
		case 'v':
			value = at
		}
		if naming := sc.nameOf(name); value >= 0 && name != "" && naming != plainName {
			sc.maskValue(key{name: name, start: k.start, quote: k.quote, level: k.level, naming: naming}, value)
			return
		}
		if rest == start {
			return // The value is an object or a list.
		}
		member, rest, ok := sc.quotedBy(sc.skipGap(rest, ',', k), k)
		colon := sc.skipGap(rest, 0, k)
		if !ok || colon >= len(sc.s) || sc.s[colon] != ':' {
			return
		}
		k.name, at = sc.s[member[0]:member[1]], colon+1
	}
}

// skipGap does the same as skip. If the member k is inside a string, it also skips the string's escaped newlines and
// tabs.
func (sc *scanner) skipGap(at int, c byte, k key) int {
	for {
		next := skip(sc.s, at, c)
		if next > at && strings.IndexByte(sc.s[at:next], c) >= 0 {
			c = 0
		}
		n := backslashesAt(sc.s, next)
		if k.level == 0 || n == 0 || next+n >= len(sc.s) || strings.IndexByte("nrt", sc.s[next+n]) < 0 {
			return next
		}
		at = next + n + 1
	}
}

// quotedBy reads a string at s[at]. The string must have the same quotes as the name of the member k.
func (sc *scanner) quotedBy(at int, k key) (span [2]int, rest int, ok bool) {
	open := at + k.level
	if open >= len(sc.s) || sc.s[open] != k.quote || backslashes(sc.s, open) != k.level {
		return span, at, false
	}
	end := sc.closing(open+1, k.quote, k.level)
	if end+k.level >= len(sc.s) || sc.s[end+k.level] != k.quote {
		return span, at, false
	}
	return [2]int{open + 1, end}, end + k.level + 1, true
}

// maxElements is the maximum number of strings that are examined in a list.
const maxElements = 256

// maskList masks the values in a list of alternating names and values: ["Authorization", "Bearer …"]. It masks the
// string after a name only if the string looks like a secret, because many lists have only names. maskList returns
// the offset at which to continue.
func (sc *scanner) maskList(from int) int {
	at := sc.skipGap(from, 0, key{level: 1})
	k := key{level: backslashesAt(sc.s, at), quote: '"'}
	if at+k.level < len(sc.s) && sc.s[at+k.level] == '\'' {
		k.quote = '\''
	}
	name := ""
	for range maxElements {
		span, rest, ok := sc.quotedBy(at, k)
		if !ok {
			break
		}
		text := sc.s[span[0]:span[1]]
		if name != "" && valueInList(name, text) {
			sc.maskSecret(span[0], span[1])
			name, text = "", ""
		}
		if name = ""; sc.nameOf(text) != plainName {
			name = text
		}
		next := sc.skipGap(rest, ',', k)
		if next == rest {
			break
		}
		at = next
	}
	return max(from, sc.done)
}

// shortestListed is the minimum length of a secret in a list, in bytes. A shorter string may be another name.
const shortestListed = 12

// valueInList reports whether the string v, which follows the name of a secret in a list, is that secret.
func valueInList(name, v string) bool {
	if nameOf(v) != plainName || isReference(v) || isProse(v) {
		return false
	}
	f := &field{key: key{name: name, naming: nameOf(name)}, value: v, marked: true}
	return schemeOf(v) > 0 || len(v) >= shortestListed && random(v) && !strings.ContainsAny(v, " /") &&
		(f.naming == secretName || f.looksLike())
}

// maskEntry masks the value in YAML such as "name: API_KEY, value: …". The member "value" may also be on the next line.
// The name begins after the blanks at s[at].
func (sc *scanner) maskEntry(at int) {
	s := sc.s
	at += lengthOf(s[at:], func(c byte) bool { return c == ' ' })
	quote := ""
	if n := backslashesAt(s, at); at+n < len(s) && (s[at+n] == '"' || s[at+n] == '\'') {
		quote = s[at : at+n+1]
		at += len(quote)
	}
	end := at + lengthOf(s[at:], dashed)
	naming := sc.nameOf(s[at:end])
	if naming == plainName || !strings.HasPrefix(s[end:], quote) {
		return
	}
	last := end + len(quote)
	next := afterBreak(s, last)
	if next == last {
		next = skip(s, last, ',')
	}
	const word = "value:"
	if next > last && strings.HasPrefix(s[next:], word) {
		sc.maskValue(key{name: s[at:end], start: at, naming: naming, colon: true}, next+len(word))
	}
}

// joinWords recognizes a name of two words, such as "secret key" in "secret key: VALUE". It joins them into one name.
func (sc *scanner) joinWords(k *key) {
	if k.start == 0 || sc.s[k.start-1] != ' ' {
		return
	}
	before := nameBefore(sc.s, k.start-1)
	if name := before.name + "_key"; before.name != "" && before.quote == 0 && sc.nameOf(name) == secretName &&
		before.name != "license" && before.name != "client" {
		k.name, k.start, k.naming, k.spaced = name, before.start, secretName, true
	}
}

// maskAttribute masks the value in key="Password" value="…", as in XML settings. The first quote is at s[at].
func (sc *scanner) maskAttribute(at int) {
	s := sc.s
	level := backslashesAt(s, at)
	name, rest, ok := sc.readQuoted(at, level)
	if !ok || nameOf(s[name[0]:name[1]]) != secretName {
		return
	}
	rest = skip(s, rest, ' ')
	if word := "value="; len(s)-rest > len(word) && strings.EqualFold(s[rest:rest+len(word)], word) {
		if value, _, ok := sc.readQuoted(rest+len(word), level); ok {
			sc.maskSecret(value[0], value[1])
		}
	}
}

// readQuoted reads a string at s[at]. Its quotes have n backslashes.
func (sc *scanner) readQuoted(at, n int) (span [2]int, rest int, ok bool) {
	s := sc.s
	at = skip(s, at, ' ')
	open := at + n
	if open >= len(s) || s[open] != '"' || backslashes(s, open) != n {
		return span, at, false
	}
	end := sc.closing(open+1, '"', n)
	if end+n >= len(s) || s[end+n] != '"' {
		return span, at, false
	}
	return [2]int{open + 1, end}, end + n + 1, true
}

// skip returns the offset after the blanks and line breaks at s[at]. It also skips the byte c once.
func skip(s string, at int, c byte) int {
	for seen := false; at < len(s); at++ {
		switch s[at] {
		case ' ', '\t', '\n', '\r':
			continue
		case c:
			if !seen {
				seen = true
				continue
			}
		}
		break
	}
	return at
}
