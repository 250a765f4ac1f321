package eventlog

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/perlica/perlica/eventlog/event"
)

// TestChanges: what another handle commits is told once, nothing else is.
func TestChanges(t *testing.T) {
	path := filepath.Join(t.TempDir(), "eventlog.db")
	l, err := Open(t.Context(), path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	r, err := OpenReader(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	c, err := r.Changes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	wait := func(most time.Duration) bool {
		t.Helper()
		changed, err := c.Wait(t.Context(), most)
		if err != nil {
			t.Fatal(err)
		}
		return changed
	}
	if wait(lookIdle + lookEvery) {
		t.Error("nothing was appended, but a change was told")
	}
	for range 3 {
		if _, err := l.Append(t.Context(), event.NewFact(event.SessionSelected, "user", event.Refs{Session: "s"}, struct{}{})); err != nil {
			t.Fatal(err)
		}
		if !wait(0) {
			t.Error("no change was told")
		}
		if wait(lookIdle + lookEvery) {
			t.Error("one change was told twice")
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Wait(ctx, 0); !errors.Is(err, context.Canceled) {
		t.Errorf("after the end of the context: %v", err)
	}
}

// TestChangesAtRest: while nothing happens nobody looks, and what happens then is told all the
// same, in the log and in other folders.
func TestChangesAtRest(t *testing.T) {
	path, other := filepath.Join(t.TempDir(), "eventlog.db"), t.TempDir()
	l, err := Open(t.Context(), path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	r, err := OpenReader(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	c, err := r.Changes(t.Context(), other)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if c.folders == nil {
		t.Skip("this system does not tell")
	}
	rest := func() {
		c.came, c.last = time.Time{}, time.Now()
		if !c.Quiet() {
			t.Error("it is not quiet")
		}
	}
	wait := func() bool {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		begun := time.Now()
		changed, err := c.Wait(ctx, 0)
		if err != nil {
			t.Fatal(err)
		}
		if c.came.Before(begun) { // it is quiet, or will be sooner than it should
			t.Error("nobody is on the alert")
		}
		return changed
	}
	rest()
	before := c.last
	if changed, err := c.Wait(t.Context(), 2*lookIdle); changed || err != nil || c.last != before {
		t.Errorf("somebody has looked: %t, %v", changed, err)
	}
	rest()
	if _, err := l.Append(t.Context(), event.NewFact(event.SessionSelected, "user", event.Refs{Session: "s"}, struct{}{})); err != nil {
		t.Fatal(err)
	}
	for !wait() { // what was written may be told before it is committed
	}
	f, err := os.Create(filepath.Join(other, "x"))
	if err != nil {
		t.Fatal(err)
	}
	rest()
	if wait() {
		t.Error("a new file is no change of the log")
	}
	select {
	case <-c.folders.told: // of the same
	default:
	}
	rest()
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if wait() {
		t.Error("a file that is closed is no change of the log")
	}
}

// BenchmarkChanges is one look at a log.
func BenchmarkChanges(b *testing.B) {
	path := filepath.Join(b.TempDir(), "eventlog.db")
	l, err := Open(b.Context(), path, Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	c, err := l.Changes(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	for b.Loop() {
		if _, err := c.version(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}

// TestSyncTo waits for what was recorded before the mark, and for nothing else; what was lost
// stays lost.
func TestSyncTo(t *testing.T) {
	l, err := Open(t.Context(), filepath.Join(t.TempDir(), "eventlog.db"), Options{Lazy: time.Hour})
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
	<-time.After(placeEvery)
	bad := record()
	if err := l.SyncTo(bad); err == nil || l.SyncTo(bad) == nil || l.SyncTo(good) != nil {
		t.Errorf("lost: %v; on disk: %v", err, l.SyncTo(good))
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
