package config

import (
	"bytes"

	"github.com/pelletier/go-toml/v2/unstable"
)

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
			s.table(e)
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

func (s *surveyor) table(e *unstable.Node) {
	parts, same, end := s.follow(e.Key(), 0)
	s.on = same == parts && parts < len(s.path)
	s.depth = parts
	if s.on && parts > s.l.shared {
		s.l.dotted = false
		s.l.shared, s.l.tableDepth, s.l.after, s.l.indent = parts, parts, end, ""
	}
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
