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

// pruneJob asks the writer goroutine to remove payloads. The event log.pruned of this removal is already on disk.
type pruneJob struct {
	ctx  context.Context
	p    event.Pruning
	s    store.Selection
	done chan<- error
}

// removeStep is the maximum number of events that lose their payloads in one commit. It limits the size of the
// write-ahead log.
const removeStep = 1024

// runPruneJob removes the payloads of a job. It runs on the writer goroutine, which holds commitMu.
func (l *Log) runPruneJob(w *batchWriter, job pruneJob) error {
	if err := l.Err(); err != nil {
		return err
	}
	err := w.removePayloads(job)
	if err == nil || errors.Is(err, job.ctx.Err()) {
		return err
	}
	err = fmt.Errorf("eventlog: prune: %w", disk.Explain(err))
	if !errors.Is(err, disk.ErrBusy) && !errors.Is(err, disk.ErrFull) {
		// After any other error, the state of the file is unknown. So return a WriteError, which ends the log.
		err = &WriteError{Op: "prune", Err: err}
		l.queue.finishBatch(nil, evidence.Checkpoint{}, err)
	}
	return err
}

// removePayloads removes the payloads of a job and rewrites the file without their bytes.
func (w *batchWriter) removePayloads(job pruneJob) error {
	ctx := context.Background() // a statement always runs to its end
	if err := w.checkInPlace(); err != nil {
		return err
	}
	if err := w.retryWhileBusy(ctx, func() error { return w.takeConn(ctx) }); err != nil {
		return err
	}
	// With this setting SQLite overwrites freed space with zeros. If this process dies before the file is rewritten,
	// most of the bytes are already gone.
	if err := w.setPragma(ctx, `PRAGMA secure_delete = ON`); err != nil {
		return err
	}
	defer func() { _ = w.setPragma(ctx, `PRAGMA secure_delete = OFF`) }() // Otherwise later commits would be slower.
	where, args := store.Covering(job.p, job.s.Open)
	for from := job.s.First - 1; job.s.Events > 0 && from < job.s.Last; from += removeStep {
		if err := job.ctx.Err(); err != nil {
			return err
		}
		if err := w.failpoint("remove"); err != nil {
			return err
		}
		err := w.retryWhileBusy(ctx, func() error {
			_, err := w.conn.ExecContext(ctx, `
				UPDATE entries
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
	// SQLite may have moved rows before. Their old pages may still contain the bytes, so rewrite the file.
	err := w.retryWhileBusy(ctx, func() error { _, err := w.conn.ExecContext(ctx, `VACUUM`); return err })
	if err != nil {
		return err
	}
	if err := w.failpoint("vacuumed"); err != nil {
		return err
	}
	return w.emptyWAL(ctx)
}

// emptyWAL moves the write-ahead log into the database and empties it. While it waits for readers, no other process
// can write. It therefore waits for a shorter time than other writers do.
func (w *batchWriter) emptyWAL(ctx context.Context) (err error) {
	if err := w.setPragma(ctx, fmt.Sprintf(`PRAGMA busy_timeout = %d`, (store.BusyTimeout/2).Milliseconds())); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.setPollTimeout(ctx)) }()
	var busy, frames, moved int
	if err := w.conn.QueryRowxContext(ctx, `PRAGMA wal_checkpoint(TRUNCATE)`).Scan(&busy, &frames, &moved); err != nil {
		return err
	}
	if busy != 0 {
		return fmt.Errorf("%w: it reads an event that is to be removed", disk.ErrBusy)
	}
	return nil
}

// setPragma executes a PRAGMA statement on the writer's connection.
func (w *batchWriter) setPragma(ctx context.Context, sql string) error {
	rows, err := w.conn.QueryContext(ctx, sql)
	if err != nil {
		return err
	}
	return rows.Close()
}
