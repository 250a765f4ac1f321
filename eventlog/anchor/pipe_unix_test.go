//go:build unix

package anchor

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestAnchorIsAPipe refuses a pipe as an anchor. A foreign folder may bring one, and its reader
// would wait for ever.
func TestAnchorIsAPipe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "eventlog.db")
	if err := syscall.Mkfifo(Path(path), 0o600); err != nil {
		t.Skip(err)
	}
	if _, err := Read(path); err == nil || !strings.Contains(err.Error(), "is a pipe") {
		t.Errorf("got %v", err)
	}
}
