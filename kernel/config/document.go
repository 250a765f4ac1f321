package config

import (
	"bytes"
	"errors"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
)

// byteOrderMark begins files that some Windows editors write.
var byteOrderMark = []byte("\xef\xbb\xbf")

// document is a TOML file: its values, and the line of each key.
type document struct {
	tree  map[string]any
	lines map[string]int // by path, parts joined with sep
}

const sep = "\x00"

// parseDocument reads TOML within the limits of a configuration file. The error is a *Problem with
// line and column.
//
// The strict decoder makes the values and finds every breach of TOML; the syntax tree
// is walked a second time for nothing but positions.
func parseDocument(source string, data []byte) (*document, *Problem) {
	data = bytes.TrimPrefix(data, byteOrderMark)
	if problem := exceeds(source, data); problem != nil {
		return nil, problem
	}
	d := &document{lines: map[string]int{}}
	if err := toml.Unmarshal(data, &d.tree); err != nil {
		return nil, syntaxProblem(source, err)
	}
	w := &walker{data: data, line: 1, seen: d.lines, arrays: map[string]int{}}
	if err := w.walk(); err != nil {
		return nil, &Problem{Source: source, Reason: err.Error(), Err: err}
	}
	return d, nil
}

func syntaxProblem(source string, err error) *Problem {
	p := &Problem{Source: source, Line: 1, Reason: printable(strings.TrimPrefix(err.Error(), "toml: ")), Err: err}
	var de *toml.DecodeError
	if errors.As(err, &de) {
		p.Line, p.Column = de.Position()
	}
	return p
}

// lineOf returns the line of a path, or of the nearest thing around it.
func (d *document) lineOf(path []string) int {
	for n := len(path); n > 0; n-- {
		if line, ok := d.lines[strings.Join(path[:n], sep)]; ok {
			return line
		}
	}
	return 1
}

// walker notes the line of every key of a document, in the document's order.
type walker struct {
	parser unstable.Parser
	data   []byte
	offset int // everything before it has been counted
	line   int
	seen   map[string]int
	arrays map[string]int // arrays of tables: how many elements so far
	table  string         // the path of the current [table]
}

func (w *walker) walk() error {
	w.parser.Reset(w.data)
	for w.parser.NextExpression() {
		switch e := w.parser.Expression(); e.Kind {
		case unstable.Table, unstable.ArrayTable:
			w.table = w.header(e)
		case unstable.KeyValue:
			w.keyValue(w.table, e)
		}
	}
	return w.parser.Error()
}

// header notes a [table] or [[table]] and returns its path.
func (w *walker) header(e *unstable.Node) string {
	path := ""
	for it := e.Key(); it.Next(); {
		if path != "" {
			path = w.element(path)
		}
		path = join(path, string(it.Node().Data))
		w.note(path, it.Node().Raw.Offset)
	}
	if e.Kind == unstable.ArrayTable {
		w.arrays[path]++
		last := w.arrays[path] - 1
		path = join(path, strconv.Itoa(last))
		w.seen[path] = w.line
		return path
	}
	return path
}

// element leads from an array of tables to the last of its elements.
func (w *walker) element(path string) string {
	if n := w.arrays[path]; n > 0 {
		return join(path, strconv.Itoa(n-1))
	}
	return path
}

func (w *walker) keyValue(path string, e *unstable.Node) {
	for it := e.Key(); it.Next(); {
		path = join(path, string(it.Node().Data))
		w.note(path, it.Node().Raw.Offset)
	}
	w.value(path, e.Value())
}

func (w *walker) value(path string, v *unstable.Node) {
	switch v.Kind {
	case unstable.InlineTable:
		for it := v.Children(); it.Next(); {
			w.keyValue(path, it.Node())
		}
	case unstable.Array:
		i := 0
		for it := v.Children(); it.Next(); i++ {
			w.value(join(path, strconv.Itoa(i)), it.Node())
		}
	}
}

// note remembers the line of the first mention of a path.
func (w *walker) note(path string, offset uint32) {
	if to := int(offset); to > w.offset {
		w.line += bytes.Count(w.data[w.offset:to], []byte("\n"))
		w.offset = to
	}
	if _, ok := w.seen[path]; !ok {
		w.seen[path] = w.line
	}
}

func join(path, part string) string {
	if path == "" {
		return part
	}
	return path + sep + part
}
