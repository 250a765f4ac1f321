package store_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/perlica/perlica/eventlog"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/store"
)

// TestChanges checks that Changes reports each commit of another handle once, and nothing else.
func TestChanges(t *testing.T) {
	path := filepath.Join(t.TempDir(), "eventlog.db")
	l, err := eventlog.Open(t.Context(), path, eventlog.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	r, err := store.OpenReader(t.Context(), path)
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
	if wait(store.LookIdle + store.LookEvery) {
		t.Error("nothing was appended, but a change was told")
	}
	for range 3 {
		if _, err := l.Append(t.Context(), event.NewFact(event.SessionSelected, "user", event.Refs{Session: "s"},
			struct{}{})); err != nil {
			t.Fatal(err)
		}
		if !wait(0) {
			t.Error("no change was told")
		}
		if wait(store.LookIdle + store.LookEvery) {
			t.Error("one change was told twice")
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Wait(ctx, 0); !errors.Is(err, context.Canceled) {
		t.Errorf("after the end of the context: %v", err)
	}
}

// TestChangesAtRest checks that a quiet log gets no look, and that its next change is still noticed. The same must
// hold for the other watched folders.
func TestChangesAtRest(t *testing.T) {
	path, other := filepath.Join(t.TempDir(), "eventlog.db"), t.TempDir()
	l, err := eventlog.Open(t.Context(), path, eventlog.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	r, err := store.OpenReader(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	c, err := r.Changes(t.Context(), other)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if store.Changed(c) == nil {
		t.Skip("this system does not tell")
	}
	if c.Quiet() {
		t.Error("what was written before the folder was watched, and is committed only now, would be told half a " +
			"minute later")
	}
	rest := func() {
		store.Rest(c)
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
		if store.Came(c).Before(begun) { // then the log counts as quiet too early
			t.Error("nobody is on the alert")
		}
		return changed
	}
	rest()
	before := store.LastLook(c)
	if changed, err := c.Wait(t.Context(), 2*store.LookIdle); changed || err != nil || store.LastLook(c) != before {
		t.Errorf("somebody has looked: %t, %v", changed, err)
	}
	rest()
	if _, err := l.Append(t.Context(), event.NewFact(event.SessionSelected, "user", event.Refs{Session: "s"},
		struct{}{})); err != nil {
		t.Fatal(err)
	}
	for !wait() { // The system may report the write before the commit has finished.
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
	case <-store.Changed(c): // a second report of the new file
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

// BenchmarkChanges measures one look at a log.
func BenchmarkChanges(b *testing.B) {
	path := filepath.Join(b.TempDir(), "eventlog.db")
	l, err := eventlog.Open(b.Context(), path, eventlog.Options{})
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
		if _, err := store.Version(c, b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}
