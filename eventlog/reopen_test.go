package eventlog

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/perlica/perlica/eventlog/disk"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/evidence"
)

// TestReopenAfterAFault lets each step of a commit fail once, before and after the step has its effect. After Reopen
// the log must have all acknowledged events, and a consistent tree.
func TestReopenAfterAFault(t *testing.T) {
	fault := errors.New("the disk says no")
	for _, at := range []string{"begin", "insert", "commit", "committed", "anchor", "anchored"} {
		for _, kind := range []string{"a run's end", "a checkpoint"} {
			var mu sync.Mutex
			armed := false
			fail := func(point string) error {
				mu.Lock()
				defer mu.Unlock()
				if armed && point == at {
					armed = false
					return fault
				}
				return nil
			}
			dir := t.TempDir()
			l, err := Open(t.Context(), filepath.Join(dir, "e.db"), Options{Keys: evidence.UseKeys(filepath.Join(dir, "keys")),
				fail: fail})
			if err != nil {
				t.Fatal(err)
			}
			mustEndRun(t, l, fact(event.Truncated, event.Refs{}), fact(event.CallEnforced, event.Refs{}))
			if err := l.Anchored(); err != nil {
				t.Fatal(err)
			}
			mu.Lock()
			armed = true
			mu.Unlock()
			if kind == "a checkpoint" {
				_, err = l.Checkpoint(t.Context())
			} else {
				if _, err = l.EndRun(t.Context(), fact(event.Truncated, event.Refs{}),
					fact(event.CallEnforced, event.Refs{})); err == nil {
					err = l.Anchored()
				}
			}
			dead := l.Err() != nil
			if !errors.Is(err, fault) || dead == strings.HasPrefix(at, "anchor") {
				t.Errorf("%s, %s: %v; dead: %t", at, kind, err, dead)
			}
			if dead {
				if _, err := l.Append(t.Context(), fact(event.Truncated, event.Refs{})); !errors.Is(err, fault) {
					t.Errorf("%s, %s: a dead log: %v", at, kind, err)
				}
			}
			if err := l.Reopen(t.Context()); err != nil {
				t.Fatalf("%s, %s: %v", at, kind, err)
			}
			end := mustEndRun(t, l, fact(event.CallEnforced, event.Refs{}))
			if err := l.Anchored(); err != nil {
				t.Errorf("%s, %s: then: %v", at, kind, err)
			}
			size, _, err := l.Head(t.Context())
			want := int64(3)
			if kind == "a run's end" && (at == "committed" || !dead) {
				want = 5 // The events were written, although the call returned an error.
			}
			if size != want || size != int64(end) || err != nil {
				t.Errorf("%s, %s: %d events, want %d, the last is %d, %v", at, kind, size, want, end, err)
			}
			if err := l.Close(); err != nil {
				t.Errorf("%s, %s: Close: %v", at, kind, err)
			}
			audit(t, l.Path())
		}
	}
}

// TestReopenRefuses checks that Reopen fails if the file or some acknowledged event is missing.
func TestReopenRefuses(t *testing.T) {
	for name, tc := range map[string]struct {
		spoil func(path string) error
		want  error
	}{
		"moved": {func(p string) error { return os.Rename(p, p+".old") }, disk.ErrMoved},
		"an older copy": {func(p string) error {
			return execFile(p, `DROP TRIGGER events_are_not_deleted; DELETE FROM events WHERE seq > 1;
				CREATE TRIGGER events_are_not_deleted BEFORE DELETE ON entries
BEGIN
	SELECT RAISE(ABORT, 'events are append-only');
END`)
		}, disk.ErrCorrupt},
	} {
		die := false
		path := filepath.Join(t.TempDir(), "e.db")
		l, err := Open(t.Context(), path, Options{fail: func(point string) error {
			if die && point == "begin" {
				return errors.New("dead")
			}
			return nil
		}})
		if err != nil {
			t.Fatal(err)
		}
		mustAppend(t, l, fact(event.Truncated, event.Refs{}))
		mustAppend(t, l, fact(event.Truncated, event.Refs{}))
		die = true // No race: the committing goroutine reads die only when it has a batch.
		if _, err := l.Append(t.Context(), fact(event.Truncated, event.Refs{})); err == nil {
			t.Fatal("the log lives")
		}
		if err := tc.spoil(path); err != nil {
			t.Skip("this system keeps open files in place")
		}
		for range 2 {
			if err := l.Reopen(t.Context()); !errors.Is(err, tc.want) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if _, err := os.Stat(path); tc.want == disk.ErrMoved && err == nil {
			t.Errorf("%s: a new file lies in its place", name)
		}
		if l.Err() == nil {
			t.Errorf("%s: it lives again", name)
		}
		_ = l.Close() // Close returns the earlier error.
		if err := l.Reopen(t.Context()); !errors.Is(err, disk.ErrClosed) {
			t.Errorf("%s: after Close: %v", name, err)
		}
	}
}

// TestReopenMakesNoFile moves the file away during Reopen and moves it back later. The log must then have all
// acknowledged events.
func TestReopenMakesNoFile(t *testing.T) {
	path, die, away := filepath.Join(t.TempDir(), "e.db"), false, false
	l, err := Open(t.Context(), path, Options{fail: func(point string) error {
		switch {
		case die && point == "begin":
			return errors.New("dead")
		case die && point == "reopen" && !away:
			away = os.Rename(path, path+".away") == nil
		}
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	mustAppend(t, l, fact(event.Truncated, event.Refs{}))
	if _, _, err := l.Head(t.Context()); err != nil { // while a reader is open, the write-ahead log stays
		t.Fatal(err)
	}
	die = true
	if _, err := l.Append(t.Context(), fact(event.Truncated, event.Refs{})); err == nil {
		t.Fatal("the log lives")
	}
	if err := l.Reopen(t.Context()); !away || err == nil {
		_ = l.Close()
		t.Skip("this system keeps open files in place", err)
	}
	if err := os.Rename(path+".away", path); err != nil {
		t.Fatal(err)
	}
	if err := l.Reopen(t.Context()); err != nil {
		t.Fatal(err)
	}
	die = false
	if seq := mustAppend(t, l, fact(event.Truncated, event.Refs{})); seq != 2 {
		t.Errorf("the next event is %d", seq)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	audit(t, path)
}

// TestReopenOfALivingLog checks that Reopen does nothing to a usable log.
func TestReopenOfALivingLog(t *testing.T) {
	l := openTest(t)
	mustAppend(t, l, fact(event.Truncated, event.Refs{}))
	if err := l.Reopen(t.Context()); err != nil {
		t.Error(err)
	}
	if seq := mustAppend(t, l, fact(event.Truncated, event.Refs{})); seq != 2 {
		t.Errorf("seq %d", seq)
	}
}

// TestAnchoredAfterReopen checks that Anchored does not return an error about events that were lost before Reopen.
// The caller already got that error.
func TestAnchoredAfterReopen(t *testing.T) {
	fault, die := errors.New("the disk says no"), false
	dir := t.TempDir()
	l, err := Open(t.Context(), filepath.Join(dir, "e.db"), Options{Keys: evidence.UseKeys(dir), fail: func(string) error {
		if die {
			return fault
		}
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	mustEndRun(t, l, fact(event.CallEnforced, event.Refs{}))
	if err := l.Anchored(); err != nil {
		t.Fatal(err)
	}
	die = true // No race: the committing goroutine reads die only when it has a batch.
	if _, err := l.EndRun(t.Context(), fact(event.CallEnforced, event.Refs{})); !errors.Is(err, fault) {
		t.Errorf("when it died: %v", err)
	}
	if err := l.Anchored(); !errors.Is(err, fault) {
		t.Errorf("dead: %v", err)
	}
	die = false
	if err := l.Reopen(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := l.Anchored(); err != nil {
		t.Errorf("it lives again: %v", err)
	}
}
