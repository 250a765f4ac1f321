package export

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/jmoiron/sqlx"

	"github.com/perlica/perlica/eventlog/anchor"
	"github.com/perlica/perlica/eventlog/durable"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/fault"
	"github.com/perlica/perlica/eventlog/folder"
	"github.com/perlica/perlica/eventlog/store"
	"github.com/perlica/perlica/eventlog/tree"
)

// Import makes a new log at path from an export. Every payload and every event is held
// against its hash, and the whole against the root and the checkpoint's: what is wrong is
// an *ImportError, and nothing lies at path. It fails with an error that wraps fs.ErrExist
// if something lies there already, or beside it what a log would take for its own.
//
// Signatures are not verified. An export of a part of a log makes a file that can be read,
// but not be opened for appending. When Import returns a nil error the file survives a
// power failure. If progress is not nil it is called now and then with the number of the
// event that has been reached.
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
		return Summary{}, err // before anything is made
	}
	scratch, err := folder.NewScratch(filepath.Dir(path))
	if err != nil {
		return Summary{}, fmt.Errorf("eventlog: import: %w: %w", unwritable(err), err)
	}
	defer func() { _ = scratch.Close() }() // the file was moved, or is worth nothing
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

// vacant returns an error unless there is room for a log at path. What an earlier one left
// beside it would be taken for a piece of the new one.
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

// unwritable is what kind of error it is if nothing can be made in a folder.
func unwritable(err error) error {
	if fault.IsNoSpace(err) {
		return fault.ErrFull
	}
	return fault.ErrReadOnly
}

// publish makes the finished file durable and gives it its name, unless that was taken
// in the meantime.
func publish(tmp, path string) error {
	f, err := os.OpenFile(tmp, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Link(tmp, path); errors.Is(err, fs.ErrExist) {
		return cmp.Or(vacant(path), err) // as if it had been there before
	} else if err != nil { // a file system without links
		if err := errors.Join(vacant(path), os.Rename(tmp, path)); err != nil {
			return err
		}
	}
	return durable.SyncDir(filepath.Dir(path))
}

// importBatch is how many lines are written in one transaction. If it fails the file is
// dropped, so that it only matters for memory and speed.
const importBatch = 4096

// importer fills a new file.
type importer struct {
	db     *sqlx.DB
	tx     *sqlx.Tx
	insert *sqlx.Stmt
}

// importTo makes the file at path.
func importTo(ctx context.Context, path string, x *Reader, progress func(int64)) (err error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600) // SQLite keeps a file's mode
	if err != nil {
		return fmt.Errorf("%w: %w", unwritable(err), err)
	}
	if err := f.Close(); err != nil {
		return err
	}
	// Nothing of the file is relied on before all of it is synced.
	db, err := sqlx.Open("sqlite", store.DSN(path, "page_size(8192)", "journal_mode(WAL)", "synchronous(OFF)"))
	if err != nil {
		return err
	}
	db.SetMaxOpenConns(1)
	w := &importer{db: db}
	defer func() { err = errors.Join(fault.Explain(err), w.close()) }()
	if err := store.Migrate(ctx, db); err != nil {
		return err
	}
	for n := 1; ; n++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		e, a, err := x.Next()
		if err == io.EOF {
			return w.finish(ctx, x)
		}
		if err != nil {
			return err
		}
		if err := w.begin(ctx); err != nil {
			return err
		}
		switch {
		case a != nil:
			err = w.absence(ctx, a)
		default:
			err = w.event(ctx, e)
		}
		if fault.IsConstraint(err) && e != nil {
			err = x.badf("event %d: there is already one %s", e.Seq, e.Type)
		}
		if err == nil && n%importBatch == 0 {
			err = w.commit(ctx, x)
		}
		if err != nil {
			return err
		}
		if progress != nil && n%1000 == 0 {
			progress(x.tree.Size)
		}
	}
}

// begin makes sure that there is a transaction.
func (w *importer) begin(ctx context.Context) (err error) {
	if w.tx != nil {
		return nil
	}
	if w.tx, err = w.db.BeginTxx(ctx, nil); err != nil {
		return err
	}
	w.insert, err = w.tx.PreparexContext(ctx, store.InsertOne)
	return err
}

// commit writes what of the tree is complete and ends the transaction.
func (w *importer) commit(ctx context.Context, x *Reader) error {
	for _, n := range x.tree.Nodes {
		if _, err := w.tx.ExecContext(ctx, `INSERT INTO nodes (level, n, hash) VALUES (?, ?, ?)`, n.Level, n.N, n.Hash[:]); err != nil {
			return err
		}
	}
	x.tree.Nodes = nil
	err := errors.Join(w.insert.Close(), w.tx.Commit())
	w.tx, w.insert = nil, nil
	return err
}

func (w *importer) event(ctx context.Context, e *event.Event) error {
	args := store.AppendArgs(nil, e)
	if e.Withheld != "" {
		args[len(args)-1] = nil // the payload
		if _, err := w.tx.ExecContext(ctx, `INSERT INTO withheld (seq, why) VALUES (?, ?)`, int64(e.Seq), e.Withheld); err != nil {
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

func (w *importer) absence(ctx context.Context, a *tree.Subtree) error {
	_, err := w.tx.ExecContext(ctx, `INSERT INTO absent (seq, level, hash) VALUES (?, ?, ?)`, int64(a.Seq), a.Level, a.Hash[:])
	return err
}

// finish writes the rest and puts all of it into the file itself.
func (w *importer) finish(ctx context.Context, x *Reader) error {
	if err := w.begin(ctx); err != nil {
		return err
	}
	if h := x.Header; h.Note != "" {
		if _, err := w.tx.ExecContext(ctx, `INSERT INTO checkpoints (size, note) VALUES (?, ?)`, h.Size, h.Note); err != nil {
			return err
		}
	}
	if err := w.commit(ctx, x); err != nil {
		return err
	}
	var busy, frames, moved int
	err := w.db.QueryRowxContext(ctx, `PRAGMA wal_checkpoint(TRUNCATE)`).Scan(&busy, &frames, &moved)
	if err == nil && busy != 0 {
		err = fault.ErrBusy // no one else knows the file
	}
	return err
}

// close ends what is under way and closes the file.
func (w *importer) close() error {
	if w.tx != nil {
		_ = w.tx.Rollback() // the file is dropped
	}
	return w.db.Close()
}
