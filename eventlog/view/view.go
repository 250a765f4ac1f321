// Package view makes tables from the facts of a log and stores them in a separate file, the view.
//
// The package promises that a view is never the only place of a fact. It rebuilds the view if the file is missing,
// damaged, or of another version or log. It also rebuilds the view if another program, which does not have the view's
// key, changed the file. It writes nothing to the log.
package view

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/jmoiron/sqlx"

	"github.com/perlica/perlica/eventlog/disk"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/message"
	"github.com/perlica/perlica/eventlog/store"
	"github.com/perlica/perlica/eventlog/verify"
)

// Projection defines a view: its tables, and a function that applies a fact to them. The same facts in the same order
// must always make the same rows. The function may therefore not use a clock or other inputs.
type Projection struct {
	// Name is the name of the view in messages.
	Name string
	// Version must change when Schema or Apply changes. A file of another version is rebuilt.
	Version int
	// Schema has the statements that create the tables.
	Schema string
	// Types are the types of the facts that Apply needs.
	Types []event.Type
	// PageSize is the size of the pages of a new file in bytes. With large pages the file has few pages, so its seal is
	// compared faster. 0 means the default of SQLite.
	PageSize int
	// Withheld means that Apply is also called for facts without a payload. Otherwise these are skipped.
	Withheld bool
	Apply    func(ctx context.Context, tx *sqlx.Tx, e event.Event) error
}

// View is an open view. It is never the only place of a fact. If its file is deleted, the next Open rebuilds it.
type View struct {
	db     *sqlx.DB
	reader event.Reader
	def    Projection
	key    []byte

	// checked is the Seq of the last event with a checked header.
	checked event.Seq
	// damaged reports whether the view was made from damaged events. It has the value that was last read from the
	// file.
	damaged bool
	// sealed is SQLite's data_version at the time when the seal was last compared.
	sealed int64
}

// bookkeeping creates the table that connects a view to its log. seq is the last applied event, and leaf is its leaf
// hash. damaged is 1 if the view was made from damaged events. In that case the next Open rebuilds the view. mac is
// the seal of a view with a key. The seal is an HMAC-SHA256 of the file's pages.
const bookkeeping = `
	CREATE TABLE position (
		id      INTEGER PRIMARY KEY CHECK (id = 1),
		version INTEGER NOT NULL,
		seq     INTEGER NOT NULL,
		leaf    BLOB    NOT NULL,
		damaged INTEGER NOT NULL
	) STRICT;
	INSERT INTO position (id, version, seq, leaf, damaged) VALUES (1, ?, 0, x'', 0);
	CREATE TABLE seal (id INTEGER PRIMARY KEY CHECK (id = 1), mac BLOB NOT NULL) STRICT;
	INSERT INTO seal (id, mac) VALUES (1, x'');`

// errStale says that a view's file does not belong to this log or this version.
var errStale = errors.New("the view is stale")

var failed = message.New("view.failed", "eventlog: view %s: %s")

// Open opens the view in the file at path and applies the new events of the log. It rebuilds a view that is missing,
// damaged, changed, or of another version or log. key is a secret of the user. A file without a seal of this key is
// rebuilt. If key is nil, the file has no seal. The caller must Close the view before the log.
func Open(ctx context.Context, r event.Reader, path string, key []byte, def Projection) (*View, error) {
	v, err := open(ctx, r, path, key, def)
	ofLog := errors.As(err, new(*event.DamagedError))
	if errors.Is(err, errStale) || !ofLog && errors.Is(err, disk.ErrCorrupt) || errors.Is(err, disk.ErrForeign) {
		if rerr := Remove(path); rerr != nil {
			return nil, fmt.Errorf("eventlog: rebuild view %s: %w", def.Name, rerr)
		}
		v, err = open(ctx, r, path, key, def)
	}
	if err != nil {
		return nil, failed.With(def.Name, err)
	}
	return v, nil
}

// Remove deletes the files of a view, if they exist. The next Open makes them again.
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

func open(ctx context.Context, r event.Reader, path string, key []byte, def Projection) (*View, error) {
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
	// The file need not be synced. If a crash loses changes of a view, the view applies those events again.
	db, err := sqlx.Open("sqlite", store.DSN(path, fmt.Sprintf("busy_timeout(%d)", store.BusyTimeout.Milliseconds()),
		"synchronous(OFF)", fmt.Sprintf("page_size(%d)", def.PageSize))) // SQLite ignores the size 0
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	v := &View{db: db, reader: r, def: def, key: key}
	if err = v.CatchUp(ctx); err == nil && v.damaged && file.Size() > 0 {
		err = errStale // the log may have been repaired, so build the view again
	}
	if err != nil {
		_ = db.Close() // the first error matters
		return nil, disk.Explain(err)
	}
	return v, nil
}

// DB returns the database for reading the tables of a view without a key. It panics for a view with a key: only Read
// compares the seal with the rows that it reads.
func (v *View) DB() *sqlx.DB {
	if v.key != nil {
		panic("eventlog: a view with a key is read by Read") // an error of this program
	}
	return v.db
}

// Read applies the events that were appended to the log, and calls "read" with a transaction for reading the tables.
// The seal is compared in the same transaction. If another program changed the file, Read rebuilds the view before
// it calls "read". The transaction blocks other processes that write the view. "read" must not call methods of the
// view.
func (v *View) Read(ctx context.Context, read func(tx *sqlx.Tx) error) error {
	err := v.CatchUp(ctx)
	if err != nil {
		return err
	}
	if err = v.readTables(ctx, read); errors.Is(err, errStale) { // the file was changed just now
		if err = v.CatchUp(ctx); err == nil {
			err = v.readTables(ctx, read)
		}
	}
	if errors.Is(err, errStale) {
		return failed.With(v.def.Name, err)
	}
	return err
}

func (v *View) readTables(ctx context.Context, read func(tx *sqlx.Tx) error) error {
	tx, err := v.db.BeginTxx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // the transaction changed nothing
	if _, _, err := v.sealedPosition(ctx, tx); err != nil {
		return err
	}
	return read(tx)
}

// Close releases the view's file.
func (v *View) Close() error { return v.db.Close() }

// portion is the number of events that a view handles in one transaction. An interrupted view keeps the finished
// transactions, and other processes can work between two transactions. Only tests change it.
var portion event.Seq = 100_000

// CatchUp applies the events that were appended to the log since the last CatchUp. Events that are appended during
// the call are left for the next call. If another program changed the view, CatchUp empties the view and applies all
// events again.
func (v *View) CatchUp(ctx context.Context) error {
	end, ok, err := v.reader.Last(ctx, event.Query{})
	if err != nil {
		return err
	}
	at, err := v.applyPortion(ctx, end, ok)
	if errors.Is(err, errStale) {
		if err := v.dropTables(ctx); err != nil {
			return errors.Join(errStale, err)
		}
		at, err = v.applyPortion(ctx, end, ok)
	}
	for err == nil && at < end.Seq {
		at, err = v.applyPortion(ctx, end, ok)
	}
	return err
}

// dropTables drops all tables. The next applyPortion creates them.
func (v *View) dropTables(ctx context.Context) error {
	v.checked = 0
	tx, err := v.db.BeginTxx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // after Commit, Rollback does nothing
	// Drop virtual tables first. That also drops the tables in which they store their data.
	var drops []string
	err = tx.SelectContext(ctx, &drops, `
		SELECT 'DROP ' || type || ' IF EXISTS "' || replace(name, '"', '""') || '"'
		FROM sqlite_schema
		WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite\_%' ESCAPE '\'
		ORDER BY sql LIKE 'CREATE VIRTUAL%' DESC`)
	if err != nil {
		return err
	}
	for _, drop := range drops {
		if _, err := tx.ExecContext(ctx, drop); err != nil {
			return err
		}
	}
	return tx.Commit()
}

// mac returns the seal of the view. It is a hash of the pages of the file, because a query may read an index instead of
// its table. The page of the seal does not count, and neither do the counters that a commit writes into the header.
func (v *View) mac(ctx context.Context, tx *sqlx.Tx) ([]byte, error) {
	rows, err := tx.QueryContext(ctx, `
		SELECT pgno, data
		FROM sqlite_dbpage
		WHERE pgno <> (SELECT rootpage FROM sqlite_schema WHERE name = 'seal')
		ORDER BY pgno`)
	if err != nil {
		return nil, err
	}
	mac := hmac.New(sha256.New, v.key)
	var number [8]byte
	for err == nil && rows.Next() {
		var n int64
		var page sql.RawBytes
		err = rows.Scan(&n, &page)
		if n == 1 && len(page) >= headerSize {
			page = slices.Clone(page)
			clear(page[24:28]) // the file change counter
			clear(page[92:headerSize])
		}
		binary.BigEndian.PutUint64(number[:], uint64(n))
		_, _ = mac.Write(number[:]) // a hash does not fail
		_, _ = mac.Write(page)
	}
	return mac.Sum(nil), errors.Join(err, rows.Err(), rows.Close())
}

// headerSize is the length of a SQLite file's header. Its last 8 bytes repeat the file change counter and name the
// version of SQLite that wrote it.
const headerSize = 100

// applyPortion applies the next events, at most portion many, and returns the new position. The parameter "end" is the
// newest event of the log. ok is false if the log is empty.
func (v *View) applyPortion(ctx context.Context, end event.Event, ok bool) (event.Seq, error) {
	tx, err := v.db.BeginTxx(ctx, nil)
	if err != nil {
		return 0, err
	}
	defer func() { _ = tx.Rollback() }() // after Commit, Rollback does nothing
	at, err := v.readPosition(ctx, tx)
	if err != nil || at >= end.Seq && (ok || at > 0) { // another process may have applied later events
		return at, err
	}
	damaged, err := v.checkHeaders(ctx, at, end.Seq)
	if err != nil {
		return 0, err
	}
	// Move the position even if the view needs none of the events. Otherwise they would be read again. The position
	// moves to the end of this portion, or to the newest event.
	if at+portion < end.Seq {
		last, ok, err := v.reader.Last(ctx, event.Query{After: at, Until: at + portion})
		if err != nil {
			return 0, err
		}
		if ok { // An import may have no event in this portion. Then go on to the end of the log.
			end = last
		}
	}
	if ok { // If the log was empty, later events are left for the next call.
		if err := v.applyEvents(ctx, tx, at, end.Seq, &damaged); err != nil {
			return 0, err
		}
	}
	if _, err := tx.ExecContext(ctx, `UPDATE position SET seq = ?, leaf = ?, damaged = max(damaged, ?) WHERE id = 1`,
		int64(end.Seq), end.LeafHash[:], damaged); err != nil {
		return 0, err
	}
	if err := v.writeSeal(ctx, tx); err != nil {
		return 0, err
	}
	return end.Seq, tx.Commit()
}

// applyEvents applies the events with at < Seq <= until. It sets the field "damaged" if one of these events is
// damaged.
func (v *View) applyEvents(ctx context.Context, tx *sqlx.Tx, at, until event.Seq, damaged *bool) error {
	for e, err := range v.reader.Events(ctx, event.Query{After: at, Until: until, Types: v.def.Types,
		Class: event.Fact}) {
		if err != nil {
			return err
		}
		damage := e.Damage()
		*damaged = *damaged || damage != nil
		if e.Payload == nil && !v.def.Withheld || damage != nil && damage.Header {
			continue
		}
		if err := v.def.Apply(ctx, tx, e); err != nil {
			return fmt.Errorf("event %d (%s): %w", e.Seq, e.Type, err)
		}
	}
	return nil
}

// writeSeal writes the seal of the view's content, if the view has a key.
func (v *View) writeSeal(ctx context.Context, tx *sqlx.Tx) error {
	if v.key == nil {
		return nil
	}
	mac, err := v.mac(ctx, tx)
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, `UPDATE seal SET mac = ? WHERE id = 1`, mac)
	return err
}

// checkHeaders checks the headers of the events after one event. A changed column may have taken an event out of the
// selection of the view. If the log was opened to be shown, damage is no error.
func (v *View) checkHeaders(ctx context.Context, after, until event.Seq) (damaged bool, err error) {
	log, ok := v.reader.(*store.Reader)
	if !ok || v.checked >= until {
		return false, nil
	}
	err = verify.Headers(ctx, log, after)
	if log.ToShow() && errors.Is(err, disk.ErrCorrupt) {
		return true, nil
	}
	if err == nil {
		v.checked = until
	}
	return false, err
}

// checkSeal returns errStale if the seal of the view is wrong. It compares the seal only after another connection
// committed.
func (v *View) checkSeal(ctx context.Context, tx *sqlx.Tx) error {
	version, err := dataVersion(ctx, tx)
	if err != nil || version == v.sealed || v.key == nil {
		return err
	}
	var got []byte
	want, err := v.mac(ctx, tx)
	if err == nil {
		err = tx.GetContext(ctx, &got, `SELECT mac FROM seal WHERE id = 1`)
	}
	if err != nil || !hmac.Equal(got, want) {
		return errors.Join(errStale, err)
	}
	v.sealed = version
	return nil
}

// dataVersion returns a number that changes when another connection commits.
func dataVersion(ctx context.Context, tx *sqlx.Tx) (version int64, err error) {
	err = tx.GetContext(ctx, &version, `PRAGMA data_version`)
	return version, err
}

// readPosition returns the Seq of the last applied event. It creates the tables of a new file. It returns errStale if
// the file belongs to another version or log.
func (v *View) readPosition(ctx context.Context, tx *sqlx.Tx) (event.Seq, error) {
	var tables int
	if err := tx.GetContext(ctx, &tables, `SELECT count(*) FROM sqlite_schema`); err != nil {
		return 0, err
	}
	if tables == 0 {
		_, err := tx.ExecContext(ctx, bookkeeping, v.def.Version)
		if err == nil {
			_, err = tx.ExecContext(ctx, v.def.Schema)
		}
		if err == nil {
			v.sealed, err = dataVersion(ctx, tx)
		}
		return 0, err
	}
	at, leaf, err := v.sealedPosition(ctx, tx)
	if err != nil || at == 0 {
		return 0, err
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

// sealedPosition returns the Seq and the leaf of the last applied event. It returns errStale if the file has another
// version or a wrong seal.
func (v *View) sealedPosition(ctx context.Context, tx *sqlx.Tx) (at event.Seq, leaf []byte, err error) {
	var version int
	err = tx.QueryRowxContext(ctx, `SELECT version, seq, leaf, damaged FROM position WHERE id = 1`).
		Scan(&version, &at, &leaf, &v.damaged)
	if err != nil || version != v.def.Version {
		return 0, nil, errors.Join(errStale, err)
	}
	return at, leaf, v.checkSeal(ctx, tx)
}

// Check checks the file of a view without changing it. It returns the Seq of the last applied event. The error wraps
// ErrCorrupt if Open would rebuild the view, and fs.ErrNotExist if the file does not exist.
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
		return 0, nil // another process has made the file and not filled it yet
	}
	db, err := sqlx.Open("sqlite", store.ReaderDSN(path, false))
	if err != nil {
		return 0, err
	}
	defer func() { _ = db.Close() }() // only read
	if err = store.PragmaCheck(ctx, db, `PRAGMA quick_check(1)`); err == nil {
		err = disk.Explain(db.GetContext(ctx, &at, `SELECT seq FROM position WHERE id = 1`))
	}
	switch {
	case err == nil, errors.Is(err, disk.ErrCorrupt), errors.Is(err, disk.ErrBusy), errors.Is(err, disk.ErrReadOnly):
		return at, err
	}
	return 0, fmt.Errorf("%w: %w", disk.ErrCorrupt, err)
}
