package config

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
)

// byteOrderMark is the beginning of files that some Windows editors write.
var byteOrderMark = []byte("\xef\xbb\xbf")

// document is a TOML file: its values, and the line of each key.
type document struct {
	tree  map[string]any
	lines map[string]int // line numbers by path; sep separates the parts of a path
}

const sep = "\x00"

// parseDocument parses a TOML file within the limits of a configuration file. The error is a *Problem with line and
// column.
//
// The strict decoder returns the values and finds every violation of TOML. A second walk through the syntax tree only
// finds the lines.
func parseDocument(source string, data []byte) (*document, *Problem) {
	data = bytes.TrimPrefix(data, byteOrderMark)
	if problem := exceeds(source, data); problem != nil {
		return nil, problem
	}
	d := &document{lines: map[string]int{}}
	if err := toml.Unmarshal(data, &d.tree); err != nil {
		said := errNotTOML.With(printable(strings.TrimPrefix(err.Error(), "toml: ")))
		p := &Problem{Source: source, Line: 1, Reason: said.Text, Coded: said.Coded, Err: err}
		var de *toml.DecodeError
		if errors.As(err, &de) {
			p.Line, p.Column = de.Position()
		}
		return nil, p
	}
	w := &walker{data: data, line: 1, seen: d.lines, arrays: map[string]int{}}
	if err := w.walkTree(); err != nil {
		return nil, &Problem{Source: source, Reason: err.Error(), Err: err}
	}
	return d, nil
}

// lineOf returns the line of the value at a path. For an unknown path it returns the line of the longest known prefix.
func (d *document) lineOf(path []string) int {
	for n := len(path); n > 0; n-- {
		if line, ok := d.lines[strings.Join(path[:n], sep)]; ok {
			return line
		}
	}
	return 1
}

// walker finds the line of every key of a document.
type walker struct {
	parser unstable.Parser
	data   []byte
	offset int // the newlines before this offset are counted in line
	line   int
	seen   map[string]int
	// arrays maps each array of tables to the number of its tables so far.
	arrays map[string]int
	// table is the path of the current [table].
	table string
}

func (w *walker) walkTree() error {
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

// header stores the line of a [table] or [[table]] header and returns its path.
func (w *walker) header(e *unstable.Node) string {
	path := ""
	for it := e.Key(); it.Next(); {
		if path != "" {
			path = w.element(path)
		}
		path = join(path, string(it.Node().Data))
		w.noteLine(path, it.Node().Raw.Offset)
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

// element returns the path of the newest table, if path is an array of tables. Otherwise it returns path.
func (w *walker) element(path string) string {
	if n := w.arrays[path]; n > 0 {
		return join(path, strconv.Itoa(n-1))
	}
	return path
}

func (w *walker) keyValue(path string, e *unstable.Node) {
	for it := e.Key(); it.Next(); {
		path = join(path, string(it.Node().Data))
		w.noteLine(path, it.Node().Raw.Offset)
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

// noteLine stores the line of a path when the path occurs for the first time.
func (w *walker) noteLine(path string, offset uint32) {
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

// A configuration file must stay within these limits. A project's file comes with a clone, and the TOML parser needs
// too much time and memory for deeply nested names. So the limits are checked before the file is parsed.
// BenchmarkHostileFiles measures the worst files.
const (
	maxFileSize    = 1 << 20  // bytes, of the user's file and of a system prompt
	maxProjectSize = 64 << 10 // bytes, of a project's config.toml
	maxValues      = 2000     // keys, tables and elements of lists
	maxDepth       = 16       // parts of one dotted name, or nested brackets
)

// exceeds returns the first violation of a limit in a TOML file, with its line, or nil. It counts names and brackets
// outside of strings and comments. It does not check whether the file is valid TOML.
func exceeds(source string, data []byte) *Problem {
	line, values, parts, brackets := 1, 0, 1, 0
	for i := 0; i < len(data); {
		switch c := data[i]; c {
		case '"', '\'':
			n := stringLength(data[i:])
			line += bytes.Count(data[i:i+n], []byte("\n"))
			i += n
			continue
		case '#':
			if n := bytes.IndexByte(data[i:], '\n'); n >= 0 {
				i += n
			} else {
				i = len(data)
			}
			continue
		case '\n':
			line++
			parts = 1
		case '.':
			parts++
		case '=', ',':
			values++
			parts = 1
		case '[', '{':
			values++
			brackets++
			parts = 1
		case ']', '}':
			brackets--
		}
		switch {
		case parts > maxDepth || brackets > maxDepth:
			return &Problem{Source: source, Line: line, Reason: fmt.Sprintf("nests deeper than %d levels", maxDepth)}
		case values > maxValues:
			return &Problem{Source: source, Line: line, Reason: fmt.Sprintf("holds more than %d keys and values", maxValues)}
		}
		i++
	}
	return nil
}

// stringLength returns the length in bytes of the TOML string at the start of data. An unclosed string ends where the
// parser reports the error: at the end of its line, or of the file.
func stringLength(data []byte) int {
	quote := data[:1]
	end := quote
	if long := bytes.Repeat(quote, 3); bytes.HasPrefix(data, long) {
		end = long
	}
	for i := len(end); i < len(data); i++ {
		switch {
		case data[i] == '\\' && quote[0] == '"':
			i++
		case data[i] == '\n' && len(end) == 1:
			return i
		case bytes.HasPrefix(data[i:], end):
			return i + len(end)
		}
	}
	return len(data)
}
