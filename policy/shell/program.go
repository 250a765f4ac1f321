package shell

import (
	_ "embed"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// programs is what is known of programs, a row each.
//
//go:embed programs.txt
var programs string

// rows are what programs says, by the titles of its parts and by name.
var rows = sync.OnceValue(func() map[string]map[string]string {
	out, title := map[string]map[string]string{}, ""
	for line := range strings.Lines(programs) {
		line = strings.TrimSpace(line)
		if name, ok := strings.CutPrefix(line, "== "); ok {
			title, out[name] = name, map[string]string{}
		} else if line != "" && line[0] != '#' {
			names, said, _ := strings.Cut(line, " =")
			for name := range strings.FieldsSeq(names) {
				out[title][name] = strings.TrimSpace(said)
			}
		}
	}
	return out
})

// listed says whether a name stands in a part.
func listed(title, name string) bool {
	_, ok := rows()[title][name]
	return ok
}

// table finds what a part says of a name; read makes it of the text.
func table[T any](title string, read func(said string) T) func(name string) (T, bool) {
	return func(name string) (row T, ok bool) {
		said, ok := rows()[title][name]
		if ok {
			row = read(said)
		}
		return row, ok
	}
}

// members are those of a row, by their first words. It may have no others than these.
func members(said string, names ...string) map[string][]string {
	out := map[string][]string{}
	for member := range strings.SplitSeq(said, ";") {
		words := strings.Fields(member)
		if len(words) == 0 {
			continue
		}
		if !slices.Contains(names, words[0]) {
			panic("policy/shell: programs.txt: " + said)
		}
		out[words[0]] = words[1:]
	}
	return out
}

// figure is a member that is a number; 0 where there is none.
func figure(words []string) int {
	n, _ := strconv.Atoi(strings.Join(words, "")) // 0
	return n
}
