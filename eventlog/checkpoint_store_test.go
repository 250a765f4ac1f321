package eventlog

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/mod/sumdb/note"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/evidence"
)

func TestStoreCheckpoint(t *testing.T) {
	l, keyDir := openSigned(t)
	for range 5 {
		mustAppend(t, l, fact(event.Truncated, event.Refs{}))
	}
	c, err := l.Checkpoint(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	mustAppend(t, l, fact(event.Truncated, event.Refs{}))
	msg := c.Note + "— witness.example AAAAAAAA\n"
	if err := l.StoreCheckpoint(t.Context(), msg); err != nil {
		t.Fatal(err)
	}
	if got, ok, err := l.LastCheckpoint(t.Context(), 5); err != nil || !ok || got.Note != msg {
		t.Errorf("%+v, %v", got, err)
	}
	k, err := evidence.ReadKeys(keyDir)
	if err != nil {
		t.Fatal(err)
	}
	signed := func(c evidence.Checkpoint) string {
		s, err := k.Signer(c.Origin)
		if err != nil {
			return "" // This cannot happen, because the keys are loaded.
		}
		b, _ := note.Sign(&note.Note{Text: c.Text()}, s)
		return string(b)
	}
	for name, bad := range map[string]string{
		"no note":    "hello",
		"unsigned":   c.Text(),
		"other root": signed(evidence.Checkpoint{Origin: c.Origin, Size: 4, Root: c.Root}),
		"other log":  signed(evidence.Checkpoint{Origin: "perlica/x", Size: c.Size, Root: c.Root}),
		"too large":  signed(evidence.Checkpoint{Origin: c.Origin, Size: 7, Root: c.Root}),
	} {
		if err := l.StoreCheckpoint(t.Context(), bad); !errors.Is(err, evidence.ErrCheckpoint) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if list, err := l.Checkpoints(t.Context(), 0); err != nil || len(list) != 2 || l.Err() != nil {
		t.Errorf("%d are stored, want 2; %v; the log: %v", len(list), err, l.Err())
	}
}

// TestCheckpointOfTheFirstBatch puts the first event and a checkpoint into the same commit. The first event gives the
// log its name. If the first entry is refused or fails, an event of another entry becomes the first event.
func TestCheckpointOfTheFirstBatch(t *testing.T) {
	fault := errors.New("the disk says no")
	twice := []event.Event{fact(event.Requested, event.Refs{Run: "r", Input: "i"}),
		fact(event.Requested, event.Refs{Run: "r", Input: "i"})}
	for name, begin := range map[string]func(l *Log, fail func(error)){
		"alone": func(*Log, func(error)) {},
		"behind what is refused": func(l *Log, _ func(error)) {
			if err := l.Record(twice...); err != nil {
				t.Fatal(err)
			}
		},
		"after a fault": func(l *Log, fail func(error)) {
			fail(fault)
			if _, err := l.EndRun(t.Context(), fact(event.CallEnforced, event.Refs{})); !errors.Is(err, fault) {
				t.Errorf("%v", err)
			}
			fail(nil)
			other, err := Open(t.Context(), l.Path(), Options{})
			if err != nil {
				t.Fatal(err)
			}
			mustAppend(t, other, fact(event.SessionCreated, event.Refs{}))
			if err := errors.Join(other.Close(), l.Reopen(t.Context())); err != nil {
				t.Fatal(err)
			}
		},
	} {
		var broken error // No race: the committing goroutine reads broken only when it has a batch.
		dir := t.TempDir()
		l, err := Open(t.Context(), filepath.Join(dir, "e.db"), Options{Lazy: time.Hour, Keys: evidence.UseKeys(dir),
			fail: func(point string) error {
				if point == "commit" {
					return broken
				}
				return nil
			}})
		if err != nil {
			t.Fatal(err)
		}
		begin(l, func(err error) { broken = err })
		mustEndRun(t, l, fact(event.CallEnforced, event.Refs{}))
		if err := l.Anchored(); err != nil {
			t.Error(name, err)
		}
		c, _, err := l.LastCheckpoint(t.Context(), 1)
		origin, oerr := l.Origin(t.Context())
		if err := errors.Join(err, oerr); err != nil || c.Origin != origin {
			t.Errorf("%s: of %s, the log is %s, %v", name, c.Origin, origin, err)
		}
		k, err := evidence.ReadKeys(dir)
		if err != nil {
			t.Fatal(err)
		}
		if by, err := c.Signed(k.Verifiers(origin)...); err != nil || len(by) != 1 {
			t.Errorf("%s: signed by %v, %v", name, by, err)
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		audit(t, l.Path())
	}
}
