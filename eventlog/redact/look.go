package redact

import (
	"strings"
	"sync"
)

// found has the places in a text where the slower rules begin, from left to right.
type found struct {
	kinds    []int
	commands []int
	flags    []int
	spaced   []int
	patterns [][]int // of each pattern
	pem      bool
	tags     [len(tagMarks)]bool
	urls     [len(urlMarks)]bool
}

// literal is what stands where a kind of key, a command or a pattern is.
type literal struct {
	text   string
	behind string // one of these stands behind it
	add    func(f *found, at, end int)
}

// literals are found by their first two bytes, where they begin a word, or by their first
// three. A bit for each says whether there are any; it is asked at every byte.
type literals struct {
	words      [1 << 16]uint16 // a place in lists
	anywhere   [1 << 16]uint16
	isWord     [1 << 16 / 64]uint64
	isAnywhere [1 << 16 / 64]uint64
	lists      [][]literal
}

func pairOf(s string, at int) uint16 { return uint16(s[at])<<8 | uint16(s[at+1]) }

// slotOf returns the place of the last three of four bytes; others may share it.
func slotOf(triple uint32) uint16 { return uint16(triple << 8 * 0x9e3779b1 >> 16) }

func (t *literals) addWord(l literal) {
	pair := pairOf(l.text, 0)
	t.isWord[pair/64] |= 1 << (pair % 64)
	t.list(&t.words[pair], l)
}

func (t *literals) addAnywhere(l literal) {
	for third := range 256 {
		c := byte(third)
		if len(l.text) > 2 {
			c = l.text[2]
		} else if !dashed(c) && c != '.' && c != '~' && c != '>' { // what may stand behind -- and </
			continue
		}
		slot := slotOf(uint32(pairOf(l.text, 0))<<8 | uint32(c))
		t.isAnywhere[slot/64] |= 1 << (slot % 64)
		t.list(&t.anywhere[slot], l)
		if len(l.text) > 2 {
			return
		}
	}
}

func (t *literals) list(place *uint16, l literal) {
	if *place == 0 {
		*place = uint16(len(t.lists))
		t.lists = append(t.lists, nil)
	}
	t.lists[*place] = append(t.lists[*place], l)
}

// literalTable is made at the first use: most commands mask nothing.
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
			t.addWord(literal{text: name, behind: " \t\"'\\", add: func(f *found, at, _ int) { f.commands = append(f.commands, at) }})
		}
	}
	for i, p := range patterns {
		for _, text := range p.literals {
			t.addAnywhere(literal{text: text, add: func(f *found, at, _ int) { f.patterns[i] = append(f.patterns[i], at) }})
		}
	}
	for _, end := range nameEnds {
		t.addAnywhere(literal{text: end, behind: " \t({", add: func(f *found, _, end int) { f.spaced = append(f.spaced, end) }})
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

// look goes through a text once, for all rules but those for names.
func (t *text) look() {
	t.found = found{patterns: make([][]int, len(patterns))}
	table, s := literalTable(), t.s
	triple := uint32(' ')
	for i := range len(s) {
		triple = triple<<8 | uint32(s[i])
		if slot := slotOf(triple); table.isAnywhere[slot/64]>>(slot%64)&1 != 0 && i > 1 {
			table.at(&t.found, table.anywhere[slot], s, i-2)
		}
		if pair := uint16(triple); table.isWord[pair/64]>>(pair%64)&1 != 0 && i > 0 && beginsWord(s, i-1) {
			table.at(&t.found, table.words[pair], s, i-1)
		}
	}
}

// at adds what is found at s[at] of the list in this place.
func (t *literals) at(f *found, place uint16, s string, at int) {
	for i := range t.lists[place] {
		l := &t.lists[place][i]
		end := at + len(l.text)
		if strings.HasPrefix(s[at:], l.text) && (l.behind == "" || end < len(s) && strings.IndexByte(l.behind, s[end]) >= 0) {
			l.add(f, at, end)
		}
	}
}
