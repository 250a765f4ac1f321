package printing

import (
	"fmt"
	"io"
	"strings"

	"github.com/mattn/go-runewidth"

	"github.com/perlica/perlica/cmd/perlica/term"
)

// Grid is a table: columns that are as wide as their widest cell, the last one as wide as
// the terminal allows. Its cells are made harmless.
type Grid struct {
	Head []string
	rows [][]string
}

// Add adds a row.
func (g *Grid) Add(cells ...string) { g.rows = append(g.rows, cells) }

// Write prints the table. width is the terminal's, or 0 for no limit.
func (g *Grid) Write(w io.Writer, s term.Styles, width int) error {
	all := append([][]string{g.Head}, g.rows...)
	widths := make([]int, len(g.Head))
	for _, row := range all {
		for i := range row {
			row[i] = OneLine(row[i])
			widths[i] = max(widths[i], runewidth.StringWidth(row[i]))
		}
	}
	for r, row := range all {
		var line strings.Builder
		used := 0
		for i, cell := range row {
			if i == len(row)-1 {
				if width > 0 {
					cell = runewidth.Truncate(cell, max(width-used, 10), "…")
				}
				line.WriteString(cell)
				continue
			}
			line.WriteString(runewidth.FillRight(cell, widths[i]) + "  ")
			used += widths[i] + 2
		}
		text := strings.TrimRight(line.String(), " ")
		if r == 0 {
			text = s.Dim(text)
		}
		if _, err := fmt.Fprintln(w, text); err != nil {
			return err
		}
	}
	return nil
}
