package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2/unstable"

	"github.com/perlica/perlica/eventlog/disk"
)

// Set writes one scalar key, such as "model.default_provider", into a file, which is
// made if it is not there. The value is text as in an environment variable. Every other
// byte of the file, comments and unknown sections included, stays as it is; the file is
// replaced atomically, keeps its mode, and a symbolic link to it stays one.
//
// A key or value that is not valid, or a file that is not TOML, is of type Problems.
// After an error the file is as it was. Two processes that set at the same time may
// lose one of the two changes, never the file.
//
// A project that was trusted is not trusted after Set has changed its file.
func Set(file, key, value string) error {
	row, _ := rowOf(key)
	if row == nil || !row.kind.scalar() || strings.Contains(row.name, "[]") {
		parts := strings.Split(key, ".")
		near := nearestKey(parts[len(parts)-1], below(parts[:len(parts)-1]))
		return Problems{{Source: file, Key: key, Reason: "is not a key that can be set", Nearest: near}}
	}
	v, f := row.parse(value)
	if f != nil {
		return Problems{{Source: file, Key: key, Reason: f.reason, Nearest: f.nearest}}
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

// readForEdit reads a file that may not be there, in a directory that may not be there.
func readForEdit(file string) ([]byte, fs.FileMode, error) {
	info, err := os.Stat(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0o600, os.MkdirAll(filepath.Dir(file), 0o700)
	}
	if err != nil {
		return nil, 0, err
	}
	data, err := readRegular(os.Stat, func(p string) (io.ReadCloser, error) { return os.Open(p) }, file, maxFileSize)
	return data, info.Mode().Perm(), err
}

// setKey returns the file with the key set to a TOML literal. The result is parsed
// again and must hold what the file held and the new value: what cannot be edited
// that way is refused.
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

// plant sets a value in a tree. It returns false if something else is in the way.
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

// edit makes the change: it replaces the value where the key is, else adds the key
// to the place where its nearest relatives are.
func edit(data []byte, path []string, literal string) []byte {
	l := layoutOf(data, path)
	if l.found {
		return splice(data, l.value.from, l.value.to, literal)
	}
	if l.inline.to > 0 {
		// Behind the last key of an inline table.
		entry := keyOf(path[l.inlineDepth:]) + " = " + literal
		if l.inline.from == l.inline.to { // empty: to is behind the brace
			return splice(data, l.inline.to, l.inline.to, " "+entry+" ")
		}
		return splice(data, l.inline.to, l.inline.to, ", "+entry)
	}
	if l.shared == 0 && len(path) > 1 || l.shared < len(path)-1 && !l.dotted { // a table at the end of the file
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
	// A line of its own behind the last key of its table.
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

// keyOf writes a dotted key; the parts of our keys never need quotes.
func keyOf(path []string) string { return strings.Join(path, ".") }

// newline is the line ending a file uses.
func newline(data []byte) string {
	if bytes.Contains(data, []byte("\r\n")) {
		return "\r\n"
	}
	return "\n"
}

// SetProject is Set for the project's own file. A project that was trusted stays so: what
// is trusted is the file that was trusted before with this one key changed, and nothing
// that another process changed since it was read. So is a file that was not there.
func SetProject(dirs Dirs, ws Workspace, key, value string) error {
	before, problems := readProject(ws)
	if len(problems) > 0 {
		return problems
	}
	// Where there was no file, all that is in it is what its user wants set.
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
	ws.Exists = true // by now
	after, problems := readProject(ws)
	if len(problems) > 0 {
		return problems
	}
	row, _ := rowOf(key) // Set has checked both
	v, _ := row.parse(value)
	want, err := setKey(ws.ConfigFile(), before.config, strings.Split(key, "."), format(v))
	if err != nil || !bytes.Equal(after.config, want) || !bytes.Equal(after.prompt, before.prompt) {
		return err
	}
	return Trust(dirs, ws, after.digest())
}

// span is data[from:to].
type span struct{ from, to int }

// layout is where in a file a key is, or where it would go.
type layout struct {
	found bool
	value span // the key's value, when it is found

	inline      span // of the innermost inline table on the key's path: its first key to its last; to is 0 if there is none
	inlineDepth int  // how much of the path that table is

	shared     int    // how much of the path the nearest [table] or dotted key is
	tableDepth int    // how much of the path the [table] is in which that lies
	dotted     bool   // it is a dotted key, which no [table] may reopen
	after      int    // offset in the line behind which a line would be added
	indent     string // of that line
}

// surveyor walks a file's syntax tree in search of one path.
type surveyor struct {
	parser unstable.Parser
	data   []byte
	path   []string
	l      layout

	on    bool // the current [table] is a prefix of the path
	depth int  // how long a prefix
}

func layoutOf(data []byte, path []string) layout {
	s := &surveyor{data: data, path: path, on: true}
	s.parser.Reset(data)
	for s.parser.NextExpression() {
		switch e := s.parser.Expression(); e.Kind {
		case unstable.Table:
			parts, same, end := s.follow(e.Key(), 0)
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

// follow returns how many parts a key has, whether they are the next of the path, and
// how many are.
func (s *surveyor) follow(it unstable.Iterator, depth int) (parts, same int, end int) {
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

// keyValue looks at a key of a [table] on the path.
func (s *surveyor) keyValue(e *unstable.Node) {
	parts, same, end := s.follow(e.Key(), s.depth)
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

// onPath looks at a key whose whole path is a prefix of the one that is sought.
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
		if parts, same, end := s.follow(inner.Key(), depth); same == parts {
			s.onPath(inner, depth+parts, end)
		}
	}
}

// indentOf is the white space between the beginning of the line and an offset.
func (s *surveyor) indentOf(offset int) string {
	line := s.data[bytes.LastIndexByte(s.data[:offset], '\n')+1 : offset]
	if len(bytes.TrimLeft(line, " \t")) > 0 {
		return ""
	}
	return string(line)
}
