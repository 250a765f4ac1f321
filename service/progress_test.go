package service

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/perlica/perlica/interaction"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/kernel/language"
	"github.com/perlica/perlica/kernel/record"
	"github.com/perlica/perlica/provider"
)

// TestStatusEnds checks that the mark of completion appears only if all calls were allowed and
// completed.
func TestStatusEnds(t *testing.T) {
	tool := func(id, title, state string) record.Notice {
		call := &provider.ToolCall{}
		if err := json.Unmarshal(fmt.Appendf(nil, `{"toolCallId":%q,"title":%q,"status":%q}`, id, title, state),
			call); err != nil {
			t.Fatal(err)
		}
		return record.Updated{Update: provider.Update{Tool: call}}
	}
	options := []interaction.Option{{ID: "y", Kind: "allow_once"}, {ID: "n", Kind: "reject_once"}}
	answered := func(option string) record.Notice {
		return record.Closed{Question: interaction.Question{Options: options}, Answer: &interaction.Answer{Option: option}}
	}
	begun, done, failed := tool("1", "make", "pending"), tool("1", "", "completed"), tool("1", "", "failed")
	for want, notices := range map[string][]record.Notice{
		"✓ 1 tool call: make":                      {begun, done},
		"✓ 1 tool call: make ":                     {tool("1", "make ", ""), answered("y"), done},
		"✓ 2 tool calls, the last: ls":             {begun, done, tool("2", "ls", "completed")},
		"✗ 1 tool call was not completed: make":    {begun, answered("y"), failed},
		"✗ 1 tool call was not completed: refused": {tool("1", "refused", ""), answered("n"), failed},
		"✗ 1 tool call was not completed: claimed": {tool("1", "claimed", ""), answered("n"), done},
		"✗ 1 tool call was not completed: ruled out": {tool("1", "ruled out", ""),
			record.Decided{PolicyDecided: fact.PolicyDecided{Effect: "deny"}}, done},
		"✗ 1 tool call was not completed: nobody": {tool("1", "nobody", ""),
			record.Closed{Question: interaction.Question{Options: options}}, done},
		"✗ 1 tool call was not completed: cancelled":            {tool("1", "cancelled", "in_progress")},
		"✗ 1 of 2 tool calls was not completed, the last: ls":   {begun, done, tool("2", "ls", "failed")},
		"✗ 2 of 3 tool calls were not completed, the last: cat": {begun, done, tool("2", "ls", ""), tool("3", "cat", "")},
	} {
		s := &status{say: language.English.Sentences(), dirty: make(chan struct{}, 1), seen: map[string]bool{}}
		ib := &inbox{status: s}
		for _, n := range notices {
			ib.progress(n)
		}
		if got := s.endText(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
