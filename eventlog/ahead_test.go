package eventlog

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/perlica/perlica/eventlog/anchor"
	"github.com/perlica/perlica/eventlog/disk"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/evidence"
	"github.com/perlica/perlica/eventlog/store"
)

// TestTheCheckpointFollowsAnAnswer checks that EndRunEarly returns before the checkpoint of the run. Anchored and
// Close must wait for the checkpoint. A fault during the checkpoint must not affect the acknowledged events.
func TestTheCheckpointFollowsAnAnswer(t *testing.T) {
	for _, end := range []string{"Anchored", "Close", "a fault"} {
		t.Run(end, func(t *testing.T) {
			dir, commits := t.TempDir(), 0
			first := &gate{"begin", make(chan bool, 1), make(chan bool)}
			fault := errors.New("the disk says no")
			l, err := Open(t.Context(), filepath.Join(dir, "e.db"), Options{Keys: evidence.UseKeys(dir),
				fail: func(point string) error {
					if point != "begin" {
						return nil
					}
					if commits++; commits != 3 {
						return nil
					}
					_ = first.passPoint(point)
					if end == "a fault" {
						return fault
					}
					return nil
				}})
			if err != nil {
				t.Fatal(err)
			}
			mustAppend(t, l, fact(event.MessageReceived, event.Refs{}))
			last, err := l.EndRunEarly(t.Context(), fact(event.Truncated, event.Refs{}), fact(event.CallEnforced, event.Refs{}))
			if err != nil || last != 3 {
				t.Fatal(last, err)
			}
			select {
			case <-first.held:
			case <-time.After(2 * time.Minute):
				t.Fatal("no checkpoint follows")
			}
			if size, _, err := l.Head(t.Context()); size != 3 || err != nil {
				t.Errorf("%d events are on record, %v", size, err)
			}
			if list, err := l.Checkpoints(t.Context(), 0); len(list) != 0 || err != nil {
				t.Errorf("%d checkpoints were waited for, %v", len(list), err)
			}
			close(first.release)
			if end == "Close" {
				err = l.Close()
			} else if err = l.Anchored(); end == "a fault" {
				if !errors.Is(err, fault) {
					t.Error(err)
				}
				_ = l.Close() // Close returns the same fault.
				return
			}
			if err != nil {
				t.Error(err)
			}
			lines, err := anchor.Read(l.Path())
			if err != nil || len(lines) != 1 || lines[0].Size != 3 {
				t.Errorf("%v, %v", lines, err)
			}
			_ = l.Close() // The test may have closed the log already.
			audit(t, l.Path())
		})
	}
}

// TestACheckpointFollowsAReopenedLog checks that Reopen makes a checkpoint that failed after an answer.
func TestACheckpointFollowsAReopenedLog(t *testing.T) {
	for _, at := range []string{"begin", "insert", "commit", "committed"} {
		for _, end := range []string{"Anchored", "Close"} {
			dir, fault, passed := t.TempDir(), errors.New("the disk says no"), 0
			l, err := Open(t.Context(), filepath.Join(dir, "e.db"), Options{Keys: evidence.UseKeys(dir),
				fail: func(point string) error {
					if point == at {
						if passed++; passed == 2 || passed == 3 { // only for the checkpoint, after the answer's commit
							return fault
						}
					}
					return nil
				}})
			if err != nil {
				t.Fatal(err)
			}
			last, err := l.EndRunEarly(t.Context(), fact(event.Truncated, event.Refs{}), fact(event.CallEnforced, event.Refs{}))
			if err != nil {
				t.Fatal(at, err)
			}
			for range 2 { // The second attempt fails, too.
				if err := l.Anchored(); !errors.Is(err, fault) {
					t.Errorf("%s, %s: %v", at, end, err)
				}
				if err := l.Reopen(t.Context()); err != nil {
					t.Fatal(at, end, err)
				}
			}
			if end == "Anchored" {
				if err := l.Anchored(); err != nil {
					t.Errorf("%s: %v", at, err)
				}
			}
			if err := l.Close(); err != nil {
				t.Errorf("%s, %s: %v", at, end, err)
			}
			lines, err := anchor.Read(l.Path())
			if err != nil || len(lines) != 1 || lines[0].Size != int64(last) {
				t.Errorf("%s, %s: %v, %v", at, end, lines, err)
			}
			audit(t, l.Path())
		}
	}
}

// TestTheCheckpointIsPutOff checks a checkpoint during which another process holds the lock. The log must stay
// usable, Anchored must return the error, and the next checkpoint must cover both runs.
func TestTheCheckpointIsPutOff(t *testing.T) {
	dir, commits := t.TempDir(), 0
	var other *sqlx.DB
	l, err := Open(t.Context(), filepath.Join(dir, "e.db"), Options{Keys: evidence.UseKeys(dir),
		fail: func(point string) error {
			if point == "begin" {
				commits++
			}
			if point != "begin" || commits != 2 {
				return nil
			}
			_, err := other.Exec(`BEGIN IMMEDIATE`)
			return err
		}})
	if err != nil {
		t.Fatal(err)
	}
	l.batch.wait = 100 * time.Millisecond
	if other, err = sqlx.Open("sqlite", store.WriterDSN(l.Path())); err != nil {
		t.Fatal(err)
	}
	other.SetMaxOpenConns(1)
	if _, err := l.EndRunEarly(t.Context(), fact(event.Truncated, event.Refs{}),
		fact(event.CallEnforced, event.Refs{})); err != nil {
		t.Fatal(err)
	}
	if err := l.Anchored(); !errors.Is(err, disk.ErrBusy) || l.Err() != nil {
		t.Errorf("%v; the log: %v", err, l.Err())
	}
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	last, err := l.EndRunEarly(t.Context(), fact(event.CallEnforced, event.Refs{}))
	if err := errors.Join(err, l.Anchored(), l.Close()); err != nil {
		t.Fatal(err)
	}
	lines, err := anchor.Read(l.Path())
	if err != nil || len(lines) != 1 || lines[0].Size != int64(last) {
		t.Errorf("%v, %v", lines, err)
	}
	audit(t, l.Path())
}
