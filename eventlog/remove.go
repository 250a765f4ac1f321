package eventlog

import (
	"context"
	"errors"
	"fmt"

	"github.com/perlica/perlica/eventlog/disk"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/evidence"
	"github.com/perlica/perlica/eventlog/store"
)

// pruneJob asks the writer to remove payloads; log.pruned is on disk.
type pruneJob struct {
	ctx  context.Context
	p    event.Pruning
	s    store.Selection
	done chan<- error
}

// removeStep is how many events are emptied by one commit: what it overwrites is in the
// write-ahead log for a moment.
const removeStep = 1024

// remove does a pruneJob. It is the writer goroutine's, as its connection is.
func (l *Log) remove(w *batchWriter, job pruneJob) error {
	if err := l.Err(); err != nil {
		return err
	}
	err := w.remove(job)
	if err == nil || errors.Is(err, job.ctx.Err()) {
		return err
	}
	err = fmt.Errorf("eventlog: prune: %w", disk.Explain(err))
	if !errors.Is(err, disk.ErrBusy) && !errors.Is(err, disk.ErrFull) {
		// A disk that fails, a file that is gone: what is on it is not known any more.
		err = &WriteError{Op: "prune", Err: err}
		l.finish(nil, evidence.Checkpoint{}, err)
	}
	return err
}

// remove empties the payloads and rewrites the file without them.
func (w *batchWriter) remove(job pruneJob) error {
	ctx := context.Background() // a statement is never abandoned half-way
	if err := w.inPlace(); err != nil {
		return err
	}
	if err := w.patiently(ctx, func() error { return w.connect(ctx) }); err != nil {
		return err
	}
	// What is freed is overwritten with zeros: if we die before the file is rewritten, little
	// is left until the next call does it.
	if err := w.pragma(ctx, `PRAGMA secure_delete = ON`); err != nil {
		return err
	}
	defer func() { _ = w.pragma(ctx, `PRAGMA secure_delete = OFF`) }() // costs nothing where nothing is deleted
	where, args := store.Covering(job.p, job.s.Open)
	for from := job.s.First - 1; job.s.Events > 0 && from < job.s.Last; from += removeStep {
		if err := job.ctx.Err(); err != nil {
			return err
		}
		if err := w.failpoint("remove"); err != nil {
			return err
		}
		err := w.patiently(ctx, func() error {
			_, err := w.conn.ExecContext(ctx, `
				UPDATE events
				SET payload = NULL
				WHERE seq > ? AND seq <= ? AND `+where, append([]any{int64(from), int64(from + removeStep)}, args...)...)
			return err
		})
		if err != nil {
			return err
		}
	}
	if err := w.failpoint("removed"); err != nil {
		return err
	}
	// Pages that SQLite once moved rows away from may still hold their bytes.
	err := w.patiently(ctx, func() error { _, err := w.conn.ExecContext(ctx, `VACUUM`); return err })
	if err != nil {
		return err
	}
	if err := w.failpoint("vacuumed"); err != nil {
		return err
	}
	return w.emptyWAL(ctx)
}

// emptyWAL moves the write-ahead log into the file and leaves nothing of it. While it waits for
// readers no one can write: it gives up before others do.
func (w *batchWriter) emptyWAL(ctx context.Context) (err error) {
	if err := w.pragma(ctx, fmt.Sprintf(`PRAGMA busy_timeout = %d`, (store.BusyTimeout/2).Milliseconds())); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.impatient(ctx)) }()
	var busy, frames, moved int
	if err := w.conn.QueryRowxContext(ctx, `PRAGMA wal_checkpoint(TRUNCATE)`).Scan(&busy, &frames, &moved); err != nil {
		return err
	}
	if busy != 0 {
		return fmt.Errorf("%w: it reads what is to be removed", disk.ErrBusy)
	}
	return nil
}

// pragma sets one of the connection's own settings.
func (w *batchWriter) pragma(ctx context.Context, sql string) error {
	rows, err := w.conn.QueryContext(ctx, sql)
	if err != nil {
		return err
	}
	return rows.Close()
}
