package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/jmoiron/sqlx"

	"github.com/perlica/perlica/eventlog/disk"
	"github.com/perlica/perlica/eventlog/message"
)

// CheckSettings returns a *SettingError if a setting that is stored in the file differs from Settings. It returns a
// *LinkedError if the file has several names. The other settings belong to a connection, and TryWrite checks those.
func (r *Reader) CheckSettings(ctx context.Context) error {
	if fi, err := os.Stat(r.path); err == nil && Links(fi) > 1 {
		return &disk.LinkedError{Path: r.path}
	}
	if r.Immutable {
		return nil // SQLite reports the mode "delete" for every immutable file, so skip the check.
	}
	return CheckSettings(ctx, r.db, "journal_mode")
}

// CheckSettings compares the named settings of db's connection with Settings. It returns a *disk.SettingError if a
// value differs.
func CheckSettings(ctx context.Context, db *sqlx.DB, names ...string) error {
	want := Settings()
	for _, name := range names {
		var got string
		// A pragma accepts no placeholder. The names are constants of this program, so they are safe to insert.
		if err := db.GetContext(ctx, &got, `PRAGMA `+name); err != nil {
			return disk.Explain(err)
		}
		if got != want[name] {
			return &disk.SettingError{Name: name, Got: got, Want: want[name]}
		}
	}
	return nil
}

// CheckSchema lists the tables, indexes and triggers that are missing, changed or foreign. Without its triggers a log
// is no longer append-only.
func (r *Reader) CheckSchema(ctx context.Context) (faults []string, err error) {
	if _, err := identify(ctx, r.db); err != nil {
		return nil, err
	}
	return schemaFaults(ctx, r.db)
}

// RequireSchema returns an error if the schema was changed. OpenWritable returns the same error, but another program
// can change the schema of a log that is already open.
func (r *Reader) RequireSchema(ctx context.Context) error {
	if err := changedSchema(r.CheckSchema(ctx)); err != nil {
		return OpenError(r.path, err)
	}
	return nil
}

// schemaFaults compares the tables, indexes and triggers of db with Schema and describes the differences.
func schemaFaults(ctx context.Context, db sqlx.QueryerContext) (faults []string, err error) {
	var rows []struct{ Name, SQL string }
	err = sqlx.SelectContext(ctx, db, &rows, `
		SELECT type || ' ' || name AS name, sql
		FROM sqlite_schema
		WHERE sql IS NOT NULL`)
	if err != nil {
		return nil, disk.Explain(err)
	}
	want := map[string]string{}
	for _, sql := range Statements() {
		words := strings.Fields(strings.Replace(sql, "UNIQUE ", "", 1)) // the words are CREATE, the kind and the name
		want[strings.ToLower(words[1])+" "+words[2]] = sql
	}
	for _, row := range rows {
		switch sql, ours := want[row.Name]; {
		case !ours:
			faults = append(faults, "the "+row.Name+" is not Perlica's")
		case sql != row.SQL:
			faults = append(faults, "the "+row.Name+" was changed")
		}
		delete(want, row.Name)
	}
	for name := range want {
		faults = append(faults, "the "+name+" is missing")
	}
	if _, missing := want["table names"]; !missing {
		var names []string
		err := sqlx.SelectContext(ctx, db, &names, `SELECT name FROM names WHERE id < ? ORDER BY id`, len(fixed))
		if err != nil {
			return nil, disk.Explain(err)
		}
		if !slices.Equal(names, fixed) {
			faults = append(faults, "the names with the first ids were changed")
		}
	}
	slices.Sort(faults)
	return faults, nil
}

// CheckIntegrity makes SQLite check the structure of the whole file and compare each index with its table. The error
// wraps ErrCorrupt if there is damage. Verify checks the contents of the events. CheckIntegrity takes seconds for a
// million events.
func (r *Reader) CheckIntegrity(ctx context.Context) error {
	return PragmaCheck(ctx, r.db, `PRAGMA integrity_check(1)`)
}

// PragmaCheck executes a checking pragma, such as integrity_check, which must return "ok". The error wraps ErrCorrupt
// if the result differs.
func PragmaCheck(ctx context.Context, db *sqlx.DB, pragma string) error {
	var found string
	if err := db.GetContext(ctx, &found, pragma); err != nil {
		return disk.Explain(err)
	}
	if found != "ok" {
		return fmt.Errorf("%w: %s", disk.ErrCorrupt, strings.ReplaceAll(found, "\n", ": "))
	}
	return nil
}

var opening = message.New("store.opening", "eventlog: open %s: %s")

// OpenError returns the error of a log that could not be opened. If the file system is the reason, the error says so.
func OpenError(path string, err error) error { return opening.With(path, ExplainDisk(path, err)) }

// ExplainDisk replaces the error if the file system at path is read-only or has no locks. SQLite reports these two
// reasons in the same way as other reasons.
func ExplainDisk(path string, err error) error {
	switch dir := filepath.Dir(path); {
	case errors.Is(err, disk.ErrReadOnly) && isReadOnlyDisk(dir):
		return fmt.Errorf("%w: %w", disk.ErrReadOnly, syscall.EROFS)
	case errors.Is(err, disk.ErrBusy) && HasNoLocks(dir):
		return fmt.Errorf("%w: %w", disk.ErrNoLocks, syscall.ENOLCK)
	}
	return err
}
