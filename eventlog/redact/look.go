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
}

// literal is what stands where a kind of key, a command or a pattern is.
type literal struct {
	text   string
	behind string // one of these stands behind it
	add    func(f *found, at, end int)
}

// literals are found by their first two or three bytes.
type literals struct {
	words  [1 << 16]uint16   // those that begin a word, by two bytes: 0, or a place in lists
	filter [1 << 15]bool     // of the others: whether one may begin with these three bytes
	others map[uint32]uint16 // of the others, by three bytes, or two
	lists  [][]literal
}

func pairOf(s string, at int) uint16 { return uint16(s[at])<<8 | uint16(s[at+1]) }

// tripleSlot returns where the filter has three bytes.
func tripleSlot(triple uint32) uint32 { return triple * 0x9e3779b1 >> 17 }

func (t *literals) addWord(l literal) {
	t.words[pairOf(l.text, 0)] = t.listed(t.words[pairOf(l.text, 0)], l)
}

func (t *literals) addOther(l literal) {
	pair := uint32(pairOf(l.text, 0)) << 8
	if len(l.text) > 2 {
		triple := pair | uint32(l.text[2])
		t.filter[tripleSlot(triple)] = true
		t.others[triple] = t.listed(t.others[triple], l)
		return
	}
	for last := range uint32(256) {
		t.filter[tripleSlot(pair|last)] = true
		t.others[pair|last] = t.listed(t.others[pair|last], l)
	}
}

// listed appends l to the list in this place and returns the place.
func (t *literals) listed(place uint16, l literal) uint16 {
	if place == 0 {
		place = uint16(len(t.lists))
		t.lists = append(t.lists, nil)
	}
	t.lists[place] = append(t.lists[place], l)
	return place
}

// literalTable is made at the first use: most commands mask nothing.
var literalTable = sync.OnceValue(func() *literals {
	t := &literals{lists: make([][]literal, 1), others: map[uint32]uint16{}}
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
			t.addOther(literal{text: text, add: func(f *found, at, _ int) { f.patterns[i] = append(f.patterns[i], at) }})
		}
	}
	for _, end := range nameEnds {
		t.addOther(literal{text: end, behind: " \t({", add: func(f *found, _, end int) { f.spaced = append(f.spaced, end) }})
	}
	t.addOther(literal{text: "--", add: func(f *found, at, _ int) { f.flags = append(f.flags, at) }})
	return t
})

// look goes through a text once, for all tables.
func look(s string) *found {
	f := &found{patterns: make([][]int, len(patterns))}
	t := literalTable()
	triple := uint32(0)
	for i := range len(s) {
		triple = triple<<8&0xffffff | uint32(s[i])
		if i > 1 && t.filter[tripleSlot(triple)] {
			t.at(f, t.others[triple], s, i-2)
		}
		if i > 0 && !inRun(s, i-1) {
			if place := t.words[triple&0xffff]; place != 0 && beginsWord(s, i-1) {
				t.at(f, place, s, i-1)
			}
		}
	}
	return f
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

// inRun reports that no word begins at s[at]; it is the cheap half of beginsWord.
func inRun(s string, at int) bool {
	return at > 0 && inWord[s[at-1]] && (at < 2 || s[at-2] != '\\') && (at < 6 || s[at-6] != '\\')
}

// apply returns the edited text and brings what was found to where it stands there; what was
// replaced is gone.
func (f *found) apply(e *edits) string {
	if e.done == 0 {
		return e.s
	}
	for _, list := range []*[]int{&f.kinds, &f.commands, &f.flags, &f.spaced} {
		*list = moved(*list, e.moves)
	}
	for i := range f.patterns {
		f.patterns[i] = moved(f.patterns[i], e.moves)
	}
	return e.String()
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
