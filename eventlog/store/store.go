// Package store is the SQLite file of a log: how it is opened, its schema and settings, the files
// beside it, and reading what is committed.
//
// It promises that every connection has the settings that durability takes, that a file which is no
// log, or whose schema was changed, is refused, and that nothing is written into files that others
// removed, cut or replaced. What is appended, and when, is decided above it, in package eventlog.
package store

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"
	"golang.org/x/mod/sumdb/tlog"
	_ "modernc.org/sqlite" // the "sqlite" driver

	"github.com/perlica/perlica/eventlog/disk"
	"github.com/perlica/perlica/eventlog/event"
)

const (
	ApplicationID = 0x5065726c // "Perl", so that file(1) and doctor can tell the file
	SchemaVersion = 2

	// BusyTimeout is how long a write waits for other processes that do not get on; see patience.
	BusyTimeout = 10 * time.Second
)

// Schema is schema.sql: every byte of it is part of the format.
//
//go:embed schema.sql
var Schema string

// Settings are the pragmas that every connection to a log is opened with, and what
// SQLite answers when asked for them.
func Settings() map[string]string {
	return map[string]string{
		"journal_mode": "wal",
		"synchronous":  "2", // FULL: an acknowledged commit survives a power failure
		"busy_timeout": fmt.Sprint(BusyTimeout.Milliseconds()),
	}
}

// DSN returns the data source name for the file at path. Settings live here, not in
// statements, so that every connection of a pool has them.
func DSN(path string, params ...string) string {
	u := url.URL{Scheme: "file", Path: filepath.ToSlash(path)}
	if !strings.HasPrefix(u.Path, "/") { // C:/… on Windows
		u.Path = "/" + u.Path
	}
	q := url.Values{"_pragma": params}
	q.Set("_txlock", "immediate")
	return u.String() + "?" + q.Encode()
}

// WriterDSN opens the database at path for the one writer.
func WriterDSN(path string) string {
	return DSN(path,
		fmt.Sprintf("busy_timeout(%d)", BusyTimeout.Milliseconds()),
		// The driver carries pragmas out in alphabetical order, and the size of a page can be set
		// only before the mode: the comment makes this one the first.
		"/**/page_size(8192)",
		"journal_mode(WAL)",
		"synchronous(FULL)",
		"wal_autocheckpoint(0)",   // see batchWriter.move
		"fullfsync(1)",            // macOS; elsewhere without effect
		"checkpoint_fullfsync(1)", // likewise
	)
}

// ReaderDSN opens the database at path for reading; immutable where the system lets nothing be locked.
func ReaderDSN(path string, immutable bool) string {
	s := DSN(path, fmt.Sprintf("busy_timeout(%d)", BusyTimeout.Milliseconds()), "query_only(1)") + "&mode=ro"
	if immutable {
		s += "&immutable=1"
	}
	return s
}

// Writable is a log's file that was opened for writing.
type Writable struct {
	DB         *sqlx.DB
	Files      *Files
	Unfinished bool // runs are listed that have no outcome
	Newest     Newest
}

// Newest says which event of a log is the newest. It is zero for an empty log.
type Newest struct {
	Seq     int64
	Leaf    tlog.Hash
	Context string
}

// Close closes the connection and releases the files.
func (w *Writable) Close() error {
	defer w.Files.Release()
	return w.DB.Close()
}

// OpenWritable opens the file, creating it if need be, and brings its schema up to
// date. It refuses files that are not an event log, come from a newer version or had their
// schema changed.
func OpenWritable(ctx context.Context, path string) (*Writable, error) {
	err := disk.CheckDatabase(path)
	if err == nil {
		err = disk.CheckJournal(path)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", disk.ErrReadOnly, err)
	}
	file, err := MakeFile(path)
	if err != nil {
		return nil, err
	}
	return openAt(ctx, path, file, WriterDSN(path))
}

// OpenAgain is openWritable for a file that was at path a moment ago. If it is not, none is made:
// SQLite, which finds a new one empty, would delete the write-ahead log beside it, and with that
// what was acknowledged to the file that was moved.
func OpenAgain(ctx context.Context, path string, file os.FileInfo) (*Writable, error) {
	return openAt(ctx, path, file, WriterDSN(path)+"&mode=rw")
}

func openAt(ctx context.Context, path string, file os.FileInfo, dsn string) (*Writable, error) {
	if file.Mode().IsRegular() && Links(file) > 1 {
		return nil, &disk.LinkedError{Path: path}
	}
	left, err := syncLeftover(path+"-wal", os.O_RDWR)
	var cannot *fs.PathError
	if errors.As(err, &cannot) && cannot.Op == "open" {
		if disk.IsManyOpen(err) {
			return nil, fmt.Errorf("%w: %w", disk.ErrManyOpen, err)
		}
		return nil, fmt.Errorf("%w: %w", disk.ErrReadOnly, err)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", disk.ErrIO, err)
	}
	db, err := sqlx.Open("sqlite", dsn)
	if err != nil {
		return nil, err
	}
	// One connection: the writer's. Its prepared statements live as long as it does.
	db.SetMaxOpenConns(1)
	w := &Writable{DB: db, Files: &Files{Path: path, DB: file}}
	end := time.Now().Add(BusyTimeout)
	err = Migrate(ctx, db)
	// SQLite does not wait for its lock where it changes a fresh file's journal mode, and others
	// may be the first as well.
	for errors.Is(disk.Explain(err), disk.ErrBusy) && time.Now().Before(end) {
		time.Sleep(5 * time.Millisecond)
		err = Migrate(ctx, db)
	}
	if err == nil {
		w.Unfinished, w.Newest, err = isWhole(ctx, db)
	}
	if err == nil {
		err = w.Files.hold()
	}
	if err == nil && left {
		err = EmptyWAL(ctx, db, BusyTimeout, w.Files)
	}
	if err != nil {
		_ = w.Close() // the error that matters is the first
		return nil, disk.Explain(err)
	}
	return w, nil
}

// MakeFile makes the file if there is none and says which it is. SQLite gives the -wal and -shm
// Files the mode of the database. One that is there is not opened: closing it again would give up
// the locks that this process may have on it (POSIX locks belong to a process, not to a file
// descriptor).
func MakeFile(path string) (os.FileInfo, error) {
	if fi, err := os.Stat(path); err == nil {
		return fi, nil
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		switch {
		case disk.IsNoSpace(err):
			return nil, fmt.Errorf("%w: %w", disk.ErrFull, err)
		case disk.IsManyOpen(err):
			return nil, fmt.Errorf("%w: %w", disk.ErrManyOpen, err)
		}
		return nil, fmt.Errorf("%w: %w", disk.ErrReadOnly, err)
	}
	fi, err := f.Stat()
	return fi, errors.Join(err, f.Close())
}

// EmptyWAL moves what is in the write-ahead log into the database and empties it, if no other
// process reads or writes: what is in the database itself cannot be lost by one damaged frame,
// nor by a sync that failed once and that the system has forgotten. It is never waited for, and
// a log that cannot be emptied now is as good as before. waits is how long db waits otherwise.
// Nothing is moved where one of the files was touched: that is the error.
func EmptyWAL(ctx context.Context, db sqlx.QueryerContext, waits time.Duration, f *Files) error {
	return CheckpointWAL(ctx, db, waits, f, `PRAGMA wal_checkpoint(TRUNCATE)`)
}

// CheckpointWAL is EmptyWAL with a checkpoint of another kind, which pragma names.
func CheckpointWAL(ctx context.Context, db sqlx.QueryerContext, waits time.Duration, f *Files, pragma string) (err error) {
	do := func(sql string) bool {
		rows, err := db.QueryContext(ctx, sql)
		return err == nil && rows.Close() == nil
	}
	do(`PRAGMA busy_timeout = 0`)
	if do(`BEGIN IMMEDIATE`) {
		err = f.Whole()
		if do(`ROLLBACK`) && err == nil {
			do(pragma)
		}
	}
	do(fmt.Sprintf(`PRAGMA busy_timeout = %d`, waits.Milliseconds()))
	return err
}

// syncLeftover makes safe what a process that died left in the write-ahead log. It may have
// died before it could sync its last commit: SQLite will find that commit and show it, and a
// power failure could still take it back. A process that lives syncs what it shows itself.
// left reports whether there was anything.
func syncLeftover(wal string, flag int) (left bool, err error) {
	f, err := os.OpenFile(wal, flag, 0)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	fi, err := f.Stat()
	if err == nil && fi.Size() > 0 {
		left, err = true, f.Sync()
	}
	return left, errors.Join(err, f.Close())
}

// isWhole returns ErrPart if events of the log are absent from the file. The next event's
// place would be known, but not what was said before it: two answers to one question could
// be written, or a second call for an input. In the same query, because another costs a connection,
// unfinished reports whether runs are listed that have no outcome, and newest is the newest event.
func isWhole(ctx context.Context, db *sqlx.DB) (unfinished bool, newest Newest, err error) {
	var part bool
	var leaf []byte
	err = db.QueryRowxContext(ctx, `
		SELECT EXISTS (SELECT 1 FROM absent), EXISTS (SELECT 1 FROM open_runs),
			coalesce(seq, 0), coalesce(leaf, x''), coalesce(context_id, '')
		FROM (SELECT max(seq) AS newest FROM events) LEFT JOIN events ON seq = newest`).
		Scan(&part, &unfinished, &newest.Seq, &leaf, &newest.Context)
	copy(newest.Leaf[:], leaf)
	if err == nil && part {
		err = disk.ErrPart
	}
	return unfinished, newest, err
}

// isOutcome is the condition that an event is an outcome, as the index of outcomes has it: written
// otherwise it would not serve.
const isOutcome = `(type = 'llm.responded' OR type = 'llm.provider_error' OR type = 'llm.outcome_unknown')`

// hasOutcome is the condition that a run of the table or subquery x has its outcome.
const hasOutcome = `EXISTS (
			SELECT 1
			FROM events
			WHERE run_id = x.run_id AND ` + isOutcome + `)`

// listed are the rows of open_runs that follow from the events. The others are somebody else's:
// a file may come from anywhere, and a run that never was must not get an outcome. CROSS: there
// are few of them and many intents.
const listed = `
		SELECT x.run_id
		FROM open_runs AS x
		CROSS JOIN events AS intent ON intent.seq = x.seq
		WHERE intent.type = 'llm.requested' AND intent.run_id = x.run_id AND NOT ` + hasOutcome

// intended are the runs without an outcome, by the events alone.
const intended = `
		SELECT x.run_id
		FROM events AS x
		WHERE x.type = 'llm.requested' AND NOT ` + hasOutcome

// OpenRuns returns the runs whose intent has no outcome yet, oldest first, whether their
// process lives or not. It takes no longer the longer the log is, and so relies on the list
// that is kept of them; what is on that list and does not follow from the events is left out.
func (r *Reader) OpenRuns(ctx context.Context) ([]event.RunID, error) {
	return r.runs(ctx, listed+` ORDER BY x.seq`)
}

// UnlistedRuns returns those that OpenRuns leaves out because they are not on its list, oldest
// first. There are none unless somebody changed the file. It looks at every intent of the log.
func (r *Reader) UnlistedRuns(ctx context.Context) ([]event.RunID, error) {
	return r.runs(ctx, intended+` AND x.run_id NOT IN (`+listed+`) ORDER BY x.seq`)
}

func (r *Reader) runs(ctx context.Context, query string) (runs []event.RunID, err error) {
	err = r.db.SelectContext(ctx, &runs, query)
	return runs, disk.Explain(err)
}
