package filelock

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gofrs/flock"
)

func TestLockIsExclusiveAndLeavesNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.lock")
	l, err := Acquire(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Acquire(path); !errors.Is(err, ErrHeld) {
		t.Errorf("second acquire: %v", err)
	}
	if locked, err := Held(path); !locked || err != nil {
		t.Errorf("Held = %t, %v", locked, err)
	}
	l.Release()
	if locked, err := Held(path); locked || err != nil {
		t.Errorf("after release: Held = %t, %v", locked, err)
	}
	if m, _ := filepath.Glob(path); len(m) > 0 {
		t.Errorf("left behind: %v", m)
	}
}

// TestLockSurvivesItsFilesRemoval checks that at most one goroutine holds the lock, although each release removes the
// lock's file.
func TestLockSurvivesItsFilesRemoval(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.lock")
	var held, most, taken atomic.Int64
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 300 {
				l, err := Acquire(path)
				if errors.Is(err, ErrHeld) {
					continue
				}
				if err != nil {
					t.Error(err)
					return
				}
				if n := held.Add(1); n > most.Load() {
					most.Store(n)
				}
				taken.Add(1)
				held.Add(-1)
				l.Release()
			}
		})
	}
	wg.Wait()
	if most.Load() != 1 || taken.Load() == 0 {
		t.Errorf("held by %d at once, taken %d times", most.Load(), taken.Load())
	}
}

// TestReservedLock checks that Held reports a reserved lock as free, and that Take succeeds while other goroutines call
// Held. If the file was removed and another process has the lock, Take must return ErrHeld.
func TestReservedLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.lock")
	r, err := Reserve(path)
	if err != nil {
		t.Fatal(err)
	}
	if locked, err := Held(path); locked || err != nil {
		t.Errorf("reserved: Held = %t, %v", locked, err)
	}
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					_, _ = Held(path)
				}
			}
		})
	}
	l, err := r.Take()
	close(stop)
	wg.Wait()
	if err != nil {
		t.Fatal(err)
	}
	if locked, err := Held(path); !locked || err != nil {
		t.Errorf("taken: Held = %t, %v", locked, err)
	}
	l.Release()

	late, err := Reserve(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(path); err != nil {
		t.Skip("this system keeps open files in place")
	}
	first, err := Acquire(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := late.Take(); !errors.Is(err, ErrHeld) {
		t.Errorf("taken although another holds it: %v", err)
	}
	first.Release()
}

// TestSweepLeavesWhatIsHeld checks that Sweep removes the file of a free lock. It must not remove a file that another
// process has locked or replaced.
func TestSweepLeavesWhatIsHeld(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.lock")
	take := func() *Lock {
		t.Helper()
		l, err := Acquire(path)
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	held := func(what string, want bool) {
		t.Helper()
		if locked, err := Held(path); locked != want || err != nil {
			t.Errorf("%s: Held = %t, %v", what, locked, err)
		}
	}
	l := take()
	l.Free()
	held("given up", false)
	next := take()
	l.Sweep()
	held("taken by another, and swept", true)
	next.Free()
	l.Sweep()
	if left, err := filepath.Glob(path); len(left) > 0 || err != nil {
		t.Errorf("left: %q, %v", left, err)
	}
	l.Sweep() // the file does not exist

	take().Free()
	f := flock.New(path, flock.SetFlag(os.O_RDONLY)) // acts as a sweep at this moment
	if ok, err := f.TryRLock(); !ok || err != nil {
		t.Fatal(ok, err)
	}
	if err := os.Remove(path); err != nil {
		t.Skip("this system keeps open files in place")
	}
	next = take()
	removeIfFree(f)
	held("put in the place of what is swept", true)
	next.Release()
}

// TestTakeNoticesARemovedFile checks that Take creates the lock's file again if it was removed.
func TestTakeNoticesARemovedFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.lock")
	r, err := Reserve(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(path); err != nil {
		t.Skip("this system keeps open files in place")
	}
	l, err := r.Take()
	if err != nil {
		t.Fatal(err)
	}
	if locked, err := Held(path); !locked || err != nil {
		t.Errorf("Held = %t, %v", locked, err)
	}
	l.Release()
	if left, err := filepath.Glob(path); len(left) > 0 || err != nil {
		t.Errorf("left: %q, %v", left, err)
	}
}

// TestALookIsNoHolder checks that a concurrent Held never makes Acquire fail.
func TestALookIsNoHolder(t *testing.T) {
	path := t.TempDir() + "/x.lock"
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for range 4 {
		go func() {
			for ctx.Err() == nil {
				if _, err := Held(path); err != nil {
					t.Error(err)
					return
				}
			}
		}()
	}
	for range 500 {
		l, err := Acquire(path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Acquire(path); err == nil {
			t.Fatal("a lock was taken twice")
		}
		l.Release()
	}
}

// TestNameOfAnEndedHolder checks that the name of a killed holder is not taken for the name of the next holder.
func TestNameOfAnEndedHolder(t *testing.T) {
	path := Session(t.TempDir(), "s")
	killed, err := Acquire(path)
	if err != nil {
		t.Fatal(err)
	}
	killed.Sign("chat", time.Now())
	killed.Free()
	next, err := Acquire(path)
	if err != nil {
		t.Fatal(err)
	}
	defer next.Release()
	if _, err := AcquireSession(t.Context(), path, false); !errors.Is(err, ErrBusy) || err.Error() != ErrBusy.Text {
		t.Errorf("the session is refused with %v, want %v", err, ErrBusy.Text)
	}
}
