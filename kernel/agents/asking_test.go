package agents

import (
	"testing"

	"github.com/coder/acp-go-sdk"

	"github.com/perlica/perlica/provider"
)

// TestAskingOf checks the asking mode of a known agent, also if the user chose another id. For an unknown agent, or one
// without a name, AskingOf sets no mode.
func TestAskingOf(t *testing.T) {
	for _, tt := range []struct {
		id, says, mode, option string
	}{
		{"node", "qwen-code", "default", ""},
		{"sudo", "@agentclientprotocol/claude-agent-acp", "default", ""},
		{"my-copilot", "Copilot", "", "allow_all"},
		{"mine", "somebody", "", ""},
		{"mine", "", "", ""},
		{"qwen", "qwen-code", "default", ""}, // after --agent, the id is the program's name
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
		t.Errorf(`got %+v; want got.Mode == ""`, got)
	}
}

// TestUnoffered expects a warning if an agent is in a looser mode than its asking mode. For a mode that a person chose,
// or a stricter mode, it expects no warning.
func TestUnoffered(t *testing.T) {
	asking := provider.Asking{Mode: "default", Stricter: []string{"plan"}}
	for _, tt := range []struct {
		asking     provider.Asking
		want, mode string
		said       bool
	}{
		{asking, "", "default", false},
		{asking, "", "plan", false},
		{asking, "", "auto", true},
		{asking, "", "", true},
		{asking, "auto", "auto", false},
		{asking, ModeNone, "auto", false},
		{provider.Asking{Option: "x", Value: "off"}, "", "", false},
	} {
		if got := Unoffered(tt.asking, tt.want, tt.mode); (got != nil) != tt.said {
			t.Errorf(`%+v: got %q; want (got != nil) == %v`, tt, got, tt.said)
		}
	}
}
