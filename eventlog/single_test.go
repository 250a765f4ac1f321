package eventlog

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/perlica/perlica/eventlog/disk"
	"github.com/perlica/perlica/eventlog/event"
)

// TestAppendToAChangedLog changes or deletes the last event while a handle is open. The next append of that handle
// must fail.
func TestAppendToAChangedLog(t *testing.T) {
	for name, stmt := range map[string]string{
		"changed": `DROP TRIGGER events_lose_nothing_but_payloads; UPDATE events SET leaf = zeroblob(32) WHERE seq = 3`,
		"deleted": `DROP TRIGGER events_are_not_deleted; DELETE FROM events WHERE seq = 3`,
	} {
		for kind, next := range map[string]event.Event{
			"alone":              fact(event.Truncated, event.Refs{}),
			"with an open run":   fact(event.Requested, event.Refs{Run: "r", Input: "i"}),
			"that ends with one": fact(event.Responded, event.Refs{Run: "r"}),
		} {
			l, err := Open(t.Context(), filepath.Join(t.TempDir(), "e.db"), Options{})
			if err != nil {
				t.Fatal(err)
			}
			for range 3 {
				mustAppend(t, l, fact(event.Truncated, event.Refs{}))
			}
			if err := execFile(l.Path(), stmt); err != nil {
				t.Fatal(err)
			}
			if seq, err := l.Append(t.Context(), next); !errors.Is(err, disk.ErrCorrupt) {
				t.Errorf("%s, an event %s: appended as %d, %v", name, kind, seq, err)
			}
			if l.Err() == nil {
				t.Errorf("%s, an event %s: the log lives", name, kind)
			}
			_ = l.Close() // Close returns the earlier error.
		}
	}
}

// TestAppendInTurn lets two handles append in turns. The events extend over several groups of leaves with a stored
// hash.
func TestAppendInTurn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "e.db")
	var logs [2]*Log
	for i := range logs {
		l, err := Open(t.Context(), path, Options{})
		if err != nil {
			t.Fatal(err)
		}
		logs[i] = l
	}
	want := event.Seq(0)
	for round := range 90 {
		for _, l := range logs {
			for range round%5 + 1 {
				want++
				if seq := mustAppend(t, l, fact(event.Truncated, event.Refs{})); seq != want {
					t.Fatalf("seq %d, want %d", seq, want)
				}
			}
		}
	}
	for _, l := range logs {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
	audit(t, path)
}
