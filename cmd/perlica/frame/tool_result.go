package frame

import (
	"strings"

	"github.com/perlica/perlica/interaction"
	"github.com/perlica/perlica/interaction/card"
	"github.com/perlica/perlica/provider"
)

// These are the numbers of rows that a folded tool result shows.
const (
	foldedDiff   = 10 // for each changed file
	foldedOutput = 4
)

// ToolResultRows returns the result of a tool call as rows of the given width. The file changes come first, then the
// output. If folded, it leaves out most rows, and "more" is the number of lines and rows left out.
func ToolResultRows(t provider.ToolCall, width int, folded bool) (rows []card.Row, more int) {
	for _, d := range ToolChanges(t) {
		diff := card.Diff(d, width)
		if n := len(diff) - foldedDiff; folded && n > 1 {
			diff, more = diff[:foldedDiff], more+n
		}
		rows = append(rows, diff...)
	}
	text := strings.Trim(t.Output(), "\n")
	if text == "" {
		return rows, more
	}
	cut := 0
	// Replacing one line by the row "1 more line" would save nothing.
	if n := strings.Count(text, "\n") + 1 - foldedOutput; folded && n > 1 {
		parts := strings.SplitN(text, "\n", foldedOutput+1)
		text, cut = strings.Join(parts[:foldedOutput], "\n"), n
	}
	if most := foldedOutput * width; folded && len(text) > 4*most { // A single line can be very long.
		text, cut = strings.ToValidUTF8(text[:4*most], ""), max(cut, 1)
	}
	output := card.Text("output", text, width)
	if folded && len(output) > 2*foldedOutput {
		output, cut = output[:2*foldedOutput], max(cut, 1)
	}
	return append(rows, output...), more + cut
}

// ToolChanges returns the file changes that the agent reports for a tool call. It ignores a failed call, because it
// has changed nothing.
func ToolChanges(t provider.ToolCall) (list []interaction.Diff) {
	for _, c := range t.Content {
		if c.Type == "diff" && t.Status != "failed" {
			list = append(list, interaction.Diff{Path: c.Path, Old: c.OldText, New: c.NewText})
		}
	}
	return list
}
