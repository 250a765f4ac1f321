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

// Grid is a table. A column is as wide as its widest cell. On a narrower screen the widest columns shrink, and
// their cells wrap at words. On a screen too narrow for that, each row becomes a block of lines.
type Grid struct {
	Head []string
	rows [][]string
}

const (
	gap       = 2  // columns between two cells
	longWord  = 16 // columns: a longer word of a cell may break
	leastCell = 4  // columns that a value of a block keeps
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

// rowWidth returns the width of a row whose columns have these widths.
func rowWidth(widths []int) int {
	sum := gap * (len(widths) - 1)
	for _, w := range widths {
		sum += w
	}
	return sum
}

// shrinkWidest takes a column off the widest cell that may still shrink.
func shrinkWidest(widths, least []int) {
	at := -1
	for i, w := range widths {
		if w > least[i] && (at < 0 || w > widths[at]) {
			at = i
		}
	}
	widths[at]--
}

// gridLines lays out one row. Each cell wraps at words within its column.
func gridLines(row []string, widths []int) []string {
	cells, height := make([][]string, len(row)), 1
	for i, cell := range row {
		cells[i] = []string{cell}
		if runewidth.StringWidth(cell) > widths[i] { // package card counts some characters as wider
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

// writeBlocks prints each row as a block: a line for each cell that has a text, after the name of its column.
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

// DropEmpty removes the columns in which every row has one of these cells, such as "" or "0".
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
