package eventlog

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/perlica/perlica/eventlog/disk"
	"github.com/perlica/perlica/eventlog/store"
)

// pollTimeout is the time for which SQLite itself waits for the write lock. SQLite polls less and
// less often, in the end ten times a second. While others write all the time, the lock is free only
// for moments, so the oldest waiter would be the least likely to get it. With a short timeout and
// repeated attempts, SQLite polls a hundred times a second.
const pollTimeout = 50 * time.Millisecond

// patience decides how long retryWhileBusy waits. While other processes commit events, it waits.
// Without new events it waits for busyLimit. It also counts the attempts, so that a suspension of
// this process counts as one.
type patience struct {
	size int64 // size of the log at its last growth
	// until is zero before the first failed attempt.
	until time.Time
	left  int // attempts
}

// retryWhileBusy repeats do, which takes the write lock, while another process holds the lock.
func (w *batchWriter) retryWhileBusy(ctx context.Context, do func() error) error {
	var p patience
	for {
		err := do()
		if err == nil || !errors.Is(disk.Explain(err), disk.ErrBusy) {
			return err
		}
		size, now := w.countEvents(ctx), time.Now()
		if p.left--; p.until.IsZero() || size != p.size {
			p = patience{size, now.Add(w.busyLimit()), int(w.busyLimit() / pollTimeout)}
		} else if p.left <= 0 && now.After(p.until) {
			if store.HasNoLocks(filepath.Dir(w.path)) {
				err = fmt.Errorf("%w: %v", disk.ErrNoLocks, err)
			}
			return err
		}
	}
}

// countEvents returns the number of events in the log, or 0 if it cannot be read.
func (w *batchWriter) countEvents(ctx context.Context) (size int64) {
	if w.conn == nil {
		return 0
	}
	if size, err := (store.Hashes{Ctx: ctx, DB: w.conn}).Size(); err == nil {
		return size
	}
	return 0 // the next attempt reports the fault
}

// setPollTimeout makes SQLite give up after pollTimeout; retryWhileBusy tries again.
func (w *batchWriter) setPollTimeout(ctx context.Context) error {
	return w.setPragma(ctx, fmt.Sprintf(`PRAGMA busy_timeout = %d`, pollTimeout.Milliseconds()))
}

// busyLimit is the time to wait for a lock whose holder commits nothing.
func (w *batchWriter) busyLimit() time.Duration {
	if w.wait > 0 {
		return w.wait
	}
	return store.BusyTimeout
}
