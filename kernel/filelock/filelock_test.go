package filelock

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

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

// TestLockSurvivesItsFilesRemoval has many goroutines take and release one lock, which
// removes its file every time: never may two hold it.
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

// TestReservedLock: a lock that is reserved counts as free for those who look, is taken beside
// them, and belongs to the process that was first if its file was removed.
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

// TestSweepLeavesWhatIsHeld: a file that was given up is removed, one that somebody has taken, or
// put in its place, is not. A process that holds a lock whose file is gone does not hold it for others.
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
	l.Sweep() // of what is gone

	take().Free()
	f := flock.New(path, flock.SetFlag(os.O_RDONLY)) // a sweep that has got this far
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

// TestTakeNoticesARemovedFile: a reserved lock whose file was removed is taken anew, so that
// others see it.
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
