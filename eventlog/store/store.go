// Package store opens and reads the SQLite file of a log. It knows the schema, the settings and the
// other files of the log.
//
// The package makes three promises. Every connection has the settings for durability. A file that is not a log, or that
// has a changed schema, is refused. The package writes to no file that another program removed, cut or replaced.
// Package eventlog decides when to append events.
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
	ApplicationID = 0x5065726c // "Perl"; by this number, file(1) and doctor identify the file
	SchemaVersion = 3

	// BusyTimeout is the time for which a write waits for other processes that commit nothing.
	BusyTimeout = 10 * time.Second
)

// Schema is the content of schema.sql. Every byte of it is part of the format.
//
//go:embed schema.sql
var Schema string

// Settings returns the pragmas of every connection to a log, with their values.
func Settings() map[string]string {
	return map[string]string{
		"journal_mode": "wal",
		"synchronous":  "2", // FULL: an acknowledged commit survives a power failure
		"busy_timeout": fmt.Sprint(BusyTimeout.Milliseconds()),
	}
}

// DSN returns the data source name for the file at path. It contains the settings, so every connection of a pool has
// them.
func DSN(path string, params ...string) string {
	u := url.URL{Scheme: "file", Path: filepath.ToSlash(path)}
	if !strings.HasPrefix(u.Path, "/") { // C:/… on Windows
		u.Path = "/" + u.Path
	}
	q := url.Values{"_pragma": params}
	q.Set("_txlock", "immediate")
	return u.String() + "?" + q.Encode()
}

// WriterDSN returns the data source name for the one writing connection.
func WriterDSN(path string) string {
	return DSN(path,
		fmt.Sprintf("busy_timeout(%d)", BusyTimeout.Milliseconds()),
		// The driver executes pragmas in alphabetical order, and the page size must be set before the mode. The
		// comment sorts this pragma before the others.
		"/**/page_size(8192)",
		"journal_mode(WAL)",
		"synchronous(FULL)",
		"wal_autocheckpoint(0)",   // batchWriter moves the pages itself
		"fullfsync(1)",            // for macOS; no effect elsewhere
		"checkpoint_fullfsync(1)", // for macOS; no effect elsewhere
	)
}

// ReaderDSN returns the data source name for reading. immutable is true for a file that SQLite cannot lock.
func ReaderDSN(path string, immutable bool) string {
	s := DSN(path, fmt.Sprintf("busy_timeout(%d)", BusyTimeout.Milliseconds()), "query_only(1)") + "&mode=ro"
	if immutable {
		s += "&immutable=1"
	}
	return s
}

// Writable is a log's file that was opened for writing.
type Writable struct {
	DB    *sqlx.DB
	Files *Files
	// Unfinished means that the file lists runs without an outcome.
	Unfinished bool
	Newest     Newest
}

// Newest is the newest event of a log. It is zero for an empty log.
type Newest struct {
	Seq     int64
	Leaf    tlog.Hash
	Context string
}

// Close closes the connection and then releases the files.
func (w *Writable) Close() error {
	defer w.Files.Release()
	return w.DB.Close()
}

// OpenWritable opens the file, and creates it if it does not exist. It refuses files that are not an
// event log, have another version's schema or have a changed schema.
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

// OpenAgain opens the file that was at path before, as OpenWritable does. It makes no new file. If another file is at
// path, it returns an error. SQLite would find a new file empty and delete the write-ahead log of the moved file, and
// acknowledged events would be lost.
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
	// Use one connection only, because the writer's prepared statements are valid only on their own connection.
	db.SetMaxOpenConns(1)
	w := &Writable{DB: db, Files: &Files{Path: path, DB: file}}
	end := time.Now().Add(BusyTimeout)
	err = Prepare(ctx, db)
	// SQLite does not wait for its lock while it changes the journal mode of a new file. Several processes may create
	// the log at once, so try again here.
	for errors.Is(disk.Explain(err), disk.ErrBusy) && time.Now().Before(end) {
		time.Sleep(5 * time.Millisecond)
		err = Prepare(ctx, db)
	}
	if err == nil {
		w.Unfinished, w.Newest, err = isWhole(ctx, db)
	}
	if err == nil {
		err = w.Files.openHeld()
	}
	if err == nil && left {
		err = EmptyWAL(ctx, db, BusyTimeout, w.Files)
	}
	if err != nil {
		_ = w.Close() // the first error matters
		return nil, disk.Explain(err)
	}
	return w, nil
}

// MakeFile makes the file if it does not exist, and returns its description. SQLite gives the -wal and -shm files the
// same mode. MakeFile does not open an existing file. Closing that file would release this process's locks on it,
// because POSIX locks belong to a process and not to a file descriptor.
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

// EmptyWAL moves the write-ahead log into the database and empties it, if no other process reads or writes. After that,
// a damaged frame or a failed sync cannot lose the moved pages. EmptyWAL never waits. If it cannot empty the
// write-ahead log now, nothing is lost. The parameter "waits" is the busy timeout that EmptyWAL sets for db at its end.
// If another program changed one of the files, EmptyWAL moves nothing and returns an error.
func EmptyWAL(ctx context.Context, db sqlx.QueryerContext, waits time.Duration, f *Files) error {
	return CheckpointWAL(ctx, db, waits, f, `PRAGMA wal_checkpoint(TRUNCATE)`)
}

// CheckpointWAL does the work of EmptyWAL with the SQL statement in the parameter "pragma". That statement chooses the
// kind of checkpoint.
func CheckpointWAL(ctx context.Context, db sqlx.QueryerContext, waits time.Duration, f *Files,
	pragma string) (err error) {
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

// syncLeftover syncs the write-ahead log that a dead process left. The process may have died before it synced its last
// commit. SQLite would show this commit, and a power failure could still lose it. A living process syncs its own
// commits. The result "left" reports whether the file was not empty.
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

// isWhole returns ErrPart if events are absent from the file. Without the earlier events, a question could get two
// answers, or an input a second call. The same query also returns whether the file lists runs without an outcome, and
// the newest event. That saves a second query.
func isWhole(ctx context.Context, db *sqlx.DB) (unfinished bool, newest Newest, err error) {
	var part bool
	var leaf []byte
	err = db.QueryRowxContext(ctx, `
		SELECT EXISTS (SELECT 1 FROM absent), EXISTS (SELECT 1 FROM open_runs),
			coalesce(seq, 0), coalesce(leaf, x''), coalesce(`+NameOf("context_id")+`, '')
		FROM (SELECT max(seq) AS newest FROM entries) LEFT JOIN entries ON seq = newest`).
		Scan(&part, &unfinished, &newest.Seq, &leaf, &newest.Context)
	copy(newest.Leaf[:], leaf)
	if err == nil && part {
		err = disk.ErrPart
	}
	return unfinished, newest, err
}

// IsIntent and isOutcome are the SQL conditions for an intent and for an outcome. Their texts must equal the conditions
// of the indexes. Otherwise SQLite does not use the indexes.
const (
	IsIntent  = `type = 3`
	isOutcome = `(type = 4 OR type = 5 OR type = 6)`
)

// hasOutcome is the SQL condition that the run of an intent has its outcome.
const hasOutcome = `EXISTS (
			SELECT 1
			FROM entries
			WHERE run_id = intent.run_id AND ` + isOutcome + `)`

// listed selects the runs of open_runs that have an intent and no outcome among the events. The file may come from a
// stranger, and an invented run must not get an outcome. CROSS makes SQLite begin with the listed runs, because there
// are few of them and many intents.
const listed = `
		SELECT x.run_id
		FROM open_runs AS x
		CROSS JOIN entries AS intent ON intent.seq = x.seq
		JOIN names AS run ON run.id = intent.run_id AND run.name = x.run_id
		WHERE intent.` + IsIntent + ` AND NOT ` + hasOutcome

// intended selects the runs without an outcome. It uses only the events.
const intended = `
		SELECT run.name
		FROM entries AS intent
		JOIN names AS run ON run.id = intent.run_id
		WHERE intent.` + IsIntent + ` AND NOT ` + hasOutcome

// OpenRuns returns the runs without an outcome, oldest first. Their processes may have ended or not. OpenRuns uses the
// stored list, so its time does not depend on the length of the log. It leaves out listed runs without an intent or
// with an outcome among the events.
func (r *Reader) OpenRuns(ctx context.Context) ([]event.RunID, error) {
	return r.selectRuns(ctx, listed+` ORDER BY x.seq`)
}

// UnlistedRuns returns the runs without an outcome that are not on the stored list, oldest first. Such runs exist
// only if another program changed the file. UnlistedRuns reads every intent of the log.
func (r *Reader) UnlistedRuns(ctx context.Context) ([]event.RunID, error) {
	return r.selectRuns(ctx, intended+` AND run.name NOT IN (`+listed+`) ORDER BY intent.seq`)
}

func (r *Reader) selectRuns(ctx context.Context, query string) (runs []event.RunID, err error) {
	err = r.db.SelectContext(ctx, &runs, query)
	return runs, disk.Explain(err)
}
