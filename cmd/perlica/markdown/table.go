package markdown

import (
	"strings"

	"github.com/perlica/perlica/cmd/perlica/term"
	"github.com/yuin/goldmark/text"
)

// table is rows of cells in Markdown; the first row is the head.
type table [][]string

// parseTable reads a block that is a table and nothing else.
func parseTable(src string) (t table, ok bool) {
	rows := strings.Split(strings.TrimRight(src, "\n"), "\n")
	if len(rows) < 2 || !strings.Contains(rows[0], "|") || !strings.Contains(rows[1], "-") || strings.Trim(rows[1], "|:- \t") != "" {
		return nil, false
	}
	head, rule := cells(rows[0]), cells(rows[1])
	if len(head) != len(rule) {
		return nil, false
	}
	for i, row := range rows {
		if i == 1 {
			continue
		}
		if !strings.Contains(row, "|") {
			return nil, false
		}
		c := cells(row)
		for len(c) < len(head) {
			c = append(c, "")
		}
		if len(c) > len(head) {
			return nil, false // nothing is cut off
		}
		t = append(t, c)
	}
	return t, true
}

// cells splits a row at its bars, but for those that are escaped or in code.
func cells(row string) (list []string) {
	row = strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(row), "|"), "|")
	var b strings.Builder
	code := false
	for i := 0; i < len(row); i++ {
		switch c := row[i]; {
		case c == '\\' && i+1 < len(row) && row[i+1] == '|':
			b.WriteByte('|')
			i++
		case c == '|' && !code:
			list = append(list, strings.TrimSpace(b.String()))
			b.Reset()
		default:
			code = code != (c == '`')
			b.WriteByte(c)
		}
	}
	return append(list, strings.TrimSpace(b.String()))
}

// table sets a table in columns; ok is false if it is too wide for the terminal.
func (r *renderer) table(t table) (out string, ok bool) {
	painted := make([][]string, len(t))
	widths := make([]int, len(t[0]))
	for i, row := range t {
		for j, cell := range row {
			st := style(0)
			if i == 0 {
				st = bold
			}
			s := r.oneLine(cell, st)
			painted[i] = append(painted[i], s)
			widths[j] = max(widths[j], term.Columns(s))
		}
	}
	total := 3 * (len(widths) - 1)
	for _, w := range widths {
		total += w
	}
	if width := r.width(); width > 0 && total >= width {
		return "", false
	}
	var b strings.Builder
	for i, row := range painted {
		line := ""
		for j, cell := range row {
			if j > 0 {
				line += r.styles.Dim(" │ ")
			}
			line += cell + strings.Repeat(" ", widths[j]-term.Columns(cell))
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
		if i == 0 {
			var rule []string
			for _, w := range widths {
				rule = append(rule, strings.Repeat("─", w))
			}
			b.WriteString(r.styles.Dim(strings.Join(rule, "─┼─")) + "\n")
		}
	}
	return b.String(), true
}

// oneLine renders what stands in a cell.
func (r *renderer) oneLine(cell string, st style) string {
	doc := grammar().Parse(text.NewReader([]byte(cell)))
	first := doc.FirstChild()
	if first == nil || first.NextSibling() != nil || first.FirstChild() == nil {
		return r.paint(cell, st)
	}
	var b strings.Builder
	for _, s := range r.inline(first, []byte(cell), st) {
		b.WriteString(r.paint(strings.ReplaceAll(s.text, "\n", " "), s.style&^hard))
	}
	return b.String()
}
