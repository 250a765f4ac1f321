package redact

import (
	"encoding/json"
	"strings"
	"unicode/utf8"
)

// text is a text to be masked, with the places found in it. It caches which parts are JSON, because
// testing that is slow.
type text struct {
	s string
	found
	names map[string]naming
	// valid and invalid say whether the whole text is JSON. Both are false if it is not known.
	valid, invalid bool
	// line and lineEnd are the bounds of the line that lineValid describes.
	line, lineEnd int
	lineValid     bool
	// at is the place up to which the strings of the line are known.
	at int
	// open means that s[at] is inside a string.
	open bool
}

// isJSON reports whether the line around p, or the whole text, is JSON. Then a quote always begins
// or ends a string.
func (t *text) isJSON(p int) bool {
	if t.valid {
		return true
	}
	if p < t.line || p >= t.lineEnd {
		t.line = strings.LastIndexByte(t.s[:min(p, len(t.s))], '\n') + 1
		t.lineEnd = len(t.s) + 1
		if i := strings.IndexByte(t.s[t.line:], '\n'); i >= 0 {
			t.lineEnd = t.line + i + 1
		}
		t.lineValid = validJSON(t.s[t.line:min(t.lineEnd, len(t.s))])
		if t.line == 0 && t.lineEnd > len(t.s) { // the line is the whole text
			t.valid, t.invalid = t.lineValid, !t.lineValid
		}
	}
	if !t.lineValid && !t.invalid {
		t.valid = validJSON(t.s)
		t.invalid = !t.valid
	}
	return t.lineValid || t.valid
}

// validJSON is json.Valid without the contents of strings, because it is slow for long ones.
func validJSON(s string) bool {
	first := skip(s, 0, 0)
	if first == len(s) || strings.IndexByte(`{["-0123456789tfn`, s[first]) < 0 {
		return false
	}
	var rest []byte
	for {
		i := strings.IndexByte(s, '"')
		if i < 0 {
			return json.Valid(append(rest, s...))
		}
		end, ok := literalEnd(s, i)
		if !ok {
			return false
		}
		rest = append(append(rest, s[:i]...), `""`...)
		s = s[end:]
	}
}

// literalEnd returns the end of the JSON string whose quote is s[at].
func literalEnd(s string, at int) (end int, ok bool) {
	for i := at + 1; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"':
			return i + 1, true
		case c < ' ':
			return 0, false
		case c == '\\':
			n := escapeLength(s[i:])
			if n == 0 {
				return 0, false
			}
			i += n - 1
		}
	}
	return 0, false
}

// escapeLength returns the length of the JSON escape at the start of s, or 0.
func escapeLength(s string) int {
	switch {
	case len(s) < 2:
	case strings.IndexByte(`"\/bfnrt`, s[1]) >= 0:
		return 2
	case s[1] == 'u' && len(s) >= 6 && lengthOf(s[2:6], alphabets['h']) == 4:
		return 6
	}
	return 0
}

// inString returns the part of s[from:to] that may be replaced. In JSON this is the part inside the
// string around from, without halves of escapes.
func (t *text) inString(from, to int) (int, int) {
	const outside = " \t\r,:{}[]0123456789+-.eEtrufalsn"
	v := t.s[from:to]
	inside := strings.Trim(v, outside) != "" && !strings.ContainsAny(v, "\"\\\n") &&
		!strings.Contains(t.s[max(0, from-5):from], `\`)
	if inside || !t.isJSON(from) { // The quick test avoids parsing JSON.
		return from, to
	}
	if from < t.at {
		t.at, t.open = 0, false
	}
	if !t.valid { // the earlier lines may not be JSON
		if i := strings.LastIndexByte(t.s[t.at:from], '\n'); i >= 0 {
			t.at, t.open = t.at+i+1, false
		}
	}
	at, open := t.at, t.open
	for at < from {
		switch t.s[at] {
		case '"':
			open = !open
		case '\\':
			at++
			if at < len(t.s) && t.s[at] == 'u' {
				at += 4
			}
		}
		at++
	}
	for from = at; open && at < to && t.s[at] != '"'; {
		n := 1
		if t.s[at] == '\\' {
			n = max(1, escapeLength(t.s[at:]))
		}
		if at+n > to {
			break
		}
		at += n
	}
	t.at, t.open = at, open
	return from, at
}

// applyEdits edits the text and adjusts the found places. It drops the places inside replaced
// parts. No edit makes JSON invalid.
func (t *text) applyEdits(e *edits) {
	if e.done == 0 {
		return
	}
	for _, list := range []*[]int{&t.separators, &t.kinds, &t.commands, &t.flags, &t.spaced} {
		*list = moved(*list, e.moves)
	}
	for i := range t.patterns {
		t.patterns[i] = moved(t.patterns[i], e.moves)
	}
	t.s = e.String()
	t.line, t.lineEnd, t.at, t.open = 0, 0, 0, false
}

func moved(list []int, moves []move) []int {
	kept, shift, i := list[:0], 0, 0
	for _, at := range list {
		for i < len(moves) && moves[i].to <= at {
			shift = moves[i].shift
			i++
		}
		if i == len(moves) || at < moves[i].from {
			kept = append(kept, at+shift)
		}
	}
	return kept
}

// edits collects replacements in a text from left to right.
type edits struct {
	*text
	out   strings.Builder
	done  int
	moves []move
}

// move says that the bytes from from to to were replaced, and by how much the later text has moved.
type move struct{ from, to, shift int }

// replace replaces s[from:to] by mask. Earlier replacements must lie to the left. It splits no rune
// and, in JSON, stays inside the string around s[from].
func (e *edits) replace(from, to int, mask string) {
	if from < e.done || e.s[from:to] == mask {
		return
	}
	for from > e.done && from < to && !utf8.RuneStart(e.s[from]) {
		from--
	}
	for to < len(e.s) && !utf8.RuneStart(e.s[to]) {
		to++
	}
	from, to = e.inString(from, to)
	e.putMask(from, to, mask)
}

// putMask is replace without the limit to a string.
func (e *edits) putMask(from, to int, mask string) {
	if from < e.done || from >= to || e.s[from:to] == mask {
		return
	}
	if e.done == 0 {
		e.out.Grow(len(e.s) + len(e.s)/8)
	}
	e.out.WriteString(e.s[e.done:from])
	e.out.WriteString(mask)
	e.done = to
	e.moves = append(e.moves, move{from, to, e.out.Len() - to})
}

// maskRange masks s[from:to]. If nothing of the value stays, the mask begins with the mark of a
// cut.
func (e *edits) maskRange(from, to int) {
	mask := maskOf(e.s[from:to])
	if mask == redacted {
		mask = Mask
	}
	e.replace(from, to, mask)
}

// String returns the edited text.
func (e *edits) String() string {
	e.out.WriteString(e.s[e.done:])
	return e.out.String()
}
