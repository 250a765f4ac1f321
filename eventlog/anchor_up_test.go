package eventlog

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/perlica/perlica/eventlog/anchor"
	"github.com/perlica/perlica/eventlog/disk"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/verify"
)

// TestAnchorDamagedUpwards checks an anchor line with a size above the log's size. With a valid signature, the line
// shows a loss of events. With an invalid signature, it shows nothing.
func TestAnchorDamagedUpwards(t *testing.T) {
	v := newVictim(t, 60)
	path := v.copyLog(t)
	b, err := os.ReadFile(anchor.Path(path))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(string(b), "\n")
	last := len(lines) - 2
	lines[last] = "9" + lines[last]
	if err := os.WriteFile(anchor.Path(path), []byte(strings.Join(lines, "")), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := Open(t.Context(), path, Options{Context: "default", Keys: v.keys})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.Append(t.Context(), fact(event.Truncated, event.Refs{})); err != nil {
		t.Errorf("a healthy log: %v", err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if rep := verifyFile(t, path, verify.Options{Keys: v.verifiers}); rep.OK() {
		t.Error("the line is not found")
	}
	// Without the key the signature cannot be checked, so Append must take the line as a loss of events.
	l, err = Open(t.Context(), path, Options{Context: "default"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.Append(t.Context(), fact(event.Truncated, event.Refs{})); !errors.Is(err, disk.ErrCorrupt) {
		t.Errorf("who has no key: %v", err)
	}
	_ = l.Close() // Close returns the earlier error.
}
