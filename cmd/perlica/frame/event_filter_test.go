package frame

import (
	"slices"
	"testing"

	"github.com/perlica/perlica/eventlog/event"
)

func TestMatchTypes(t *testing.T) {
	got, err := matchTypes([]string{"llm.*", "llm.responded", "policy.decided"})
	want := []event.Type{event.Requested, event.Responded, event.ProviderError, event.OutcomeUnknown, event.CallEnforced,
		event.PolicyDecided}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("matchTypes = %v, %v, want %v", got, err, want)
	}
	for _, bad := range []string{"", "llm", "llm.[", "nosuch.*"} {
		if _, err := matchTypes([]string{bad}); err == nil {
			t.Errorf("matchTypes(%q) is no error", bad)
		}
	}
}
