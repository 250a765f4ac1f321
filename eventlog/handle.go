package eventlog

import (
	"context"
	"errors"

	"github.com/jmoiron/sqlx"
	"modernc.org/sqlite"

	"github.com/perlica/perlica/eventlog/disk"
	"github.com/perlica/perlica/eventlog/store"
)

// emptyIdleWAL empties the write-ahead log of an idle log.
func (w *batchWriter) emptyIdleWAL() {
	if w.conn == nil {
		return
	}
	_ = store.EmptyWAL(context.Background(), w.conn, pollTimeout, w.files) // The next commit reports a changed file.
}

// reopenFile opens the file again after a failed commit. It checks that the file still has the last acknowledged
// event.
func (w *batchWriter) reopenFile(ctx context.Context) error {
	w.files.Touched = nil // Forget an earlier fault, because the file may be back at its path.
	if err := w.files.InPlace(); err != nil {
		return err
	}
	if err := w.failpoint("reopen"); err != nil {
		return err
	}
	if err := w.closeFile(); errors.Is(err, disk.ErrMoved) { // The log has failed before, so ignore other errors.
		return err
	}
	w.stmts, w.conn = nil, nil
	opened, err := store.OpenAgain(ctx, w.path, w.files.DB)
	if err != nil {
		return err
	}
	if err := w.checkLastLeaf(store.Hashes{Ctx: ctx, DB: opened.DB}); err != nil {
		return errors.Join(err, opened.Close())
	}
	*w = batchWriter{path: w.path, keys: w.keys, fail: w.fail, most: w.most, book: w.book, repair: w.repair, db: opened.DB,
		files: opened.Files, tree: w.tree, last: w.last, origin: w.origin}
	return nil
}

// takeConn takes the database's one connection, if this writer does not have it yet.
func (w *batchWriter) takeConn(ctx context.Context) error {
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
	return w.setPollTimeout(ctx)
}

// mayCommit is SQLite's commit hook. SQLite calls it under the write lock, before SQLite writes to the write-ahead
// log. If the result is not 0, SQLite rolls the transaction back.
func (w *batchWriter) mayCommit() int32 {
	if w.files.Whole() != nil {
		return 1
	}
	return 0
}

// closeFile closes the statements, the connection and the file. An open statement would keep the file open in SQLite.
// If no other process has the log open, closeFile moves the write-ahead log into the database and removes the
// write-ahead log. If another program changed a file, the connection stays open until the process ends.
func (w *batchWriter) closeFile() error {
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
