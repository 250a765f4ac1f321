package kernel

import (
	"errors"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
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
