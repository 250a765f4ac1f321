package frame

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/mattn/go-runewidth"

	"github.com/perlica/perlica/cmd/perlica/screen"
	"github.com/perlica/perlica/interaction/card"
)

// Grid is a table. Each column is as wide as its widest cell. On a narrower screen the widest columns shrink, and
// their cells wrap at words. If this is not enough, each row becomes a block of lines.
type Grid struct {
	Head []string
	rows [][]string
}

const (
	gap       = 2  // space between two cells, in columns of the screen
	longWord  = 16 // in columns; a column may become so narrow that longer words break
	leastCell = 4  // in columns; the least width of a value if each row is a block of lines
)

// Add adds a row.
func (g *Grid) Add(cells ...string) { g.rows = append(g.rows, cells) }

// Write prints the table. width is the width of the terminal in columns; 0 means no limit.
func (g *Grid) Write(w io.Writer, s screen.Styles, width int) error {
	all := append([][]string{g.Head}, g.rows...)
	widths, least := make([]int, len(g.Head)), make([]int, len(g.Head))
	for _, row := range all {
		for i := range row {
			row[i] = OneLine(row[i])
			widths[i] = max(widths[i], runewidth.StringWidth(row[i]))
			for word := range strings.FieldsSeq(row[i]) {
				least[i] = max(least[i], min(runewidth.StringWidth(word), longWord))
			}
		}
	}
	if width > 0 {
		if rowWidth(least) > width {
			return g.writeBlocks(w, s, width)
		}
		for rowWidth(widths) > width {
			shrinkWidest(widths, least)
		}
	}
	for r, row := range all {
		for _, line := range gridLines(row, widths) {
			if r == 0 {
				line = s.Dim(line)
			}
			if _, err := fmt.Fprintln(w, line); err != nil {
				return err
			}
		}
	}
	return nil
}

// rowWidth returns the width of a row of columns with these widths.
func rowWidth(widths []int) int {
	sum := gap * (len(widths) - 1)
	for _, w := range widths {
		sum += w
	}
	return sum
}

// shrinkWidest makes the widest column that may still shrink narrower by one.
func shrinkWidest(widths, least []int) {
	at := -1
	for i, w := range widths {
		if w > least[i] && (at < 0 || w > widths[at]) {
			at = i
		}
	}
	widths[at]--
}

// gridLines returns the lines of one row. Each cell wraps at words within its column.
func gridLines(row []string, widths []int) []string {
	cells, height := make([][]string, len(row)), 1
	for i, cell := range row {
		cells[i] = []string{cell}
		// This uses runewidth. Package card counts some characters as wider and would wrap a cell that fits.
		if runewidth.StringWidth(cell) > widths[i] {
			cells[i] = card.Rows(cell, max(widths[i], 1))
		}
		height = max(height, len(cells[i]))
	}
	lines := make([]string, height)
	for n := range lines {
		var line strings.Builder
		for i, rows := range cells {
			text := ""
			if n < len(rows) {
				text = rows[n]
			}
			line.WriteString(runewidth.FillRight(text, widths[i]+gap))
		}
		lines[n] = strings.TrimRight(line.String(), " ")
	}
	return lines
}

// writeBlocks prints each row as a block of lines. Each line has the name of a column and the text of its cell.
// Empty cells have no line.
func (g *Grid) writeBlocks(w io.Writer, s screen.Styles, width int) error {
	name := 0
	for _, head := range g.Head {
		name = max(name, runewidth.StringWidth(head))
	}
	for n, row := range g.rows {
		if n > 0 {
			if _, err := fmt.Fprintln(w); err != nil {
				return err
			}
		}
		for i, cell := range row {
			if cell == "" {
				continue
			}
			for k, text := range card.Rows(cell, max(width-name-gap, leastCell)) {
				head := ""
				if k == 0 {
					head = g.Head[i]
				}
				if _, err := fmt.Fprintln(w, s.Dim(runewidth.FillRight(head, name+gap))+text); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// DropEmpty removes a column if each of its cells is one of the values in empty, such as "" or "0".
func (g *Grid) DropEmpty(empty ...string) {
	for i := len(g.Head) - 1; i >= 0; i-- {
		if slices.ContainsFunc(g.rows, func(row []string) bool { return !slices.Contains(empty, row[i]) }) {
			continue
		}
		g.Head = slices.Delete(slices.Clone(g.Head), i, i+1)
		for n, row := range g.rows {
			g.rows[n] = slices.Delete(row, i, i+1)
		}
	}
}
