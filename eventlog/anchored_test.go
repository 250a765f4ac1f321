package eventlog

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/perlica/perlica/eventlog/anchor"
	"github.com/perlica/perlica/eventlog/disk"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/evidence"
	"github.com/perlica/perlica/eventlog/store"
)

// TestAnchorOfTwoProcesses checks two processes that both find a torn line. Neither may cut off a line of the other.
func TestAnchorOfTwoProcesses(t *testing.T) {
	l := openTest(t)
	other, err := Open(t.Context(), l.Path(), Options{Context: "default"})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	const rounds = 20
	for range rounds {
		if f, err := os.OpenFile(anchor.Path(l.Path()), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600); err == nil {
			_, _ = f.WriteString("12 AAAA") // a torn line
			_ = f.Close()
		}
		var both sync.WaitGroup
		for _, log := range []*Log{l, other} {
			both.Go(func() {
				if _, err := log.EndRun(t.Context(), fact(event.CallEnforced, event.Refs{})); err != nil {
					t.Error(err)
				}
				if err := log.Anchored(); !errors.Is(err, evidence.ErrKey) {
					t.Error(err)
				}
			})
		}
		both.Wait()
	}
	got, err := anchor.Read(l.Path())
	if err != nil || len(got) != 2*rounds {
		t.Fatalf("%d lines, want %d, %v", len(got), 2*rounds, err)
	}
	seen := map[int64]bool{}
	for _, a := range got {
		if a.Damage != nil || a.Torn {
			t.Errorf("%+v", a)
		}
		seen[a.Size] = true
	}
	if !seen[2*rounds] {
		t.Errorf("the last checkpoint is not anchored: %v", seen)
	}
}

// TestAnchorIsNoLink checks that a link as an anchor is refused. A cloned repository may contain one.
func TestAnchorIsNoLink(t *testing.T) {
	dir := t.TempDir()
	path, victim := filepath.Join(dir, "e.db"), filepath.Join(dir, "victim")
	if err := os.WriteFile(victim, []byte("12 precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, target := range []string{victim, filepath.Join(dir, "new")} {
		if err := os.Symlink(target, anchor.Path(path)); err != nil {
			t.Skip("there are no links")
		}
		if err := anchor.Append(path, evidence.Checkpoint{Origin: "perlica/x", Size: 1},
			func(f func() error) error { return f() }); err == nil {
			t.Error("it was written through a link")
		}
		if err := os.Remove(anchor.Path(path)); err != nil {
			t.Fatal(err)
		}
	}
	if b, err := os.ReadFile(victim); string(b) != "12 precious" || err != nil {
		t.Errorf("%q, %v", b, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "new")); err == nil {
		t.Error("a file was made through a link")
	}
}

// TestAnchorIsWrittenAlone checks that no other process can write to the log or to the anchor while
// one process appends to the anchor.
func TestAnchorIsWrittenAlone(t *testing.T) {
	path := closedLog(t)
	opened, err := store.OpenWritable(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	w := &batchWriter{db: opened.DB, path: path, files: opened.Files}
	if err := w.takeConn(t.Context()); err != nil {
		t.Fatal(err)
	}
	other := func() error { return execFile(path, `BEGIN IMMEDIATE; ROLLBACK`) }
	err = w.withWriteLock(func() error {
		if err := disk.Explain(other()); !errors.Is(err, disk.ErrBusy) {
			t.Errorf("within the lock: %v", err)
		}
		return nil
	})
	if err := errors.Join(err, other(), w.closeFile()); err != nil {
		t.Error(err)
	}
}
