package eventlog

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"
	_ "modernc.org/sqlite" // the "sqlite" driver
)

const (
	applicationID = 0x5065726c // "Perl", so that file(1) and doctor can tell the file
	schemaVersion = 1

	// busyTimeout is how long a write waits for other processes.
	busyTimeout = 10 * time.Second
)

//go:embed schema.sql
var schema string

// Settings are the pragmas that every connection to a log is opened with, and what
// SQLite answers when asked for them.
func Settings() map[string]string {
	return map[string]string{
		"journal_mode": "wal",
		"synchronous":  "2", // FULL: an acknowledged commit survives a power failure
		"busy_timeout": fmt.Sprint(busyTimeout.Milliseconds()),
		"foreign_keys": "1",
	}
}

// dsn returns the data source name for the file at path. Settings live here, not in
// statements, so that every connection of a pool has them.
func dsn(path string, params ...string) string {
	u := url.URL{Scheme: "file", Path: filepath.ToSlash(path)}
	if !strings.HasPrefix(u.Path, "/") { // C:/… on Windows
		u.Path = "/" + u.Path
	}
	q := url.Values{"_pragma": params}
	q.Set("_txlock", "immediate")
	return u.String() + "?" + q.Encode()
}

func writerDSN(path string) string {
	return dsn(path,
		fmt.Sprintf("busy_timeout(%d)", busyTimeout.Milliseconds()),
		"page_size(8192)",
		"journal_mode(WAL)",
		"synchronous(FULL)",
		"foreign_keys(1)",
		"wal_autocheckpoint(1000)",
		"fullfsync(1)",            // macOS; elsewhere without effect
		"checkpoint_fullfsync(1)", // likewise
	)
}

func readerDSN(path string, immutable bool) string {
	s := dsn(path, fmt.Sprintf("busy_timeout(%d)", busyTimeout.Milliseconds()), "query_only(1)") + "&mode=ro"
	if immutable {
		s += "&immutable=1"
	}
	return s
}

// openWritable opens the file, creating it if need be, and brings its schema up to
// date. It refuses files that are not an event log, come from a newer version or had their
// schema changed.
func openWritable(ctx context.Context, path string) (*sqlx.DB, os.FileInfo, error) {
	// SQLite gives the -wal and -shm files the mode of the database.
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		if isNoSpace(err) {
			return nil, nil, fmt.Errorf("%w: %w", ErrFull, err)
		}
		return nil, nil, fmt.Errorf("%w: %w", ErrReadOnly, err)
	}
	file, err := f.Stat()
	if err := errors.Join(err, f.Close()); err != nil {
		return nil, nil, err
	}
	db, err := sqlx.Open("sqlite", writerDSN(path))
	if err != nil {
		return nil, nil, err
	}
	// One connection: the writer's. Its prepared statements live as long as it does.
	db.SetMaxOpenConns(1)
	if err := migrate(ctx, db); err != nil {
		_ = db.Close() // the error that matters is the migration's
		return nil, nil, explain(err)
	}
	return db, file, nil
}

// identify reads what kind of file db is; a fresh one has neither number.
func identify(ctx context.Context, db *sqlx.DB) (app, version int, err error) {
	err = db.QueryRowxContext(ctx, `
		SELECT application_id, user_version
		FROM pragma_application_id, pragma_user_version`).Scan(&app, &version)
	if err != nil {
		return 0, 0, explain(err)
	}
	switch {
	case app == 0 && version == 0:
		return 0, 0, nil
	case app != applicationID:
		return app, version, ErrForeign
	case version > schemaVersion:
		return app, version, fmt.Errorf("%w (schema %d, this one knows %d)", ErrNewer, version, schemaVersion)
	}
	return app, version, nil
}

func migrate(ctx context.Context, db *sqlx.DB) error {
	_, version, err := identify(ctx, db)
	if err != nil {
		return err
	}
	if version == schemaVersion {
		return isOurs(ctx, db)
	}
	tx, err := db.BeginTxx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // after Commit it does nothing
	// Another process may have been first; the write lock now says who it was.
	if err := tx.GetContext(ctx, &version, `PRAGMA user_version`); err != nil || version == schemaVersion {
		return err // it was made a moment ago, by this program
	}
	var tables int
	if err := tx.GetContext(ctx, &tables, `SELECT count(*) FROM sqlite_schema`); err != nil {
		return err
	}
	if tables > 0 {
		return ErrForeign
	}
	ddl := fmt.Sprintf("%s;\nPRAGMA application_id = %d;\nPRAGMA user_version = %d;", schema, applicationID, schemaVersion)
	if _, err := tx.ExecContext(ctx, ddl); err != nil {
		return err
	}
	return tx.Commit()
}

// isOurs returns ErrCorrupt unless the file's tables, indexes and triggers are those of
// schema, to the letter. A log can come with a cloned repository: with an index less it
// would take a second intent, and with a trigger more it would answer its own questions.
func isOurs(ctx context.Context, db *sqlx.DB) error {
	var made []string
	if err := db.SelectContext(ctx, &made, `SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL`); err != nil {
		return err
	}
	for _, sql := range made {
		if !strings.Contains(schema, "\n"+sql+";\n") {
			return fmt.Errorf("%w: its schema was changed: %.60q", ErrCorrupt, sql)
		}
	}
	if want := strings.Count(schema, "\nCREATE "); len(made) != want {
		return fmt.Errorf("%w: its schema was changed: %d tables, indexes and triggers instead of %d", ErrCorrupt, len(made), want)
	}
	return nil
}
