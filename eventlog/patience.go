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

// pollTimeout is the time for which SQLite itself waits for the write lock. While SQLite waits, it polls more and
// more rarely, in the end ten times a second. If other processes write all the time, the lock is free only for short
// moments. The process with the longest wait would then rarely get the lock. A short timeout and repeated attempts
// make SQLite poll a hundred times a second.
const pollTimeout = 50 * time.Millisecond

// patience decides when retryWhileBusy gives up. As long as other processes commit events, it does not give up.
// Without new events it gives up after busyLimit. It also requires a number of attempts, because the time may have
// passed while this process was suspended.
type patience struct {
	size int64 // number of events in the log when it last grew
	// until is the time at which the waiting may end. It is zero before the first failed attempt.
	until time.Time
	left  int // attempts that must still fail
}

// retryWhileBusy calls the function "do", which takes the write lock. It repeats the call while another process holds
// the lock.
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

// countEvents returns the number of events in the log, or 0 if the log cannot be read.
func (w *batchWriter) countEvents(ctx context.Context) (size int64) {
	if w.conn == nil {
		return 0
	}
	if size, err := (store.Hashes{Ctx: ctx, DB: w.conn}).Size(); err == nil {
		return size
	}
	return 0 // The next attempt returns the error.
}

// setPollTimeout makes SQLite give up after pollTimeout. retryWhileBusy then tries again.
func (w *batchWriter) setPollTimeout(ctx context.Context) error {
	return w.setPragma(ctx, fmt.Sprintf(`PRAGMA busy_timeout = %d`, pollTimeout.Milliseconds()))
}

// busyLimit returns the maximum time to wait for a process that holds the lock and commits nothing.
func (w *batchWriter) busyLimit() time.Duration {
	if w.wait > 0 {
		return w.wait
	}
	return store.BusyTimeout
}
