package kernel

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/perlica/perlica/eventlog"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/view"
	"github.com/perlica/perlica/kernel/filelock"
)

// What keeps payloads from being pruned, and a run from starting while they are.
var (
	ErrUnderWay = errors.New("a run is under way")
	ErrPruning  = errors.New("payloads are being removed from the log")
)

// Prune empties the payloads that p covers, here and in the views beside the log, which come
// back without them. See eventlog.Log.Prune. It fails with ErrUnderWay while a run of the
// context lives: rewriting the file takes as long as it takes, and a run whose log does not
// answer is ended. A run that starts during that time is refused with ErrPruning, or waits.
func (r *Runner) Prune(ctx context.Context, p event.Pruning) (done eventlog.Removal, err error) {
	lock, err := filelock.Acquire(pruneLockPath(r.opt.Paths.Locks))
	if errors.Is(err, filelock.ErrHeld) {
		return done, ErrPruning
	}
	if err != nil {
		return done, err
	}
	defer lock.Release()
	// Behind the lock: a run takes its own before it looks at this one.
	if err := noRun(r.opt.Paths.Locks); err != nil {
		return done, err
	}
	done, err = r.log.Prune(ctx, p)
	if err == nil && (done.Events > 0 || done.Resumed) {
		r.seal(ctx)
	}
	// Also after an error: some payloads may be gone, and their words must not stay elsewhere.
	return done, errors.Join(err, r.removeViews())
}

// seal has what a person changed about the record covered by a checkpoint. What keeps it from
// being signed takes nothing back; doctor and the next run say it.
func (r *Runner) seal(ctx context.Context) { _, _ = r.log.Checkpoint(ctx) }

// noRun returns ErrUnderWay if a run's process lives.
func noRun(locks string) error {
	files, err := filepath.Glob(filepath.Join(locks, "run-*.lock"))
	if err != nil {
		return err
	}
	for _, path := range files {
		alive, err := filelock.Held(path)
		if err != nil {
			return err
		}
		if alive {
			return ErrUnderWay
		}
	}
	return nil
}

// removeViews deletes the views, which hold some of what the payloads said.
func (r *Runner) removeViews() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	var errs []error
	if r.standing != nil {
		errs = append(errs, r.standing.Close())
		r.standing = nil
	}
	for _, path := range r.opt.Paths.Views() {
		if err := view.Remove(path); err != nil {
			errs = append(errs, fmt.Errorf("a view still holds what was removed: %w", err))
		}
	}
	return errors.Join(errs...)
}

// IsPruning reports whether a process removes payloads of the log that has its locks in dir.
func IsPruning(dir string) (bool, error) { return filelock.Held(pruneLockPath(dir)) }

func pruneLockPath(dir string) string { return filepath.Join(dir, "prune.lock") }

// waitForPrune returns when no payloads are being removed; without wait it is ErrPruning that
// some are. The run's own lock is held already, so that none is removed from here on.
func waitForPrune(ctx context.Context, locks string, wait bool) error {
	return filelock.Poll(ctx, wait, func() error {
		pruning, err := IsPruning(locks)
		if pruning {
			err = ErrPruning
		}
		return err
	}, ErrPruning)
}
