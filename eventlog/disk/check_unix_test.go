//go:build unix

package disk_test

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/perlica/perlica/eventlog/disk"
)

// TestCheckKinds checks that a device and a pipe are refused. A reader of a pipe would wait for ever.
func TestCheckKinds(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "e.db")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Skip(err)
	}
	for path, what := range map[string]string{pipe: "a pipe", "/dev/null": "a device"} {
		if err := disk.Check(path); !refused(err, path) || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: %v", path, err)
		}
	}
}
