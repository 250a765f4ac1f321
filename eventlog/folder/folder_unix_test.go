//go:build unix

package folder_test

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/perlica/perlica/eventlog/folder"
)

// TestCheckKinds: a pipe, whose reader would wait for ever, and a device are no files.
func TestCheckKinds(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "e.db")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Skip(err)
	}
	for path, what := range map[string]string{pipe: "a pipe", "/dev/null": "a device"} {
		if err := folder.Check(path); !refused(err, path) || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: %v", path, err)
		}
	}
}
