package redact

import (
	"slices"
	"strings"
	"sync"
)

// found has the offsets of the tokens at which the rules begin, from left to right.
type found struct {
	separators []int // offsets of = : and [
	kinds      []int
	commands   []int
	flags      []int
	spaced     []int
	patterns   [][]int // for each pattern, the offsets of its literals
	pem        bool
	tags       [len(tagMarks)]bool
	urls       [len(urlMarks)]bool
}

// literal is a text that can begin an API key, a command or the match of a pattern.
type literal struct {
	text string
	// after lists bytes. One of them must follow the text, unless after is empty.
	after string
	add   func(f *found, at, end int)
}

// literals finds literals in a text. Some must be at the beginning of a word and are found by their first two bytes.
// The others are found anywhere by their first three bytes. For speed, a set of bits says which of these bytes occur
// in a literal.
type literals struct {
	words      [1 << 16]uint16 // index into lists
	anywhere   [1 << 16]uint16
	isWord     [1 << 16 / 64]uint64
	isAnywhere [1 << 16 / 64]uint64
	lists      [][]literal
}

func pairOf(s string, at int) uint16 { return uint16(s[at])<<8 | uint16(s[at+1]) }

// slotOf returns a hash of three bytes, the low bytes of triple. Several triples may have the same hash.
func slotOf(triple uint32) uint16 { return uint16(triple << 8 * 0x9e3779b1 >> 16) }

func (t *literals) addWord(l literal) {
	pair := pairOf(l.text, 0)
	t.isWord[pair/64] |= 1 << (pair % 64)
	t.addLiteral(&t.words[pair], l)
}

func (t *literals) addAnywhere(l literal) {
	for third := range 256 {
		c := byte(third)
		if len(l.text) > 2 {
			c = l.text[2]
		} else if !dashed(c) && c != '.' && c != '~' && c != '>' { // the bytes that may follow -- and </
			continue
		}
		slot := slotOf(uint32(pairOf(l.text, 0))<<8 | uint32(c))
		t.isAnywhere[slot/64] |= 1 << (slot % 64)
		t.addLiteral(&t.anywhere[slot], l)
		if len(l.text) > 2 {
			return
		}
	}
}

func (t *literals) addLiteral(place *uint16, l literal) {
	if *place == 0 {
		*place = uint16(len(t.lists))
		t.lists = append(t.lists, nil)
	}
	t.lists[*place] = append(t.lists[*place], l)
}

// literalTable is made at the first use, because most commands mask nothing.
var literalTable = sync.OnceValue(func() *literals {
	t := &literals{lists: make([][]literal, 1)}
	kindPairs := map[string]bool{}
	for _, k := range kinds {
		if pair := k.prefix[:2]; !kindPairs[pair] {
			kindPairs[pair] = true
			t.addWord(literal{text: pair, add: func(f *found, at, _ int) { f.kinds = append(f.kinds, at) }})
		}
	}
	for _, p := range programs {
		for name := range strings.FieldsSeq(p.names) {
			t.addWord(literal{text: name, after: " \t\"'\\", add: func(f *found, at,
				_ int) {
				f.commands = append(f.commands, at)
			}})
		}
	}
	for i, p := range patterns {
		for _, text := range p.literals {
			t.addAnywhere(literal{text: text, add: func(f *found, at, _ int) { f.patterns[i] = append(f.patterns[i], at) }})
		}
	}
	for _, end := range nameEnds {
		t.addAnywhere(literal{text: end, after: " \t({", add: func(f *found, _,
			end int) {
			f.spaced = append(f.spaced, end)
		}})
	}
	has := func(text string, is func(f *found) *bool) {
		t.addAnywhere(literal{text: text, add: func(f *found, _, _ int) { *is(f) = true }})
	}
	has(beginPEM, func(f *found) *bool { return &f.pem })
	for i, m := range tagMarks {
		has(m.open+"/", func(f *found) *bool { return &f.tags[i] })
	}
	for i, mark := range urlMarks {
		has(mark, func(f *found) *bool { return &f.urls[i] })
	}
	t.addAnywhere(literal{text: "--", add: func(f *found, at, _ int) { f.flags = append(f.flags, at) }})
	return t
})

// reset removes the offsets and keeps their memory for the next pass.
func (f *found) reset() {
	if f.patterns == nil {
		f.patterns = make([][]int, len(patterns))
	}
	for i := range f.patterns {
		f.patterns[i] = f.patterns[i][:0]
	}
	*f = found{
		separators: f.separators[:0], kinds: f.kinds[:0], commands: f.commands[:0], flags: f.flags[:0],
		spaced: f.spaced[:0], patterns: f.patterns,
	}
}

// findPlaces finds the tokens of all rules in one pass over the text.
func (t *text) findPlaces() {
	t.found.reset()
	separators := strings.Count(t.s, ":") + strings.Count(t.s, "=") + strings.Count(t.s, "[")
	t.separators = slices.Grow(t.separators, separators)
	table, s := literalTable(), t.s
	triple := uint32(' ')
	for i := range len(s) {
		if c := s[i]; c == ':' || c == '=' || c == '[' {
			t.separators = append(t.separators, i)
		}
		triple = triple<<8 | uint32(s[i])
		if slot := slotOf(triple); table.isAnywhere[slot/64]>>(slot%64)&1 != 0 && i > 1 {
			table.addFound(&t.found, table.anywhere[slot], s, i-2)
		}
		if pair := uint16(triple); table.isWord[pair/64]>>(pair%64)&1 != 0 && i > 0 && beginsWord(s, i-1) {
			table.addFound(&t.found, table.words[pair], s, i-1)
		}
	}
}

// addFound adds the tokens for the literals at s[at]. place selects the list of literals to compare.
func (t *literals) addFound(f *found, place uint16, s string, at int) {
	for i := range t.lists[place] {
		l := &t.lists[place][i]
		end := at + len(l.text)
		if strings.HasPrefix(s[at:], l.text) && (l.after == "" || end < len(s) && strings.IndexByte(l.after, s[end]) >= 0) {
			l.add(f, at, end)
		}
	}
}
