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

// The reasons why pruning or a run must wait.
var (
	ErrUnderWay = errors.New("a run is under way")
	ErrPruning  = errors.New("payloads are being removed from the log")
)

// Prune empties the payloads that p covers, in the log and in the views, which are rebuilt without them. See
// eventlog.Log.Prune. The error is ErrUnderWay while a run of the context lives, because Perlica ends a run
// whose log does not answer during the long rewrite. A run that starts during that time waits, or fails with
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
	// Only after the lock: a run takes its own lock before it looks at this one.
	if err := noRun(r.opt.Paths.Locks); err != nil {
		return done, err
	}
	done, err = r.log.Prune(ctx, p)
	if err == nil && (done.Events > 0 || done.Resumed) {
		r.makeCheckpoint(ctx)
	}
	// After an error, too: some payloads may be gone, and the views must not keep them.
	return done, errors.Join(err, r.removeViews())
}

// makeCheckpoint makes a checkpoint that covers a person's change of the record. An unsigned checkpoint undoes nothing;
// doctor and the next run report it.
func (r *Runner) makeCheckpoint(ctx context.Context) { _, _ = r.log.Checkpoint(ctx) }

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

// removeViews deletes the views, because they hold parts of the payloads.
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

// IsPruning reports whether a process is pruning the log with its locks in dir.
func IsPruning(dir string) (bool, error) { return filelock.Held(pruneLockPath(dir)) }

func pruneLockPath(dir string) string { return filepath.Join(dir, "prune.lock") }

// waitForPrune waits until no process is pruning. Without wait it returns ErrPruning instead. The caller holds
// the run's own lock, which keeps later pruning out.
func waitForPrune(ctx context.Context, locks string, wait bool) error {
	return filelock.Poll(ctx, wait, func() error {
		pruning, err := IsPruning(locks)
		if pruning {
			err = ErrPruning
		}
		return err
	}, ErrPruning)
}
