//go:build unix

package anchor

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestAnchorIsAPipe checks that a pipe as an anchor is refused. A foreign folder may contain one, and a reader of the
// pipe would wait for ever.
func TestAnchorIsAPipe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "eventlog.db")
	if err := syscall.Mkfifo(Path(path), 0o600); err != nil {
		t.Skip(err)
	}
	if _, err := Read(path); err == nil || !strings.Contains(err.Error(), "is a pipe") {
		t.Errorf("got %v", err)
	}
}
