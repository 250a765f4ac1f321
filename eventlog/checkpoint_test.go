package eventlog

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/perlica/perlica/eventlog/anchor"
	"github.com/perlica/perlica/eventlog/disk"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/evidence"
)

// openSigned opens a log that signs with keys in a new folder.
func openSigned(t *testing.T) (l *Log, keyDir string) {
	t.Helper()
	dir := t.TempDir()
	keyDir = filepath.Join(dir, "keys")
	path := filepath.Join(dir, "eventlog.db")
	l, err := Open(t.Context(), path, Options{Context: "default", Keys: evidence.UseKeys(keyDir)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil && !errors.Is(err, disk.ErrClosed) {
			t.Error(err)
		}
		audit(t, path)
	})
	return l, keyDir
}

// testKeys makes keys in a new folder.
func testKeys(t testing.TB) *evidence.Keys {
	t.Helper()
	k, err := evidence.MakeKeys(filepath.Join(t.TempDir(), "keys"))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func mustAppend(t testing.TB, l *Log, events ...event.Event) event.Seq {
	t.Helper()
	seq, err := l.Append(t.Context(), events...)
	if err != nil {
		t.Fatal(err)
	}
	return seq
}

func mustEndRun(t testing.TB, l *Log, events ...event.Event) event.Seq {
	t.Helper()
	seq, err := l.EndRun(t.Context(), events...)
	if err != nil {
		t.Fatal(err)
	}
	return seq
}

func TestTheEndOfARunIsCheckpointed(t *testing.T) {
	l, keyDir := openSigned(t)
	mustAppend(t, l, fact(event.SessionCreated, event.Refs{}))
	if _, err := os.Stat(keyDir); err == nil {
		t.Error("a key was made before it was needed")
	}
	end := mustEndRun(t, l, fact(event.Truncated, event.Refs{}), fact(event.CallEnforced, event.Refs{}),
		fact(event.SessionClosed, event.Refs{}))
	if err := l.Anchored(); err != nil {
		t.Fatal(err)
	}
	size, root, err := l.Head(t.Context())
	if err != nil || size != int64(end) {
		t.Fatal(size, err)
	}
	name, err := l.Origin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	list, err := l.Checkpoints(t.Context(), 0)
	if err != nil || len(list) != 1 {
		t.Fatalf("%v, %v", list, err)
	}
	c := list[0]
	if c.Origin != name || !strings.HasPrefix(name, "perlica/") || c.Size != size || c.Root != root {
		t.Errorf("%+v; the log is %s with %d events, %v", c, name, size, root)
	}
	k, err := evidence.ReadKeys(keyDir)
	if err != nil {
		t.Fatal(err)
	}
	if by, err := c.Signed(k.Verifiers(name)...); err != nil || len(by) != 1 || by[0] != name {
		t.Errorf("signed by %v, %v", by, err)
	}
	anchors, err := anchor.Read(l.Path())
	if err != nil || len(anchors) != 1 || anchors[0].Checkpoint != c {
		t.Errorf("anchored: %+v, %v", anchors, err)
	}
}

// TestAnchoredWaits checks that Anchored waits for the anchor's line of a checkpoint that follows EndRunEarly.
func TestAnchoredWaits(t *testing.T) {
	l, _ := openSigned(t)
	for n := range 20 {
		if _, err := l.EndRunEarly(t.Context(), fact(event.CallEnforced, event.Refs{})); err != nil {
			t.Fatal(err)
		}
		if err := l.Anchored(); err != nil {
			t.Fatal(err)
		}
		if got, err := anchor.Read(l.Path()); err != nil || len(got) != n+1 {
			t.Fatalf("%d lines after %d runs, %v", len(got), n+1, err)
		}
	}
}

func TestCheckpointOnDemand(t *testing.T) {
	l, keyDir := openSigned(t)
	if c, err := l.Checkpoint(t.Context()); c.Size != 0 || c.Note != "" || err != nil {
		t.Errorf("of an empty log: %+v, %v", c, err)
	}
	mustAppend(t, l, fact(event.Truncated, event.Refs{}))
	first, err := l.Checkpoint(t.Context())
	if err != nil || first.Size != 1 {
		t.Fatal(first, err)
	}
	again, err := l.Checkpoint(t.Context())
	if err != nil || again != first {
		t.Errorf("%+v, want the same again; %v", again, err)
	}
	// After a rotation of the keys, the new key must sign the same tree.
	if _, err := evidence.RotateKeys(keyDir); err != nil {
		t.Fatal(err)
	}
	other, err := Open(t.Context(), l.Path(), Options{Keys: evidence.UseKeys(keyDir)})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	rotated, err := other.Checkpoint(t.Context())
	if err != nil || rotated.Root != first.Root || rotated.Note == first.Note {
		t.Errorf("after a rotation: %+v, %v", rotated, err)
	}
	k, err := evidence.ReadKeys(keyDir)
	if err != nil {
		t.Fatal(err)
	}
	all := k.Verifiers(first.Origin)
	if _, err := rotated.Signed(all[0]); err != nil {
		t.Errorf("the new key: %v", err)
	}
	if _, err := rotated.Signed(all[1]); err == nil {
		t.Error("the old key still signs")
	}
	if _, err := first.Signed(all[1:]...); err != nil {
		t.Errorf("what the old key signed: %v", err)
	}
	if list, err := l.Checkpoints(t.Context(), 0); err != nil || len(list) != 2 {
		t.Errorf("%d are stored, want 2: %v", len(list), err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := l.Checkpoint(ctx); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// TestCheckpointOfTheSameTree checks that two handles store one note for the same tree, and a further note for
// another tree. Each handle must notice the events of the other handle.
func TestCheckpointOfTheSameTree(t *testing.T) {
	l, keyDir := openSigned(t)
	other, err := Open(t.Context(), l.Path(), Options{Keys: evidence.UseKeys(keyDir)})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	for size := int64(1); size <= 6; size++ {
		first, second := l, other
		if size%2 == 0 {
			first, second = other, l // start with the handle that has not seen the last event
		}
		write := mustAppend
		if size > 4 {
			write = mustEndRun // the end of a run makes the checkpoint
		}
		write(t, first, fact(event.Truncated, event.Refs{}))
		var c evidence.Checkpoint
		for i, log := range []*Log{first, first, second, second, first} {
			got, err := log.Checkpoint(t.Context())
			if i == 0 {
				c = got
			}
			if err != nil || got != c || got.Size != size {
				t.Errorf("%d events, number %d: %+v, want %+v; %v", size, i, got, c, err)
			}
		}
		if list, err := l.Checkpoints(t.Context(), 0); err != nil || int64(len(list)) != size || list[size-1] != c {
			t.Errorf("%d events, %d are stored, %v", size, len(list), err)
		}
	}
}

// TestWithoutAUsableKey checks that the end of a run appends an unsigned line to the anchor.
func TestWithoutAUsableKey(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(evidence.KeyPath(dir), []byte("nonsense"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, keys := range map[string]*evidence.Keys{"none": nil, "empty": {}, "damaged": evidence.UseKeys(dir)} {
		path := filepath.Join(t.TempDir(), "e.db")
		l, err := Open(t.Context(), path, Options{Keys: keys})
		if err != nil {
			t.Fatal(err)
		}
		end := mustEndRun(t, l, fact(event.CallEnforced, event.Refs{}))
		if err := l.Anchored(); !errors.Is(err, evidence.ErrKey) {
			t.Errorf("%s: %v", name, err)
		}
		got, err := anchor.Read(path)
		if err != nil || len(got) != 1 || got[0].Size != int64(end) || got[0].Note != "" {
			t.Errorf("%s: anchored: %+v, %v", name, got, err)
		}
		c, err := l.Checkpoint(t.Context())
		if !errors.Is(err, evidence.ErrKey) || c.Note != "" || c.Size != 1 {
			t.Errorf("%s: %+v, %v", name, c, err)
		}
		if list, err := l.Checkpoints(t.Context(), 0); err != nil || len(list) != 0 {
			t.Errorf("%s: stored: %v, %v", name, list, err)
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		audit(t, path)
	}
}

// TestAnchorThatCannotBeWritten checks that a fault of the anchor does not affect the events. They are acknowledged,
// the log stays usable, and Anchored returns the error.
func TestAnchorThatCannotBeWritten(t *testing.T) {
	l, _ := openSigned(t)
	if err := os.Mkdir(anchor.Path(l.Path()), 0o700); err != nil {
		t.Fatal(err)
	}
	mustEndRun(t, l, fact(event.CallEnforced, event.Refs{}))
	if err := l.Anchored(); err == nil || errors.Is(err, evidence.ErrKey) || !strings.Contains(err.Error(), "anchor") {
		t.Errorf("a folder in its place: %v", err)
	}
	if c, err := l.Checkpoint(t.Context()); err == nil || c.Note == "" {
		t.Errorf("on demand: %+v, %v", c, err)
	}
	if err := os.Remove(anchor.Path(l.Path())); err != nil {
		t.Fatal(err)
	}
	mustEndRun(t, l, fact(event.CallEnforced, event.Refs{}))
	if err := l.Anchored(); err != nil {
		t.Errorf("in its place again: %v", err)
	}
}

// TestTwoProcessesCheckpoint checks that each checkpoint covers the events of both handles.
func TestTwoProcessesCheckpoint(t *testing.T) {
	l, keyDir := openSigned(t)
	other, err := Open(t.Context(), l.Path(), Options{Keys: evidence.UseKeys(keyDir)})
	if err != nil {
		t.Fatal(err)
	}
	var both sync.WaitGroup
	for _, log := range []*Log{l, other} {
		both.Go(func() {
			for range 25 {
				if _, err := log.EndRun(t.Context(), fact(event.Truncated, event.Refs{}),
					fact(event.CallEnforced, event.Refs{})); err != nil {
					t.Error(err)
				}
			}
		})
	}
	both.Wait()
	if err := errors.Join(l.Anchored(), other.Anchored(), other.Close()); err != nil {
		t.Fatal(err)
	}
	k, err := evidence.ReadKeys(keyDir)
	if err != nil {
		t.Fatal(err)
	}
	list, err := l.Checkpoints(t.Context(), 0)
	if err != nil || len(list) < 2 {
		t.Fatal(len(list), err)
	}
	for _, c := range list {
		if err := l.IsOwn(t.Context(), c); err != nil {
			t.Error(err)
		}
		if _, err := c.Signed(k.Verifiers(c.Origin)...); err != nil {
			t.Errorf("%d events: %v", c.Size, err)
		}
	}
}
