package agents

import (
	"slices"
	"testing"

	"github.com/perlica/perlica/provider"
)

// TestHeldBack: what may be the key of an agent of the user's own, is set and is not handed over, is named;
// never a value, never for an agent whose variables are known.
func TestHeldBack(t *testing.T) {
	environ := []string{"ANTHROPIC_API_KEY=secret", "MISTRAL_API_KEY=", "GH_TOKEN=x", "CODEX_HOME=/x", "MY_KEY=x", "HOME=/"}
	for _, tt := range []struct {
		id   string
		env  []string
		want []string
	}{
		{"mine", nil, []string{"ANTHROPIC_API_KEY", "GH_TOKEN"}},
		{"mine", []string{"ANTHROPIC_*"}, []string{"GH_TOKEN"}},
		{"mine", []string{"GH_TOKEN", "ANTHROPIC_API_KEY"}, nil},
		{"mine", []string{"no name="}, nil},
		{"claude", nil, nil},
	} {
		a := Agent{Agent: provider.Agent{ID: tt.id, Env: tt.env}}
		if got := a.HeldBack(environ); !slices.Equal(got, tt.want) {
			t.Errorf("%s with %q: %q, want %q", tt.id, tt.env, got, tt.want)
		}
	}
}
