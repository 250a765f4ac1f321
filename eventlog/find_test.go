package eventlog

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/perlica/perlica/eventlog/disk"
	"github.com/perlica/perlica/eventlog/event"
)

func TestFindByID(t *testing.T) {
	l, _, _ := proofLog(t)
	for _, e := range collect(t, &l.Reader, event.Query{}) {
		if seq, err := l.Find(t.Context(), e.ID); err != nil || seq != e.Seq {
			t.Errorf("%s: %d, %v; want %d", e.ID, seq, err, e.Seq)
		}
	}
	for _, id := range []string{"", "x", "0199aaaa-bbbb-7ccc-8ddd-eeeeeeeeeeee", "ffffffff-ffff-7fff-bfff-ffffffffffff"} {
		if _, err := l.Find(t.Context(), id); !errors.Is(err, disk.ErrNotExist) {
			t.Errorf("%q: %v", id, err)
		}
	}
}

// TestFindWhereClocksJumped checks that Find finds an event if the time in its id is far from the event's time.
func TestFindWhereClocksJumped(t *testing.T) {
	now := time.Unix(1763694000, 0)
	l, err := Open(t.Context(), filepath.Join(t.TempDir(), "e.db"), Options{Now: func() time.Time {
		now = now.Add(-time.Hour)
		return now
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for range 20 {
		mustAppend(t, l, fact(event.Truncated, event.Refs{}))
	}
	for _, e := range collect(t, &l.Reader, event.Query{}) {
		if seq, err := l.Find(t.Context(), e.ID); err != nil || seq != e.Seq {
			t.Errorf("%s: %d, %v; want %d", e.ID, seq, err, e.Seq)
		}
	}
}
