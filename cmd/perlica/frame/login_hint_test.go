package frame

import (
	"strings"
	"testing"
)

// TestTimeoutHint: an agent of --agent has no settings, so its hint names none that are not there.
func TestTimeoutHint(t *testing.T) {
	if got := TimeoutHint("mine", false); !strings.Contains(got, "providers.mine.acp.connect_timeout") {
		t.Error(got)
	}
	if got := TimeoutHint("mine", true); strings.Contains(got, "providers.mine") || !strings.Contains(got, "docs/configuration.md") {
		t.Error(got)
	}
}
