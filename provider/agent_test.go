package provider_test

import (
	"slices"
	"testing"

	"github.com/perlica/perlica/provider"
)

func TestAgentEnvironMakesItAsk(t *testing.T) {
	a := provider.Agent{Asking: provider.Asking{Env: []string{"GOOSE_MODE=approve"}}}
	parent := []string{"PATH=/bin", "GOOSE_MODE=auto"}
	if got, err := a.Environ(parent); err != nil || !slices.Equal(got, []string{"PATH=/bin", "GOOSE_MODE=approve"}) {
		t.Errorf("by itself: %q, %v", got, err)
	}
	a.Env = []string{"GOOSE_MODE"} // as if the user's configuration names this variable
	if got, err := a.Environ(parent); err != nil || !slices.Equal(got, []string{"PATH=/bin", "GOOSE_MODE=auto"}) {
		t.Errorf("named: %q, %v", got, err)
	}
	if got, err := a.Environ(nil); err != nil || !slices.Equal(got, []string{"GOOSE_MODE=approve"}) {
		t.Errorf("named, not set: %q, %v", got, err)
	}
}
