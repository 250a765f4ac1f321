package redact

import (
	"strings"
	"sync"
)

// found says which of the slower looks at a text are worth it.
type found struct {
	kinds    bool
	commands bool
	flags    bool
	spaced   bool
	patterns uint64 // a bit for each
}

// literal is what stands where a kind of key, a command or a pattern is.
type literal struct {
	text   string
	word   bool   // it begins a word
	behind string // one of these stands behind it
	means  found
}

// literals has those of all tables by their first two bytes.
type literals struct {
	pairs [1 << 16]uint16 // 0, or a place in lists
	lists []literalList
}

type literalList struct {
	literals []literal
	words    bool // each of them begins a word
}

func pairOf(s string, at int) uint16 { return uint16(s[at])<<8 | uint16(s[at+1]) }

func (t *literals) add(l literal) {
	p := pairOf(l.text, 0)
	if t.pairs[p] == 0 {
		t.pairs[p] = uint16(len(t.lists))
		t.lists = append(t.lists, literalList{words: true})
	}
	list := &t.lists[t.pairs[p]]
	list.literals = append(list.literals, l)
	list.words = list.words && l.word
}

// literalTable is made at the first use: most commands mask nothing.
var literalTable = sync.OnceValue(func() *literals {
	t := &literals{lists: make([]literalList, 1)}
	for _, k := range kinds {
		if pair := t.pairs[pairOf(k.prefix, 0)]; pair == 0 || !t.lists[pair].literals[0].means.kinds {
			t.add(literal{text: k.prefix[:2], word: true, means: found{kinds: true}})
		}
	}
	for _, p := range programs {
		for name := range strings.FieldsSeq(p.names) {
			t.add(literal{text: name, word: true, behind: " \t\"'\\", means: found{commands: true}})
		}
	}
	for i, p := range patterns {
		for _, text := range p.literals {
			t.add(literal{text: text, means: found{patterns: 1 << i}})
		}
	}
	for _, end := range nameEnds {
		t.add(literal{text: end, behind: " \t({", means: found{spaced: true}})
	}
	t.add(literal{text: "--", means: found{flags: true}})
	return t
})

// look goes through a text once, for all tables.
func look(s string) (f found) {
	t, table := literalTable(), kindIndex()
	dead := 0
	for at := 0; at+1 < len(s); at++ {
		n := t.pairs[pairOf(s, at)]
		if n == 0 {
			continue
		}
		list := &t.lists[n]
		if list.words && inRun(s, at) {
			continue
		}
		for i := range list.literals {
			l := &list.literals[i]
			switch {
			case l.in(f) || !l.at(s, at):
			case l.means.kinds:
				_, end := kindAt(table, s, at, dead)
				f.kinds = end > 0
				dead = deadEnd(s, at, dead)
			default:
				f.commands = f.commands || l.means.commands
				f.flags = f.flags || l.means.flags
				f.spaced = f.spaced || l.means.spaced
				f.patterns |= l.means.patterns
			}
		}
	}
	return f
}

// in reports whether f has what l means.
func (l *literal) in(f found) bool {
	return l.means.kinds && f.kinds || l.means.commands && f.commands || l.means.flags && f.flags ||
		l.means.spaced && f.spaced || l.means.patterns&f.patterns != 0
}

func (l *literal) at(s string, at int) bool {
	end := at + len(l.text)
	return strings.HasPrefix(s[at:], l.text) && (!l.word || beginsWord(s, at)) &&
		(l.behind == "" || end < len(s) && strings.IndexByte(l.behind, s[end]) >= 0)
}

// inRun reports that no word begins at s[at]; it is the cheap half of beginsWord.
func inRun(s string, at int) bool {
	return at > 0 && inWord[s[at-1]] && (at < 2 || s[at-2] != '\\') && (at < 6 || s[at-6] != '\\')
}
