package export

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/jmoiron/sqlx"

	"github.com/perlica/perlica/eventlog/anchor"
	"github.com/perlica/perlica/eventlog/disk"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/store"
	"github.com/perlica/perlica/eventlog/tree"
)

// Import makes a new log at path from an export. It compares every payload and every event with its hash, and all of
// them with the root and the checkpoint. If something differs, the error is an *ImportError, and there is no file at
// path. The error wraps fs.ErrExist if there is already a file at path. The same holds for a file whose name would
// make it part of a log at path.
//
// Import does not verify signatures. If the export has only a part of a log, the new file can be read, but not opened
// for appending. When Import returns a nil error, the file survives a power failure. Import calls the function
// "progress" from time to time with the Seq of the current event, unless "progress" is nil.
func Import(ctx context.Context, in io.Reader, path string, progress func(seq int64)) (Summary, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return Summary{}, err
	}
	if err := vacant(path); err != nil {
		return Summary{}, err
	}
	x, err := NewReader(in)
	if err != nil {
		return Summary{}, err // no file was made yet
	}
	scratch, err := disk.NewScratch(filepath.Dir(path))
	if err != nil {
		return Summary{}, fmt.Errorf("eventlog: import: %w: %w", unwritable(err), err)
	}
	defer func() { _ = scratch.Close() }() // The file was renamed, or it is incomplete.
	tmp := scratch.Path("log.db")
	if err := importTo(ctx, tmp, x, progress); err != nil {
		var bad *ImportError
		if !errors.As(err, &bad) {
			err = fmt.Errorf("eventlog: import: %w", err)
		}
		return Summary{}, err
	}
	if err := publish(tmp, path); err != nil {
		return Summary{}, fmt.Errorf("eventlog: import: %w", err)
	}
	return Summary{
		Size: x.Header.Size, Root: x.Header.Root, Signed: x.Header.Note != "", Events: x.end.Events,
		Masked: x.masked, Pruned: x.end.Withheld - x.masked, Absent: x.end.Absent,
	}, nil
}

// vacant returns an error if there is a file at path or at a name that belongs to a log at path. SQLite would take
// the remains of an earlier log for parts of the new log.
func vacant(path string) error {
	for _, name := range []string{path, path + "-wal", path + "-journal", anchor.Path(path)} {
		_, err := os.Lstat(name)
		if err == nil {
			err = &fs.PathError{Op: "import", Path: name, Err: fs.ErrExist}
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("eventlog: %w", err)
		}
	}
	return nil
}

// unwritable explains an error that occurred while a file was made.
func unwritable(err error) error {
	if disk.IsNoSpace(err) {
		return disk.ErrFull
	}
	return disk.ErrReadOnly
}

// publish makes the finished file durable and renames it to path. It returns an error if another process has made a
// file at path.
func publish(tmp, path string) error {
	f, err := os.OpenFile(tmp, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Link(tmp, path); errors.Is(err, fs.ErrExist) {
		return cmp.Or(vacant(path), err) // The error is the same as for a file that existed before.
	} else if err != nil { // The file system has no hard links.
		if err := errors.Join(vacant(path), os.Rename(tmp, path)); err != nil {
			return err
		}
	}
	return disk.SyncDir(filepath.Dir(path))
}

// importBatch is the number of lines in one transaction. It affects only memory and speed, because a failed import is
// deleted.
const importBatch = 4096

// importer fills a new file.
type importer struct {
	db     *sqlx.DB
	tx     *sqlx.Tx
	insert *sqlx.Stmt
	names  store.Names
}

// importTo makes the file at path.
func importTo(ctx context.Context, path string, x *Reader, progress func(int64)) (err error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600) // SQLite keeps this mode.
	if err != nil {
		return fmt.Errorf("%w: %w", unwritable(err), err)
	}
	if err := f.Close(); err != nil {
		return err
	}
	// The file needs no syncs while it is filled. publish syncs all of it at the end.
	db, err := sqlx.Open("sqlite", store.DSN(path, "page_size(8192)", "journal_mode(WAL)", "synchronous(OFF)"))
	if err != nil {
		return err
	}
	db.SetMaxOpenConns(1)
	w := &importer{db: db}
	defer func() { err = errors.Join(disk.Explain(err), w.closeFile()) }()
	if err := store.Prepare(ctx, db); err != nil {
		return err
	}
	for n := 1; ; n++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		e, a, err := x.Next()
		if err == io.EOF {
			return w.finishFile(ctx, x)
		}
		if err != nil {
			return err
		}
		if err := w.beginTx(ctx); err != nil {
			return err
		}
		switch {
		case a != nil:
			err = w.insertAbsent(ctx, a)
		default:
			err = w.insertEvent(ctx, e)
		}
		if disk.IsConstraint(err) && e != nil {
			err = x.lineErrorf("event %d: there is already one %s", e.Seq, e.Type)
		}
		if err == nil && n%importBatch == 0 {
			err = w.commitTx(ctx, x)
		}
		if err != nil {
			return err
		}
		if progress != nil && n%1000 == 0 {
			progress(x.tree.Size)
		}
	}
}

// beginTx begins a transaction unless one is open.
func (w *importer) beginTx(ctx context.Context) (err error) {
	if w.tx != nil {
		return nil
	}
	if w.tx, err = w.db.BeginTxx(ctx, nil); err != nil {
		return err
	}
	w.insert, err = w.tx.PreparexContext(ctx, store.InsertOne)
	return err
}

// commitTx writes the completed nodes of the tree and commits the transaction.
func (w *importer) commitTx(ctx context.Context, x *Reader) error {
	for _, n := range x.tree.Nodes {
		if _, err := w.tx.ExecContext(ctx, `INSERT INTO nodes (level, n, hash) VALUES (?, ?, ?)`, n.Level, n.N,
			n.Hash[:]); err != nil {
			return err
		}
	}
	x.tree.Nodes = nil
	err := errors.Join(w.insert.Close(), w.tx.Commit())
	w.tx, w.insert = nil, nil
	w.names.End(err == nil)
	return err
}

// findName returns the id of a name. It adds a missing name to the file.
func (w *importer) findName(ctx context.Context, name string) (id int64, err error) {
	err = w.tx.GetContext(ctx, &id, store.FindName, name)
	if !errors.Is(err, sql.ErrNoRows) {
		return id, err
	}
	result, err := w.tx.ExecContext(ctx, store.AddName, name)
	if err != nil {
		return 0, err
	}
	return result.LastInsertId()
}

func (w *importer) insertEvent(ctx context.Context, e *event.Event) error {
	if err := w.names.Add(e, func(name string) (int64, error) { return w.findName(ctx, name) }); err != nil {
		return err
	}
	args := w.names.AppendArgs(nil, e)
	if e.Withheld != "" {
		args[len(args)-1] = nil // the payload
		if _, err := w.tx.ExecContext(ctx, `INSERT INTO withheld (seq, why) VALUES (?, ?)`, int64(e.Seq),
			e.Withheld); err != nil {
			return err
		}
	}
	if _, err := w.insert.ExecContext(ctx, args...); err != nil {
		return err
	}
	var err error
	switch e.Type.Step() {
	case event.Opens:
		_, err = w.tx.ExecContext(ctx, `INSERT INTO open_runs (run_id, seq) VALUES (?, ?)`, string(e.Run), int64(e.Seq))
	case event.Ends:
		_, err = w.tx.ExecContext(ctx, `DELETE FROM open_runs WHERE run_id = ?`, string(e.Run))
	}
	return err
}

func (w *importer) insertAbsent(ctx context.Context, a *tree.Subtree) error {
	_, err := w.tx.ExecContext(ctx, `INSERT INTO absent (seq, level, hash) VALUES (?, ?, ?)`, a.Seq, a.Level, a.Hash[:])
	return err
}

// finishFile writes the rest of the import and moves the write-ahead log into the database.
func (w *importer) finishFile(ctx context.Context, x *Reader) error {
	if err := w.beginTx(ctx); err != nil {
		return err
	}
	if h := x.Header; h.Note != "" {
		if _, err := w.tx.ExecContext(ctx, `INSERT INTO checkpoints (size, note) VALUES (?, ?)`, h.Size, h.Note); err != nil {
			return err
		}
	}
	if err := w.commitTx(ctx, x); err != nil {
		return err
	}
	var busy, frames, moved int
	err := w.db.QueryRowxContext(ctx, `PRAGMA wal_checkpoint(TRUNCATE)`).Scan(&busy, &frames, &moved)
	if err == nil && busy != 0 {
		err = disk.ErrBusy // This cannot happen, because no other process knows the file.
	}
	return err
}

// closeFile rolls back an open transaction and closes the file.
func (w *importer) closeFile() error {
	if w.tx != nil {
		_ = w.tx.Rollback() // The file will be deleted.
	}
	return w.db.Close()
}
