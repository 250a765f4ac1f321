package eventlog

import (
	"context"
	"errors"

	"github.com/jmoiron/sqlx"
	"modernc.org/sqlite"

	"github.com/perlica/perlica/eventlog/disk"
	"github.com/perlica/perlica/eventlog/store"
)

// truncate empties the write-ahead log of a log at rest.
func (w *batchWriter) truncate() {
	if w.conn == nil {
		return
	}
	_ = store.EmptyWAL(context.Background(), w.conn, pollTimeout, w.files) // what was touched the next commit says
}

// reopen opens the file again after a failed commit, whose fate is unknown, and checks that
// all that was acknowledged is there.
func (w *batchWriter) reopen(ctx context.Context) error {
	w.files.Touched = nil // what was moved may be back
	if err := w.files.InPlace(); err != nil {
		return err
	}
	if err := w.failpoint("reopen"); err != nil {
		return err
	}
	if err := w.close(); errors.Is(err, disk.ErrMoved) { // any other it has failed with already
		return err
	}
	w.stmts, w.conn = nil, nil
	opened, err := store.OpenAgain(ctx, w.path, w.files.DB)
	if err != nil {
		return err
	}
	if err := w.holds(store.Hashes{Ctx: ctx, DB: opened.DB}); err != nil {
		return errors.Join(err, opened.Close())
	}
	*w = batchWriter{path: w.path, keys: w.keys, fail: w.fail, most: w.most, book: w.book, repair: w.repair, db: opened.DB, files: opened.Files, tree: w.tree, last: w.last, origin: w.origin}
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
	if err := conn.Raw(func(conn any) error {
		conn.(sqlite.HookRegisterer).RegisterCommitHook(w.mayCommit)
		return nil
	}); err != nil {
		return err
	}
	return w.impatient(ctx)
}

// mayCommit is asked by SQLite under the write lock, before anything of a transaction is in the
// write-ahead log; another number than 0 takes the transaction back.
func (w *batchWriter) mayCommit() int32 {
	if w.files.Whole() != nil {
		return 1
	}
	return 0
}

// close releases the statements, without which SQLite would keep the file open, the
// connection and the file. The last to close a log moves what is in the write-ahead log into the
// database and removes it: where a file was touched, the connection is left to the process's end.
func (w *batchWriter) close() error {
	var db sqlx.QueryerContext = w.db
	if w.conn != nil {
		db = w.conn
	}
	err := w.files.InPlace()
	if err == nil {
		err = store.EmptyWAL(context.Background(), db, pollTimeout, w.files)
	}
	if err != nil {
		return errors.Join(err, w.files.Rescue())
	}
	defer w.files.Release()
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
