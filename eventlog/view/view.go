// Package view keeps what follows from a log's facts in tables of a file of its own.
//
// It promises that a view is never the only place where something is known: a file that is missing,
// damaged, of another version or of another log is built anew. It writes nothing to the log.
package view

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/jmoiron/sqlx"

	"github.com/perlica/perlica/eventlog/disk"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/store"
)

// Projection defines a view: a function from facts to tables. The same facts in the
// same order must always make the same rows; it may not look at a clock or at
// anything else.
type Projection struct {
	Name    string       // for messages
	Version int          // raised whenever Schema or Apply changes; an older file is built anew
	Schema  string       // statements that create the tables
	Types   []event.Type // the facts that matter
	// Withheld has Apply called also for facts whose payload is nil; else they are passed over.
	Withheld bool
	Apply    func(ctx context.Context, tx *sqlx.Tx, e event.Event) error
}

// View is a Projection kept in a file of its own. It is never the only place where
// something is known: delete the file and it comes back.
type View struct {
	db     *sqlx.DB
	reader event.Reader
	def    Projection

	damaged bool // as the file said when its position was read last
}

// bookkeeping ties a view to the log it was made from: seq is the last event applied,
// leaf its hash. A view of which damaged is 1 was made from damaged events: the next Open builds it anew.
const bookkeeping = `
	CREATE TABLE position (
		id      INTEGER PRIMARY KEY CHECK (id = 1),
		version INTEGER NOT NULL,
		seq     INTEGER NOT NULL,
		leaf    BLOB    NOT NULL,
		damaged INTEGER NOT NULL
	) STRICT;
	INSERT INTO position (id, version, seq, leaf, damaged) VALUES (1, ?, 0, x'', 0);`

// errStale says that a view's file does not belong to this log or this version.
var errStale = errors.New("the view is stale")

// Open opens the view in the file at path, builds it if it is missing, damaged,
// from another version or from another log, and applies what the log has since gained.
// The caller must Close it, before the log.
func Open(ctx context.Context, r event.Reader, path string, def Projection) (*View, error) {
	v, err := open(ctx, r, path, def)
	ofLog := errors.As(err, new(*event.DamagedError))
	if errors.Is(err, errStale) || !ofLog && errors.Is(err, disk.ErrCorrupt) || errors.Is(err, disk.ErrForeign) {
		if rerr := Remove(path); rerr != nil {
			return nil, fmt.Errorf("eventlog: rebuild view %s: %w", def.Name, rerr)
		}
		v, err = open(ctx, r, path, def)
	}
	if err != nil {
		return nil, fmt.Errorf("eventlog: view %s: %w", def.Name, err)
	}
	return v, nil
}

// Remove deletes the files of a view, if there are any. The next Open makes them anew.
func Remove(path string) error {
	if err := disk.CheckDatabase(path); err != nil {
		return err
	}
	for _, suffix := range []string{"-wal", "-shm", "-journal", ""} {
		if err := os.Remove(path + suffix); err != nil && !errors.Is(err, disk.ErrNotExist) {
			return err
		}
	}
	return nil
}

func open(ctx context.Context, r event.Reader, path string, def Projection) (*View, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	if err := disk.CheckDatabase(path); err != nil {
		return nil, err
	}
	file, err := store.MakeFile(path)
	if err != nil {
		return nil, err
	}
	// What a view loses in a crash it reads again, so it need not sync.
	db, err := sqlx.Open("sqlite", store.DSN(path, fmt.Sprintf("busy_timeout(%d)", store.BusyTimeout.Milliseconds()), "synchronous(OFF)"))
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	v := &View{db: db, reader: r, def: def}
	if err = v.CatchUp(ctx); err == nil && v.damaged && file.Size() > 0 {
		err = errStale // the log may have been put right since
	}
	if err != nil {
		_ = db.Close() // the error that matters is the first
		return nil, disk.Explain(err)
	}
	return v, nil
}

// DB is for reading the view's tables.
func (v *View) DB() *sqlx.DB { return v.db }

// Close releases the view's file.
func (v *View) Close() error { return v.db.Close() }

// portion is how many events a view looks at in one transaction: what it has done by then is
// kept if it is interrupted, and another process gets its turn. Only tests change it.
var portion event.Seq = 100_000

// CatchUp applies what the log has gained since the view was last brought up to date. What is
// appended while it works is the next call's.
func (v *View) CatchUp(ctx context.Context) error {
	end, ok, err := v.reader.Last(ctx, event.Query{})
	if err != nil {
		return err
	}
	for {
		at, err := v.apply(ctx, end, ok)
		if err != nil || at >= end.Seq {
			return err
		}
	}
}

// apply applies the next portion of what lies before end, and returns how far the view is
// then. With ok unset the log is empty.
func (v *View) apply(ctx context.Context, end event.Event, ok bool) (event.Seq, error) {
	tx, err := v.db.BeginTxx(ctx, nil)
	if err != nil {
		return 0, err
	}
	defer func() { _ = tx.Rollback() }() // after Commit it does nothing
	at, err := v.position(ctx, tx)
	if err != nil || ok && at >= end.Seq {
		return at, err
	}
	// The position moves to the end also when nothing mattered, so that nothing is looked at
	// twice.
	if at+portion < end.Seq {
		last, ok, err := v.reader.Last(ctx, event.Query{After: at, Until: at + portion})
		if err != nil {
			return 0, err
		}
		if ok { // else so many events did not come with an import
			end = last
		}
	}
	damaged := false
	for e, err := range v.reader.Events(ctx, event.Query{After: at, Until: end.Seq, Types: v.def.Types, Class: event.Fact}) {
		if err != nil {
			return 0, err
		}
		damage := e.Damage()
		damaged = damaged || damage != nil
		if e.Payload == nil && !v.def.Withheld || damage != nil && damage.Header {
			continue
		}
		if err := v.def.Apply(ctx, tx, e); err != nil {
			return 0, fmt.Errorf("event %d (%s): %w", e.Seq, e.Type, err)
		}
	}
	if _, err := tx.ExecContext(ctx, `UPDATE position SET seq = ?, leaf = ?, damaged = max(damaged, ?) WHERE id = 1`, int64(end.Seq), end.LeafHash[:], damaged); err != nil {
		return 0, err
	}
	return end.Seq, tx.Commit()
}

// position returns the last event applied, creating the tables of a fresh file. It
// returns errStale if the file was made by another version or from another log.
func (v *View) position(ctx context.Context, tx *sqlx.Tx) (event.Seq, error) {
	var tables int
	if err := tx.GetContext(ctx, &tables, `SELECT count(*) FROM sqlite_schema`); err != nil {
		return 0, err
	}
	if tables == 0 {
		if _, err := tx.ExecContext(ctx, bookkeeping, v.def.Version); err != nil {
			return 0, err
		}
		_, err := tx.ExecContext(ctx, v.def.Schema)
		return 0, err
	}
	var version int
	var at event.Seq
	var leaf []byte
	err := tx.QueryRowxContext(ctx, `SELECT version, seq, leaf, damaged FROM position WHERE id = 1`).Scan(&version, &at, &leaf, &v.damaged)
	if err != nil || version != v.def.Version {
		return 0, errors.Join(errStale, err)
	}
	if at == 0 {
		return 0, nil
	}
	for e, err := range v.reader.Events(ctx, event.Query{After: at - 1, Until: at}) {
		if err != nil {
			return 0, err
		}
		if string(leaf) == string(e.LeafHash[:]) {
			return at, nil
		}
	}
	return 0, errStale
}

// Check looks at the file of a view without changing it and returns the last event
// that was applied. The error wraps ErrCorrupt if Open would build the file anew, and
// fs.ErrNotExist if there is none.
func Check(ctx context.Context, path string) (at event.Seq, err error) {
	path, err = filepath.Abs(path)
	if err != nil {
		return 0, err
	}
	if err := disk.CheckDatabase(path); err != nil {
		return 0, err
	}
	if info, err := os.Stat(path); err != nil {
		return 0, err
	} else if info.Size() == 0 {
		return 0, nil // Open was about to fill it
	}
	db, err := sqlx.Open("sqlite", store.ReaderDSN(path, false))
	if err != nil {
		return 0, err
	}
	defer func() { _ = db.Close() }() // read from only
	if err = store.PragmaCheck(ctx, db, `PRAGMA quick_check(1)`); err == nil {
		err = disk.Explain(db.GetContext(ctx, &at, `SELECT seq FROM position WHERE id = 1`))
	}
	switch {
	case err == nil, errors.Is(err, disk.ErrCorrupt), errors.Is(err, disk.ErrBusy), errors.Is(err, disk.ErrReadOnly):
		return at, err
	}
	return 0, fmt.Errorf("%w: %w", disk.ErrCorrupt, err)
}
