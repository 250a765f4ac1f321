package screen

import (
	"strings"

	"github.com/yuin/goldmark/text"
)

// table is a table as rows of cells. A cell is Markdown, and the first row is the head.
type table [][]string

// parseTable parses a block. ok reports whether the whole block is one table.
func parseTable(src string) (t table, ok bool) {
	rows := strings.Split(strings.TrimRight(src, "\n"), "\n")
	if len(rows) < 2 || !strings.Contains(rows[0], "|") || !strings.Contains(rows[1], "-") ||
		strings.Trim(rows[1], "|:- \t") != "" {
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
			return nil, false // A row with too many cells would lose text, so the block is no table.
		}
		t = append(t, c)
	}
	return t, true
}

// cells splits a row of a table at its bars. It does not split at escaped bars and at bars in code.
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

// tableHead returns the first two lines of a block if they begin a table.
func tableHead(src string) (head string, ok bool) {
	lines := strings.SplitAfterN(src, "\n", 3)
	if len(lines) < 3 {
		return "", false
	}
	head = lines[0] + lines[1]
	_, ok = parseTable(head)
	return head, ok
}

// minColumn is the smallest width to which a wider column may shrink.
const minColumn = 8

// widthsOf divides the columns of a terminal among the columns of a table. The parameter "need" has the widths that the
// columns of the table want. If they are too wide together, the widest become narrower. ok is false if there are too
// many columns.
func widthsOf(need []int, width int) (list []int, ok bool) {
	list = append(list, need...)
	left, open := width-1-3*(len(need)-1), len(need)
	for open > 0 {
		share, fitting := left/open, 0
		for i, w := range list {
			if w >= 0 && w <= share {
				left -= w
				list[i] = -1 - w // A negative value means that column i has the width that it wants.
				fitting++
			}
		}
		if open -= fitting; fitting == 0 {
			if share < minColumn {
				return nil, false
			}
			break
		}
	}
	for i, w := range list {
		if list[i] = -1 - w; w >= 0 {
			list[i] = left / open
		}
	}
	return list, true
}

// renderTable renders a table. A long cell continues in the next row of the terminal. ok is false if the columns do
// not fit on the terminal.
func (r *renderer) renderTable(t table) (head, body string, ok bool) {
	cells := make([][][]span, len(t))
	need := make([]int, len(t[0]))
	for i, row := range t {
		for j, cell := range row {
			st := style(0)
			if i == 0 {
				st = bold
			}
			spans := r.cell(cell, st)
			cells[i] = append(cells[i], spans)
			w := 0
			for _, s := range spans {
				w += TextWidth(s.text)
			}
			need[j] = max(need[j], w)
		}
	}
	if r.width > 0 {
		if need, ok = widthsOf(need, r.width); !ok {
			return "", "", false
		}
	}
	var rule []string
	for _, w := range need {
		rule = append(rule, strings.Repeat("─", w))
	}
	var b strings.Builder
	for _, row := range cells[1:] {
		r.tableRow(&b, row, need)
	}
	body = b.String()
	b.Reset()
	r.tableRow(&b, cells[0], need)
	return b.String() + r.styles.Dim(strings.Join(rule, "─┼─")) + "\n", body, true
}

// tableRow renders one row of a table, which may take several rows of the terminal.
func (r *renderer) tableRow(b *strings.Builder, row [][]span, widths []int) {
	columns := make([][]string, len(row))
	height := 1
	for j, spans := range row {
		l := lines{r: r, width: max(widths[j], 1)}
		l.setSpans(spans)
		columns[j] = rowsOf(l.out.String(), l.width)
		height = max(height, len(columns[j]))
	}
	for n := range height {
		line := ""
		for j, rows := range columns {
			text := ""
			if n < len(rows) {
				text = rows[n]
			}
			if j > 0 {
				line += r.styles.Dim(" │") + " "
			}
			line += text + strings.Repeat(" ", max(widths[j]-TextWidth(text), 0))
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
}

// cell parses the Markdown of a cell and returns its spans.
func (r *renderer) cell(cell string, st style) []span {
	doc := grammar().Parse(text.NewReader([]byte(cell)))
	first := doc.FirstChild()
	if first == nil || first.NextSibling() != nil || first.FirstChild() == nil {
		return []span{{cell, st}}
	}
	spans := r.inlineSpans(first, []byte(cell), st)
	for i, s := range spans {
		spans[i] = span{strings.ReplaceAll(s.text, "\n", " "), s.style &^ hard}
	}
	return spans
}
