package frame

import (
	"strings"
	"testing"
)

// TestTimeoutHint checks that the hint for an agent of --agent names no settings, because such an agent has none.
func TestTimeoutHint(t *testing.T) {
	if got := TimeoutHint("mine", false); !strings.Contains(got, "providers.mine.acp.connect_timeout") {
		t.Error(got)
	}
	if got := TimeoutHint("mine", true); strings.Contains(got, "providers.mine") ||
		!strings.Contains(got, "docs/configuration.md") {
		t.Error(got)
	}
}
