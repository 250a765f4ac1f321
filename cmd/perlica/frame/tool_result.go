package frame

import (
	"strings"

	"github.com/perlica/perlica/interaction"
	"github.com/perlica/perlica/interaction/card"
	"github.com/perlica/perlica/provider"
)

// How many rows of what a tool call led to are shown where it is folded.
const (
	foldedDiff   = 10 // of each change
	foldedOutput = 4
)

// ToolResultRows is what a tool call led to, as rows of a screen so many columns wide: what it changed, then
// what it printed. Where it is folded more is the number of lines, or of rows of a change, that are
// left out.
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
	if n := strings.Count(text, "\n") + 1 - foldedOutput; folded && n > 1 { // the row that says so is none saved
		parts := strings.SplitN(text, "\n", foldedOutput+1)
		text, cut = strings.Join(parts[:foldedOutput], "\n"), n
	}
	if most := foldedOutput * width; folded && len(text) > 4*most { // a line may be as long as it likes
		text, cut = strings.ToValidUTF8(text[:4*most], ""), max(cut, 1)
	}
	output := card.Text("output", text, width)
	if folded && len(output) > 2*foldedOutput {
		output, cut = output[:2*foldedOutput], max(cut, 1)
	}
	return append(rows, output...), more + cut
}

// ToolChanges are the changes to files that a tool call made, as far as the agent shows them: one that has
// failed made none.
func ToolChanges(t provider.ToolCall) (list []interaction.Diff) {
	for _, c := range t.Content {
		if c.Type == "diff" && t.Status != "failed" {
			list = append(list, interaction.Diff{Path: c.Path, Old: c.OldText, New: c.NewText})
		}
	}
	return list
}
