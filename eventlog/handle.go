package eventlog

import (
	"context"
	"errors"
)

// truncate empties the write-ahead log of a log at rest.
func (w *batchWriter) truncate() {
	if w.conn == nil {
		return
	}
	emptyWAL(context.Background(), w.conn, pollTimeout)
}

// reopen opens the file again after a failed commit, whose fate is unknown, and checks that
// all that was acknowledged is there.
func (w *batchWriter) reopen(ctx context.Context) error {
	if err := w.inPlace(); err != nil {
		return err
	}
	if err := w.failpoint("reopen"); err != nil {
		return err
	}
	_ = w.close() // it has failed already
	w.stmts, w.conn = nil, nil
	opened, err := openAgain(ctx, w.path, w.file)
	if err != nil {
		return err
	}
	if err := w.holds(hashes{ctx: ctx, db: opened.db}); err != nil {
		return errors.Join(err, opened.db.Close())
	}
	*w = batchWriter{path: w.path, keys: w.keys, fail: w.fail, db: opened.db, file: opened.file, tree: w.tree, last: w.last, origin: w.origin}
	return nil
}

// connect takes the connection, with the first commit.
func (w *batchWriter) connect(ctx context.Context) error {
	if w.conn != nil {
		return nil
	}
	conn, err := w.db.Connx(ctx)
	if err != nil {
		return err
	}
	w.conn, w.stmts = conn, map[string]statement{}
	return w.impatient(ctx)
}

// close releases the statements, without which SQLite would keep the file open, the
// connection and the file.
func (w *batchWriter) close() error {
	var errs []error
	if w.conn != nil {
		errs = append(errs, w.conn.Raw(func(any) error {
			for _, s := range w.stmts {
				errs = append(errs, s.Close())
			}
			return nil
		}), w.conn.Close())
	}
	return errors.Join(append(errs, w.db.Close())...)
}
