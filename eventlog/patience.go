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

// pollTimeout is how long SQLite itself waits for the write lock. It looks more and more
// seldom, in the end ten times a second: where others write all the time the lock is free for
// moments only, and anyone who has waited longest would be the least likely to meet one. Told to
// give up soon and asked again it looks a hundred times a second.
const pollTimeout = 50 * time.Millisecond

// patience says how long the write lock is waited for: while others write, as long as they do;
// with no one writing, for busyTimeout. Attempts are counted, too: a while in which this process
// did not run is no more than one of them.
type patience struct {
	size  int64     // of the log when somebody last wrote
	until time.Time // zero: no one was waited for yet
	left  int       // attempts
}

// patiently repeats do, which takes the write lock, while another process has it.
func (w *batchWriter) patiently(ctx context.Context, do func() error) error {
	var p patience
	for {
		err := do()
		if err == nil || !errors.Is(disk.Explain(err), disk.ErrBusy) {
			return err
		}
		size, now := w.committed(ctx), time.Now()
		if p.left--; p.until.IsZero() || size != p.size {
			p = patience{size, now.Add(w.patience()), int(w.patience() / pollTimeout)}
		} else if p.left <= 0 && now.After(p.until) {
			if store.HasNoLocks(filepath.Dir(w.path)) {
				err = fmt.Errorf("%w: %v", disk.ErrNoLocks, err)
			}
			return err
		}
	}
}

// committed returns how many events are in the log, as far as can be told.
func (w *batchWriter) committed(ctx context.Context) (size int64) {
	if w.conn == nil {
		return 0
	}
	if size, err := (store.Hashes{Ctx: ctx, DB: w.conn}).Size(); err == nil {
		return size
	}
	return 0 // what is wrong the next attempt says
}

// impatient has SQLite give up soon; patiently asks again.
func (w *batchWriter) impatient(ctx context.Context) error {
	return w.pragma(ctx, fmt.Sprintf(`PRAGMA busy_timeout = %d`, pollTimeout.Milliseconds()))
}

// patience is how long a lock is waited for that no one seems to use.
func (w *batchWriter) patience() time.Duration {
	if w.wait > 0 {
		return w.wait
	}
	return store.BusyTimeout
}
