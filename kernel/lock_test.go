package kernel

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/gofrs/flock"

	"github.com/perlica/perlica/eventlog/event"
)

func TestLockIsExclusiveAndLeavesNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.lock")
	l, err := acquire(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := acquire(path); !errors.Is(err, errLocked) {
		t.Errorf("second acquire: %v", err)
	}
	if locked, err := isLocked(path); !locked || err != nil {
		t.Errorf("isLocked = %t, %v", locked, err)
	}
	l.release()
	if locked, err := isLocked(path); locked || err != nil {
		t.Errorf("after release: isLocked = %t, %v", locked, err)
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
				l, err := acquire(path)
				if errors.Is(err, errLocked) {
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
				l.release()
			}
		})
	}
	wg.Wait()
	if most.Load() != 1 || taken.Load() == 0 {
		t.Errorf("held by %d at once, taken %d times", most.Load(), taken.Load())
	}
}

// TestReservedLock: a lock that is reserved counts as free for those who look, is taken beside
// them, and is whoever's who was first if its file was removed.
func TestReservedLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.lock")
	r, err := reserve(path)
	if err != nil {
		t.Fatal(err)
	}
	if locked, err := isLocked(path); locked || err != nil {
		t.Errorf("reserved: isLocked = %t, %v", locked, err)
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
					_, _ = isLocked(path)
				}
			}
		})
	}
	l, err := r.take()
	close(stop)
	wg.Wait()
	if err != nil {
		t.Fatal(err)
	}
	if locked, err := isLocked(path); !locked || err != nil {
		t.Errorf("taken: isLocked = %t, %v", locked, err)
	}
	l.release()

	late, err := reserve(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(path); err != nil {
		t.Skip("this system keeps open files in place")
	}
	first, err := acquire(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := late.take(); !errors.Is(err, errLocked) {
		t.Errorf("taken although another holds it: %v", err)
	}
	first.release()
}

// TestAnIdleConversationIsInNobodysWay: between its turns a conversation has no run, so payloads
// can be pruned, and nothing is left of its locks in the end.
func TestAnIdleConversationIsInNobodysWay(t *testing.T) {
	r := openRunner(t)
	c := converse(t, r, "", "", "")
	for range 3 {
		res := say(t, c, "hello")
		c.behind.Wait()
		if c.next == nil {
			t.Fatal("no lock is reserved")
		}
		if _, err := r.Prune(t.Context(), event.Pruning{Run: res.Run, By: "test"}); err != nil {
			t.Errorf("pruning beside an idle conversation: %v", err)
		}
		if held, _, err := CountLocks(r.opt.Paths.Locks); held != 0 || err != nil {
			t.Errorf("%d locks of runs are held, %v", held, err)
		}
	}
	closeConversation(t, c)
	if left, err := filepath.Glob(filepath.Join(r.opt.Paths.Locks, "*.lock")); len(left) > 0 || err != nil {
		t.Errorf("left: %q, %v", left, err)
	}
}

// TestSweepLeavesWhatIsHeld: a file that was given up is removed, one that somebody has taken, or
// put in its place, is not. Whoever holds a lock whose file is gone does not hold it for others.
func TestSweepLeavesWhatIsHeld(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.lock")
	take := func() *fileLock {
		t.Helper()
		l, err := acquire(path)
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	held := func(what string, want bool) {
		t.Helper()
		if locked, err := isLocked(path); locked != want || err != nil {
			t.Errorf("%s: isLocked = %t, %v", what, locked, err)
		}
	}
	l := take()
	l.free()
	held("given up", false)
	next := take()
	l.sweep()
	held("taken by another, and swept", true)
	next.free()
	l.sweep()
	if left, err := filepath.Glob(path); len(left) > 0 || err != nil {
		t.Errorf("left: %q, %v", left, err)
	}
	l.sweep() // of what is gone

	take().free()
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
	next.release()
}

// TestTakeNoticesARemovedFile: a reserved lock whose file was removed is taken anew, so that
// others see it.
func TestTakeNoticesARemovedFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.lock")
	r, err := reserve(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(path); err != nil {
		t.Skip("this system keeps open files in place")
	}
	l, err := r.take()
	if err != nil {
		t.Fatal(err)
	}
	if locked, err := isLocked(path); !locked || err != nil {
		t.Errorf("isLocked = %t, %v", locked, err)
	}
	l.release()
	if left, err := filepath.Glob(path); len(left) > 0 || err != nil {
		t.Errorf("left: %q, %v", left, err)
	}
}
