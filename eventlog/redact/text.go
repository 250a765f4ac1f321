package redact

import (
	"encoding/json"
	"strings"
	"unicode/utf8"
)

// text is a text to be masked, with the offsets of its tokens. It caches which parts are JSON, because that check is
// slow.
type text struct {
	s string
	found
	names map[string]naming
	// valid and invalid say whether the whole text is JSON. Both are false if that is not known.
	valid, invalid bool
	// line and lineEnd are the bounds of the line that lineValid describes.
	line, lineEnd int
	lineValid     bool
	// at is the offset up to which the text was searched for strings.
	at int
	// open means that the offset "at" is inside a string.
	open bool
}

// isJSON reports whether the line around the offset p, or the whole text, is JSON. In JSON, a quote always begins or
// ends a string.
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

// validJSON returns the result of json.Valid. It is faster for long strings, because it checks their contents itself.
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

// literalEnd returns the offset after the JSON string that begins at s[at].
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

// inString returns the part of s[from:to] that may be replaced. In JSON, that part ends before the string around
// s[from] ends, and it contains no half of an escape.
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
	if !t.valid { // Earlier lines may not be JSON.
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

// applyEdits edits the text and adjusts the offsets of the tokens. It drops tokens inside a replaced part. Valid JSON
// stays valid.
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

// A move says that s[from:to] of the text was replaced. shift is the number of bytes by which the later text moved.
type move struct{ from, to, shift int }

// replace replaces s[from:to] by the text in "mask". All earlier replacements must be to the left. replace splits no
// rune. In JSON it does not leave the string around s[from].
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

// putMask replaces s[from:to] by mask, also outside of a JSON string.
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

// maskRange masks s[from:to]. The mask always begins with "…", also if no beginning of the value is kept.
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
