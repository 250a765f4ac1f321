package config

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2/unstable"

	"github.com/perlica/perlica/eventlog/disk"
)

// Set writes one scalar key, such as "model.default_provider", into a file. It creates a missing file. The value is
// written as in an environment variable. Set does not change any other byte of the file, and preserves the file's mode
// and a symbolic link. It replaces the file atomically.
//
// An invalid key or value, or a file that is not TOML, is an error of type Problems. After an error the file is
// unchanged. If two processes call Set at the same time, one of the changes may be lost, but never the file.
//
// After Set has changed a trusted project's file, the project is no longer trusted.
func Set(file, key, value string) error {
	row, _ := rowOf(key)
	if row == nil || !row.kind.scalar() || strings.Contains(row.name, "[]") {
		parts := strings.Split(key, ".")
		near := nearestKey(parts[len(parts)-1], below(parts[:len(parts)-1]))
		return Problems{{Source: file, Key: key, Reason: "is not a key that can be set", Nearest: near}}
	}
	v, f := row.parseText(value)
	if f != nil {
		return Problems{{Source: file, Key: key, Reason: f.reason.Text, Coded: f.reason.Coded, Nearest: f.nearest}}
	}
	if real, err := filepath.EvalSymlinks(file); err == nil {
		file = real
	}
	data, mode, err := readForEdit(file)
	if err != nil {
		return fmt.Errorf("config: set: %w", err)
	}
	changed, err := setKey(file, data, strings.Split(key, "."), format(v))
	if err != nil {
		return err
	}
	if bytes.Equal(changed, data) {
		return nil
	}
	if err := disk.WriteFile(file, changed, mode, os.Rename); err != nil {
		return fmt.Errorf("config: set: %w", err)
	}
	return nil
}

// readForEdit reads a file. The file and its directory may not exist.
func readForEdit(file string) ([]byte, fs.FileMode, error) {
	info, err := os.Stat(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0o600, os.MkdirAll(filepath.Dir(file), 0o700)
	}
	if err != nil {
		return nil, 0, err
	}
	data, err := ReadRegular(file, maxFileSize)
	return data, info.Mode().Perm(), err
}

// setKey returns the file with the key set to a TOML literal. It parses the result: it must have the old values and the
// new one. Otherwise setKey returns an error.
func setKey(source string, data []byte, path []string, literal string) ([]byte, error) {
	before, problem := parseDocument(source, data)
	if problem != nil {
		return nil, Problems{problem}
	}
	mark := len(data) - len(bytes.TrimPrefix(data, byteOrderMark))
	out := append(data[:mark:mark], edit(data[mark:], path, literal)...)
	after, problem := parseDocument(source, out)
	if problem == nil {
		want, _ := parseDocument(source, []byte("v = "+literal))
		if plant(&before.tree, path, want.tree["v"]) && reflect.DeepEqual(before.tree, after.tree) {
			return out, nil
		}
	}
	return nil, Problems{{
		Source: source, Line: before.lineOf(path), Key: strings.Join(path, "."),
		Reason: "cannot be set without rewriting the file; set it by hand",
	}}
}

// plant sets the value at a path of a tree. It returns false if the path leads through a value that is not a table.
func plant(tree *map[string]any, path []string, v any) bool {
	if *tree == nil {
		*tree = map[string]any{}
	}
	t := *tree
	for _, part := range path[:len(path)-1] {
		if t[part] == nil {
			t[part] = map[string]any{}
		}
		next, ok := t[part].(map[string]any)
		if !ok {
			return false
		}
		t = next
	}
	t[path[len(path)-1]] = v
	return true
}

// edit replaces the value of an existing key. If the key is new, edit adds it after related keys.
func edit(data []byte, path []string, literal string) []byte {
	l := layoutOf(data, path)
	if l.found {
		return splice(data, l.value.from, l.value.to, literal)
	}
	if l.inline.to > 0 {
		// The new key goes after the last key of an inline table.
		entry := keyOf(path[l.inlineDepth:]) + " = " + literal
		if l.inline.from == l.inline.to { // the table is empty, so l.inline.to is the place after its opening brace
			return splice(data, l.inline.to, l.inline.to, " "+entry+" ")
		}
		return splice(data, l.inline.to, l.inline.to, ", "+entry)
	}
	if l.shared == 0 && len(path) > 1 || l.shared < len(path)-1 && !l.dotted { // a new table goes to the end
		nl := newline(data)
		lead := ""
		if len(data) > 0 {
			lead = nl
			if data[len(data)-1] != '\n' {
				lead += nl
			}
		}
		last := len(path) - 1
		return splice(data, len(data), len(data),
			lead+"["+keyOf(path[:last])+"]"+nl+keyOf(path[last:])+" = "+literal+nl)
	}
	// The new key gets its own line after the last key of its table.
	line := l.indent + keyOf(path[l.tableDepth:]) + " = " + literal
	nl := newline(data)
	at := l.after
	if i := bytes.IndexByte(data[at:], '\n'); at > 0 && i >= 0 {
		at += i + 1
	} else if at > 0 {
		return splice(data, len(data), len(data), nl+line)
	}
	return splice(data, at, at, line+nl)
}

// splice replaces data[from:to].
func splice(data []byte, from, to int, s string) []byte {
	return slices.Concat(data[:from], []byte(s), data[to:])
}

// keyOf joins the parts of a dotted key. The parts of Perlica's keys never need quotes.
func keyOf(path []string) string { return strings.Join(path, ".") }

// newline returns the line ending of a file.
func newline(data []byte) string {
	if bytes.Contains(data, []byte("\r\n")) {
		return "\r\n"
	}
	return "\n"
}

// SetProject works like Set for the project's own file, but preserves the project's trust. It trusts exactly the
// previously trusted file with this one key changed. If another process changed the file after SetProject had read it,
// the project is not trusted. A new file is trusted.
func SetProject(dirs Dirs, ws Workspace, key, value string) error {
	before, problems := readProject(ws)
	if len(problems) > 0 {
		return problems
	}
	// A new file is trusted, because it has only the setting that its user wants.
	trusted := !before.present()
	if before.present() {
		var err error
		if trusted, err = Trusted(dirs, ws, before.digest()); err != nil {
			return err
		}
	}
	err := Set(ws.ConfigFile(), key, value)
	if err == nil {
		err = ws.showInGit()
	}
	if err != nil || !trusted {
		return err
	}
	ws.Exists = true // Set has created the folder.
	after, problems := readProject(ws)
	if len(problems) > 0 {
		return problems
	}
	row, _ := rowOf(key) // Set has checked both
	v, _ := row.parseText(value)
	want, err := setKey(ws.ConfigFile(), before.config, strings.Split(key, "."), format(v))
	if err != nil || !bytes.Equal(after.config, want) || !bytes.Equal(after.prompt, before.prompt) {
		return err
	}
	return Trust(dirs, ws, after.digest())
}

// span is the range data[from:to].
type span struct{ from, to int }

// layout describes the place of a key in a file, or the place for a new key.
type layout struct {
	found bool
	// value is the key's value, if the key was found.
	value span

	// inline is the range from the first to the last key of the innermost inline table on the path. If the path has no
	// inline table, inline.to is 0.
	inline span
	// inlineDepth is the number of parts of that inline table's path.
	inlineDepth int

	// shared is the number of parts that the path has in common with the most closely related [table] or dotted key.
	shared int
	// tableDepth is the number of parts in the name of the [table] with that related key.
	tableDepth int
	// dotted means that the related key is a dotted key. TOML forbids a [table] for its prefix.
	dotted bool
	// after is an offset in the line after which the new line is inserted.
	after int
	// indent is the white space at the beginning of that line.
	indent string
}

// surveyor searches a file's syntax tree for one path.
type surveyor struct {
	parser unstable.Parser
	data   []byte
	path   []string
	l      layout

	// on means that the current [table] is a prefix of the path.
	on bool
	// depth is the length of that prefix.
	depth int
}

func layoutOf(data []byte, path []string) layout {
	s := &surveyor{data: data, path: path, on: true}
	s.parser.Reset(data)
	for s.parser.NextExpression() {
		switch e := s.parser.Expression(); e.Kind {
		case unstable.Table:
			parts, same, end := s.followKey(e.Key(), 0)
			s.on = same == parts && parts < len(s.path)
			s.depth = parts
			if s.on && parts > s.l.shared {
				s.l.dotted = false
				s.l.shared, s.l.tableDepth, s.l.after, s.l.indent = parts, parts, end, ""
			}
		case unstable.ArrayTable:
			s.on = false
		case unstable.KeyValue:
			if s.on {
				s.keyValue(e)
			}
		}
	}
	return s.l
}

// followKey compares a key with the next parts of the path. It returns the number of the key's parts, the number of
// equal parts, and the offset of the key's end.
func (s *surveyor) followKey(it unstable.Iterator, depth int) (parts, same int, end int) {
	equal := true
	for it.Next() {
		n := it.Node()
		end = int(n.Raw.Offset + n.Raw.Length)
		if at := depth + parts; equal && at < len(s.path) && string(n.Data) == s.path[at] {
			same++
		} else {
			equal = false
		}
		parts++
	}
	return parts, same, end
}

// keyValue handles a key in a [table] if the table's name is a prefix of the path.
func (s *surveyor) keyValue(e *unstable.Node) {
	parts, same, end := s.followKey(e.Key(), s.depth)
	if same == parts {
		s.onPath(e, s.depth+parts, end)
	}
	to := int(e.Raw.Offset + e.Raw.Length)
	shared := s.depth + min(same, parts-1)
	deeper := same > 0 && parts > 1 && shared > s.l.shared
	if deeper {
		s.l.dotted = true
	}
	if deeper || s.depth == s.l.tableDepth && shared >= s.l.shared {
		s.l.shared, s.l.tableDepth = shared, s.depth
		s.l.after, s.l.indent = to, s.indentOf(int(e.Raw.Offset))
	}
}

// onPath handles a key if its whole path is a prefix of the wanted path.
func (s *surveyor) onPath(e *unstable.Node, depth, keyEnd int) {
	v := e.Value()
	from := keyEnd + bytes.IndexByte(s.data[keyEnd:], '=') + 1
	from += len(s.data[from:]) - len(bytes.TrimLeft(s.data[from:], " \t"))
	to := int(e.Raw.Offset + e.Raw.Length)
	if depth == len(s.path) {
		s.l.found, s.l.value = true, span{from, to}
		return
	}
	if v.Kind != unstable.InlineTable {
		return
	}
	s.l.inline, s.l.inlineDepth = span{from + 1, from + 1}, depth
	for it := v.Children(); it.Next(); {
		inner := it.Node()
		s.l.inline = span{from, int(inner.Raw.Offset + inner.Raw.Length)}
		s.l.inlineDepth = depth
	}
	for it := v.Children(); it.Next(); {
		inner := it.Node()
		if parts, same, end := s.followKey(inner.Key(), depth); same == parts {
			s.onPath(inner, depth+parts, end)
		}
	}
}

// indentOf returns the white space between the beginning of the line and an offset.
func (s *surveyor) indentOf(offset int) string {
	line := s.data[bytes.LastIndexByte(s.data[:offset], '\n')+1 : offset]
	if len(bytes.TrimLeft(line, " \t")) > 0 {
		return ""
	}
	return string(line)
}
