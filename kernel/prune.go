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

// These are the errors if a pruning or a run must wait.
var (
	ErrUnderWay = errors.New("a run is under way")
	ErrPruning  = errors.New("payloads are being removed from the log")
)

// Prune removes the payloads that p describes from the log. It also removes the views, which are built again without
// the payloads. See eventlog.Log.Prune. The error is ErrUnderWay if a run of the context is running: such a run would
// end if its log did not react during the long rewrite. A run that starts during a pruning waits, or returns
// ErrPruning.
func (r *Runner) Prune(ctx context.Context, p event.Pruning) (done eventlog.Removal, err error) {
	lock, err := filelock.Acquire(pruneLockPath(r.opt.Paths.Locks))
	if errors.Is(err, filelock.ErrHeld) {
		return done, ErrPruning
	}
	if err != nil {
		return done, err
	}
	defer lock.Release()
	// Look for runs only after taking the prune lock. A run takes its own lock and then checks the prune lock, so one
	// of the two always sees the other.
	if err := noRun(r.opt.Paths.Locks); err != nil {
		return done, err
	}
	done, err = r.log.Prune(ctx, p)
	if err == nil && (done.Events > 0 || done.Resumed) {
		r.makeCheckpoint(ctx)
	}
	// Remove the views even after an error: some payloads may be removed already, and the views must not have them.
	return done, errors.Join(err, r.removeViews())
}

// makeCheckpoint makes a checkpoint after a person's change of the record. If that fails, the change is still valid,
// and the next run or 'perlica doctor' reports the fault.
func (r *Runner) makeCheckpoint(ctx context.Context) { _, _ = r.log.Checkpoint(ctx) }

// noRun returns ErrUnderWay if a run is running.
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

// removeViews deletes the views, because they contain parts of the payloads.
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

// IsPruning reports whether a process is pruning the log. dir is the context's folder of locks.
func IsPruning(dir string) (bool, error) { return filelock.Held(pruneLockPath(dir)) }

func pruneLockPath(dir string) string { return filepath.Join(dir, "prune.lock") }

// waitForPrune waits until no process is pruning. If "wait" is false, it returns ErrPruning instead. The caller holds
// the run's own lock, so that no later pruning can start.
func waitForPrune(ctx context.Context, locks string, wait bool) error {
	return filelock.Poll(ctx, wait, func() error {
		pruning, err := IsPruning(locks)
		if pruning {
			err = ErrPruning
		}
		return err
	}, ErrPruning)
}
