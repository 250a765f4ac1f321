package config

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/perlica/perlica/eventlog/message"
)

// entry is one key that a file sets.
type entry struct {
	setting
	line int
}

// element is one table of an array of tables, such as [[policy.rule]].
type element struct {
	list    string
	line    int
	place   string // file:line
	folder  string // the folder from which relative paths start
	entries []entry
}

// layer holds the settings of one file.
type layer struct {
	name     string // "user file" or "project file"
	source   string
	doc      *document
	entries  []entry
	elements []element
	problems Problems
	// more is the number of problems beyond maxProblems.
	more int
}

// projectFile is the name of the project's layer. A personal key is an error in it.
const projectFile = "project file"

// readLayer parses a file and checks it against the table of keys. An invalid key becomes a problem instead of an
// entry.
func readLayer(name, source string, data []byte) *layer {
	l := &layer{name: name, source: source}
	doc, problem := parseDocument(source, data)
	if problem != nil {
		l.problems = Problems{problem}
		return l
	}
	l.doc = doc
	l.section(nil, doc.tree)
	if l.more > 0 {
		l.problems = append(l.problems, &Problem{Source: source, Line: 1, Reason: fmt.Sprintf("%d more mistakes", l.more)})
	}
	return l
}

// maxProblems is the number of mistakes in one file that are reported one by one. A file may have thousands, and
// each is compared with all keys to find the intended one.
const maxProblems = 10

// problem adds a mistake in the key at a path.
func (l *layer) problem(path []string, f fault) {
	if len(l.problems) == maxProblems {
		l.more++
		return
	}
	l.problems = append(l.problems, &Problem{
		Source: l.source, Line: l.doc.lineOf(path), Key: shown(path), Reason: f.reason.Text, Coded: f.reason.Coded,
		Nearest: f.nearest,
	})
}

// section adds the keys of a table, in the order of their lines.
func (l *layer) section(path []string, tree map[string]any) {
	for _, name := range l.inOrder(path, tree) {
		at := append(path[:len(path):len(path)], name)
		key := strings.Join(at, ".")
		row, id := rowOf(key)
		switch {
		case isList(key):
			l.list(key, at, tree[name])
		case row != nil && strings.Count(row.name, ".") == len(at)-1:
			l.entry(at, row, id, tree[name])
		default:
			l.subsection(at, tree[name])
		}
	}
}

// inOrder returns the names in a table, ordered by their lines.
func (l *layer) inOrder(path []string, tree map[string]any) []string {
	names := slices.Sorted(maps.Keys(tree))
	if len(names) < 2 {
		return names
	}
	lines := make(map[string]int, len(names))
	for _, name := range names {
		lines[name] = l.doc.lineOf(append(path[:len(path):len(path)], name))
	}
	sort.SliceStable(names, func(i, j int) bool { return lines[names[i]] < lines[names[j]] })
	return names
}

func (l *layer) entry(at []string, row *row, id string, v any) {
	value, f := row.decodeValue(v)
	if f != nil {
		l.problem(at, *f)
		return
	}
	line := l.doc.lineOf(at)
	if row.personal && l.name == projectFile {
		l.problem(at, fault{reason: uncoded("is a user's own: it does not come with a project")})
		return
	}
	l.entries = append(l.entries, entry{setting{row, strings.Join(at, "."), id, value, l.origin(line)}, line})
}

func (l *layer) origin(line int) string {
	return l.name + " " + l.source + ":" + strconv.Itoa(line)
}

// subsection handles a name that is not a key: it is a section or a mistake.
func (l *layer) subsection(at []string, v any) {
	if !isSection(at) {
		l.unknown(at)
		return
	}
	tree, ok := v.(map[string]any)
	if !ok {
		l.problem(at, fault{reason: uncoded("must be a table")})
		return
	}
	l.section(at, tree)
}

// unknown reports a name that is neither a key nor a section.
func (l *layer) unknown(at []string) {
	siblings, last := below(at[:len(at)-1]), at[len(at)-1]
	if len(siblings) == 1 && siblings[0] == anyID && !validID(last) {
		l.problem(at, fault{reason: errProvider})
		return
	}
	f := fault{reason: errUnknownKey}
	if len(l.problems) < maxProblems {
		f.nearest = nearestKey(last, siblings)
	}
	l.problem(at, f)
}

// nearestKey returns the valid key that was probably meant, or "". It compares the word with the siblings first, and
// then with the last parts of all keys.
func nearestKey(word string, siblings []string) string {
	if n := nearest(word, siblings); n != "" {
		return n
	}
	for i := range table {
		if name := table[i].name; strings.HasSuffix(name, "."+word) || strings.HasSuffix(name, "_"+word) {
			return name
		}
	}
	return ""
}

// list adds the tables of an array.
func (l *layer) list(key string, at []string, v any) {
	list, ok := v.([]any)
	if !ok {
		l.problem(at, fault{reason: uncoded("must be a list of tables, written [[" + key + "]]")})
		return
	}
	for i, e := range list {
		here := append(at[:len(at):len(at)], strconv.Itoa(i))
		if tree, ok := e.(map[string]any); ok {
			l.element(key, here, tree)
		} else {
			l.problem(here, fault{reason: uncoded("must be a table")})
		}
	}
}

// element adds one table of an array. It drops the whole table if the table has a mistake.
func (l *layer) element(list string, at []string, tree map[string]any) {
	before := len(l.problems) + l.more
	e := element{list: list, line: l.doc.lineOf(at)}
	e.place = l.source + ":" + strconv.Itoa(e.line)
	for _, name := range l.inOrder(at, tree) {
		here := append(at[:len(at):len(at)], name)
		row, _ := rowOf(list + "[]." + name)
		if row == nil {
			l.problem(here, fault{reason: errUnknownKey, nearest: nearest(name, below(at[:len(at)-1]))})
			continue
		}
		value, f := row.decodeValue(tree[name])
		if f != nil {
			l.problem(here, *f)
			continue
		}
		line := l.doc.lineOf(here)
		e.entries = append(e.entries, entry{setting{row: row, key: name, value: value, origin: l.origin(line)}, line})
	}
	if len(l.problems)+l.more > before {
		return
	}
	if reason := l.checkElement(&e); reason != nil {
		l.problem(at, fault{reason: reason})
		return
	}
	l.elements = append(l.elements, e)
}

// checkElement checks whether the keys of a table fit together. It returns the mistake, or nil.
func (l *layer) checkElement(e *element) *message.Text {
	for i := range table {
		if r := &table[i]; r.required && r.section() == e.list {
			if name := r.name[len(e.list)+len("[]."):]; e.valueOf(name) == nil {
				return errMissingKey.With(name)
			}
		}
	}
	if key := nameKey[e.list]; key != "" {
		for i := range l.elements {
			if other := &l.elements[i]; other.list == e.list && other.valueOf(key) == e.valueOf(key) {
				return errTaken.With(key, other.line)
			}
		}
	}
	switch e.list {
	case serverSection:
		return checkServer(e)
	case programSection, hookSection:
		if len(e.valueOf("command").([]string)) == 0 {
			return uncoded("command is empty")
		}
	case scheduleSection:
		return cmp.Or(e.needsOne("cron", "every"), e.needsOne("text", "flow"), checkSchedule(e))
	case budgetSection:
		if e.valueOf("calls") == nil && e.valueOf("tokens") == nil && e.valueOf("money") == nil {
			return uncoded("calls, tokens or money is missing")
		}
	}
	return nil
}

// checkSchedule checks the limits of a schedule's times, and that only a flow has inputs.
func checkSchedule(e *element) *message.Text {
	every, is := e.valueOf("every").(time.Duration)
	switch {
	case is && (every < time.Second || every > 24*time.Hour):
		return errEvery
	case e.valueOf("inputs") != nil && e.valueOf("flow") == nil:
		return errInputs
	}
	return nil
}

// nameKey has the key that names a table, for the sections in which a later file replaces a table of the same name.
var nameKey = map[string]string{serverSection: "name", scheduleSection: "id"}

// needsOne returns a mistake unless the element has exactly one of two keys.
func (e *element) needsOne(a, b string) *message.Text {
	switch hasA, hasB := e.valueOf(a) != nil, e.valueOf(b) != nil; {
	case hasA && hasB:
		return errBothKeys.With(a, b)
	case !hasA && !hasB:
		return errMissingOne.With(a, b)
	}
	return nil
}

// checkServer checks that a server's keys fit its type, and sets a missing type.
func checkServer(e *element) *message.Text {
	kind, _ := e.valueOf("type").(string)
	if kind == "" {
		kind = "stdio"
		if e.valueOf("command") == nil && e.valueOf("url") != nil {
			kind = "http"
		}
		row, _ := rowOf(serverSection + "[].type")
		e.entries = append(e.entries, entry{setting{row: row, key: "type", value: kind, origin: "default"}, e.line})
	}
	need, foreign := "command", []string{"url", "headers"}
	if kind != "stdio" {
		need, foreign = "url", []string{"command", "args", "env"}
	}
	if e.valueOf(need) == nil {
		return uncoded("a server of type " + kind + " needs a " + need)
	}
	for _, name := range foreign {
		if e.valueOf(name) != nil {
			return uncoded("a server of type " + kind + " has no " + name)
		}
	}
	return nil
}

// valueOf returns the value of a key of the element, or nil.
func (e *element) valueOf(key string) any {
	for i := range e.entries {
		if e.entries[i].key == key {
			return e.entries[i].value
		}
	}
	return nil
}

// shown returns a path in the usual notation, such as mcp.servers[0].name.
func shown(path []string) string {
	var b strings.Builder
	for i, part := range path {
		if isList(strings.Join(path[:i], ".")) {
			b.WriteString("[" + part + "]")
			continue
		}
		if i > 0 {
			b.WriteByte('.')
		}
		b.WriteString(part)
	}
	return b.String()
}

// isList reports whether the key has an array of tables.
func isList(key string) bool { return slices.Contains(lists, key) }
