package agents

import (
	"slices"
	"testing"

	"github.com/perlica/perlica/provider"
)

// TestHeldBack checks that HeldBack names each set key variable that the agent does not get. It checks that no value is
// returned, and that an agent of the registry with all its variables gives an empty list.
func TestHeldBack(t *testing.T) {
	environ := []string{"ANTHROPIC_API_KEY=secret", "MISTRAL_API_KEY=", "GH_TOKEN=x", "CODEX_HOME=/x", "MY_KEY=x",
		"HOME=/"}
	for _, tt := range []struct {
		id   string
		env  []string
		asks []string // variables that the agent's logins name
		want []string
	}{
		{"mine", []string{"ANTHROPIC_*", "GH_TOKEN"}, []string{"MY_KEY", "UNSET_KEY", "GH_TOKEN", "MISTRAL_API_KEY"},
			[]string{"MY_KEY"}},
		{"claude", []string{"ANTHROPIC_API_KEY"}, []string{"MY_KEY", "ANTHROPIC_API_KEY"}, []string{"MY_KEY"}},
		{"mine", nil, nil, []string{"ANTHROPIC_API_KEY", "GH_TOKEN"}},
		{"mine", []string{"ANTHROPIC_*"}, nil, []string{"GH_TOKEN"}},
		{"mine", []string{"GH_TOKEN", "ANTHROPIC_API_KEY"}, nil, nil},
		{"mine", []string{"no name="}, nil, nil},
		{"claude", nil, nil, nil},
	} {
		a := Agent{Agent: provider.Agent{ID: tt.id, Env: tt.env}}
		if got := a.HeldBack(environ, tt.asks); !slices.Equal(got, tt.want) {
			t.Errorf("%s with %q: %q, want %q", tt.id, tt.env, got, tt.want)
		}
	}
}
