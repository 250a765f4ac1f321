package eventlog

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/perlica/perlica/eventlog/disk"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/evidence"
	"github.com/perlica/perlica/eventlog/store"
)

// openMany opens a log n times, as n processes do. Each handle calls the function "hook" at its failpoints. The
// parameter "wait" is the time for which a handle waits for a lock if the lock's holder commits nothing.
func openMany(t *testing.T, n int, wait time.Duration, hook func(i int, point string) error) []*Log {
	t.Helper()
	path := filepath.Join(t.TempDir(), "eventlog.db")
	var logs []*Log
	for i := range n {
		l, err := Open(t.Context(), path, Options{Context: "default",
			fail: func(point string) error { return hook(i, point) }})
		if err != nil {
			t.Fatal(err)
		}
		l.batch.wait = wait
		logs = append(logs, l)
	}
	t.Cleanup(func() {
		for _, l := range logs {
			_ = l.Close() // some handles have failed
		}
		audit(t, path)
	})
	return logs
}

// TestPatienceWithASlowDisk lets eight handles write. Each of them holds the lock for a third of the time that the
// others wait. No handle may fail only because the others got the lock first.
func TestPatienceWithASlowDisk(t *testing.T) {
	wait := 60 * time.Millisecond
	err := appendTogether(t, wait)
	for errors.Is(err, disk.ErrBusy) && wait < 10*time.Second { // the real disk may be slow, too
		wait *= 5
		err = appendTogether(t, wait)
	}
	if err != nil {
		t.Error(err)
	}
}

// appendTogether lets eight handles append four events each.
func appendTogether(t *testing.T, wait time.Duration) error {
	t.Helper()
	logs := openMany(t, 8, wait, func(_ int, point string) error {
		if point == "commit" {
			<-time.After(wait / 3) // as long as a sync of a slow disk
		}
		return nil
	})
	var wg sync.WaitGroup
	errs := make([]error, len(logs))
	for i, l := range logs {
		wg.Go(func() {
			for range 4 {
				if _, err := l.EndRun(context.Background(), fact(event.CallEnforced, event.Refs{})); err != nil {
					errs[i] = err
					return
				}
			}
			if err := l.Anchored(); !errors.Is(err, evidence.ErrKey) { // The log has no key, but the anchor was written.
				errs[i] = fmt.Errorf("anchored: %w", err)
			}
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if size, _, err := logs[0].Head(t.Context()); size != 32 || err != nil {
		return fmt.Errorf("%d events, %w", size, err)
	}
	return nil
}

// TestPatienceEnds checks that a handle gives up if the process with the lock commits nothing.
func TestPatienceEnds(t *testing.T) {
	held, release := make(chan bool, 1), make(chan bool)
	logs := openMany(t, 2, 100*time.Millisecond, func(i int, point string) error {
		if i == 0 && point == "commit" {
			held <- true
			<-release
		}
		return nil
	})
	done := make(chan error)
	go func() {
		_, err := logs[0].Append(context.Background(), fact(event.Truncated, event.Refs{}))
		done <- err
	}()
	<-held
	_, err := logs[1].Append(t.Context(), fact(event.Truncated, event.Refs{}))
	var write *WriteError
	if !errors.Is(err, disk.ErrBusy) || !errors.As(err, &write) || write.Unknown {
		t.Errorf("%v", err)
	}
	close(release)
	if err := <-done; err != nil {
		t.Error(err)
	}
	if err := logs[1].Reopen(t.Context()); err != nil {
		t.Error(err)
	}
	if seq := mustAppend(t, logs[1], fact(event.Truncated, event.Refs{})); seq != 2 {
		t.Errorf("event %d, want 2", seq)
	}
}

// TestPatienceOfASuspendedProcess checks that a suspension of the process counts as one attempt.
func TestPatienceOfASuspendedProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w batchWriter
		tries, suspended := 0, true
		busy := func() error {
			tries++
			if <-time.After(pollTimeout); suspended && tries == 2 {
				<-time.After(time.Hour)
			}
			return disk.ErrBusy
		}
		begun := time.Now()
		err := w.retryWhileBusy(t.Context(), func() error {
			if tries == 3 {
				return nil
			}
			return busy()
		})
		if err != nil || time.Since(begun) < time.Hour {
			t.Errorf("after %d attempts: %v", tries, err)
		}
		tries, suspended, begun = 0, false, time.Now()
		if err := w.retryWhileBusy(t.Context(), busy); !errors.Is(err, disk.ErrBusy) {
			t.Error(err)
		}
		if took := time.Since(begun); took < store.BusyTimeout || took > store.BusyTimeout+time.Second {
			t.Errorf("it gave up after %v", took)
		}
	})
}
