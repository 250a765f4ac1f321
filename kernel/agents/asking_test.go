package agents

import (
	"testing"

	"github.com/coder/acp-go-sdk"

	"github.com/perlica/perlica/provider"
)

// TestAskingOf: an agent under a name of the user's own that says who it is is put into the mode in
// which it asks; one that is not known, or says nothing, is left alone.
func TestAskingOf(t *testing.T) {
	for _, tt := range []struct {
		id, says, mode, option string
	}{
		{"node", "qwen-code", "default", ""},
		{"sudo", "@agentclientprotocol/claude-agent-acp", "default", ""},
		{"my-copilot", "Copilot", "", "allow_all"},
		{"mine", "somebody", "", ""},
		{"mine", "", "", ""},
		{"qwen", "qwen-code", "default", ""}, // started by --agent: its id is the program's name
	} {
		a := Agent{Agent: provider.Agent{ID: tt.id}}
		if sums := a.CountsSession(&acp.Implementation{Name: tt.says}); sums != (tt.says == "Copilot") {
			t.Errorf("%s says %q: counts its session: %v", tt.id, tt.says, sums)
		}
		if got := a.AskingOf(&acp.Implementation{Name: tt.says}); got.Mode != tt.mode || got.Option != tt.option {
			t.Errorf("%s says %q: %+v", tt.id, tt.says, got)
		}
	}
	if got := (Agent{}).AskingOf(nil); got.Mode != "" {
		t.Errorf("%+v", got)
	}
}
