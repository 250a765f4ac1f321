package frame

import (
	"strings"
	"testing"
)

// TestTimeoutHint checks that the hint names no settings for an agent from the flag --agent. Such an agent has no
// settings.
func TestTimeoutHint(t *testing.T) {
	if got := TimeoutHint("mine", false); !strings.Contains(got, "providers.mine.acp.connect_timeout") {
		t.Error(got)
	}
	if got := TimeoutHint("mine", true); strings.Contains(got, "providers.mine") ||
		!strings.Contains(got, "docs/configuration.md") {
		t.Error(got)
	}
}
