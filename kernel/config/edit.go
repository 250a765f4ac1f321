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
	"strings"

	"github.com/perlica/perlica/eventlog/durable"
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
	if err := durable.WriteFile(file, changed, mode, os.Rename); err != nil {
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
		return addInline(data, l, path, literal)
	}
	if l.shared == 0 && len(path) > 1 || l.shared < len(path)-1 && !l.dotted {
		return addTable(data, path, literal)
	}
	return addLine(data, l, path, literal)
}

// splice replaces data[from:to].
func splice(data []byte, from, to int, s string) []byte {
	out := make([]byte, 0, len(data)+len(s))
	out = append(out, data[:from]...)
	out = append(out, s...)
	return append(out, data[to:]...)
}

// addInline adds the key behind the last one of an inline table.
func addInline(data []byte, l layout, path []string, literal string) []byte {
	entry := keyOf(path[l.inlineDepth:]) + " = " + literal
	if l.inline.from == l.inline.to { // empty: to is behind the brace
		return splice(data, l.inline.to, l.inline.to, " "+entry+" ")
	}
	return splice(data, l.inline.to, l.inline.to, ", "+entry)
}

// addTable adds a table with the key at the end of the file.
func addTable(data []byte, path []string, literal string) []byte {
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

// addLine adds the key on a line of its own behind the last key of its table.
func addLine(data []byte, l layout, path []string, literal string) []byte {
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

// keyOf writes a dotted key; the parts of our keys never need quotes.
func keyOf(path []string) string { return strings.Join(path, ".") }

// newline is the line ending a file uses.
func newline(data []byte) string {
	if bytes.Contains(data, []byte("\r\n")) {
		return "\r\n"
	}
	return "\n"
}
