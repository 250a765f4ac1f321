package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/mattn/go-runewidth"

	"github.com/perlica/perlica/cmd/perlica/term"
)

// grid is a table: columns that are as wide as their widest cell, the last one as wide as
// the terminal allows. Its cells are made harmless.
type grid struct {
	head []string
	rows [][]string
}

func (g *grid) add(cells ...string) { g.rows = append(g.rows, cells) }

// write prints the table. width is the terminal's, or 0 for no limit.
func (g *grid) write(w io.Writer, s term.Styles, width int) error {
	all := append([][]string{g.head}, g.rows...)
	widths := make([]int, len(g.head))
	for _, row := range all {
		for i := range row {
			row[i] = oneLine(row[i])
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
