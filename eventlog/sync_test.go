package eventlog

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/perlica/perlica/eventlog/event"
)

// TestSyncTo checks that SyncTo waits only for entries before its mark. If such an entry was lost, every later call
// must return the error, too.
func TestSyncTo(t *testing.T) {
	l, err := Open(t.Context(), filepath.Join(t.TempDir(), "db"), Options{Lazy: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	record := func() Mark {
		t.Helper()
		if err := l.Record(event.NewFact(event.SessionSelected, "user", event.Refs{Session: "s"}, struct{}{})); err != nil {
			t.Fatal(err)
		}
		return l.Mark()
	}
	var marks []Mark
	for i := range 100 {
		marks = append(marks, record())
		if i%7 != 0 {
			continue
		}
		if err := l.SyncTo(marks[i]); err != nil {
			t.Fatal(err)
		}
		if size, _, err := l.Head(t.Context()); size < int64(i+1) || err != nil {
			t.Errorf("%d of %d events are on disk, %v", size, i+1, err)
		}
	}
	good := marks[len(marks)-1]
	if err := l.SyncTo(good); err != nil {
		t.Fatal(err)
	}
	moved := l.Path() + ".moved"
	if err := os.Rename(l.Path(), moved); err != nil {
		t.Fatal(err)
	}
	bad := record()
	for end := time.Now().Add(2 * time.Minute); l.SyncTo(bad) == nil && time.Now().Before(end); {
		good, bad = bad, record() // The log finds the moved file only at its next check.
	}
	if err := l.SyncTo(bad); err == nil || l.SyncTo(good) != nil {
		t.Errorf("lost: got %v, want an error; on disk: got %v, want no error", err, l.SyncTo(good))
	}
	if err := os.Rename(moved, l.Path()); err != nil {
		t.Fatal(err)
	}
	if err := l.Reopen(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := l.SyncTo(record()); err != nil || l.SyncTo(bad) == nil {
		t.Errorf("after the log lives again: %v; what was lost: %v", err, l.SyncTo(bad))
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}
