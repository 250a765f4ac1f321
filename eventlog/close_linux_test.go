package eventlog

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/perlica/perlica/eventlog/event"
)

// TestCloseLeavesNothingOpen checks that Close closes all files of the log. Otherwise its disk could not be
// unmounted.
func TestCloseLeavesNothingOpen(t *testing.T) {
	dir := t.TempDir()
	for range 2 {
		l, err := Open(t.Context(), filepath.Join(dir, "e.db"), Options{Context: "default"})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := l.Append(t.Context(), event.NewFact(event.MessageReceived, "test", event.Refs{},
			struct{}{})); err != nil {
			t.Fatal(err)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
	open, err := filepath.Glob("/proc/self/fd/*")
	if err != nil || len(open) == 0 {
		t.Skip("the system does not list what is open: ", err)
	}
	for _, fd := range open {
		if name, err := os.Readlink(fd); err == nil && strings.HasPrefix(name, dir) {
			t.Error("still open:", name)
		}
	}
}
