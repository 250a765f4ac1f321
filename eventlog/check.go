package eventlog

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/jmoiron/sqlx"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/fault"
	"github.com/perlica/perlica/eventlog/folder"
)

// A SettingError says that SQLite works with another setting than it was told to, or that
// a log's file was given another.
type SettingError struct{ Name, Got, Want string }

func (e *SettingError) Error() string {
	return fmt.Sprintf("eventlog: %s is %q, not %q", e.Name, e.Got, e.Want)
}

// CheckSettings returns a *SettingError if the file itself carries a setting that is not
// what Settings says, and a *LinkedError if it has several names. The other settings belong to a
// connection; TryWrite checks those.
func (r *Reader) CheckSettings(ctx context.Context) error {
	if fi, err := os.Stat(r.path); err == nil && links(fi) > 1 {
		return &LinkedError{r.path}
	}
	return checkSettings(ctx, r.db, "journal_mode")
}

func checkSettings(ctx context.Context, db *sqlx.DB, names ...string) error {
	want := Settings()
	for _, name := range names {
		var got string
		// A pragma takes no placeholder; the names are our own.
		if err := db.GetContext(ctx, &got, `PRAGMA `+name); err != nil {
			return fault.Explain(err)
		}
		if got != want[name] {
			return &SettingError{Name: name, Got: got, Want: want[name]}
		}
	}
	return nil
}

// CheckSchema returns what of the log's tables, indexes and triggers is missing, changed
// or not ours, a line each: without its triggers a log is no longer append-only.
// Of a log that an older version wrote it says nothing: Open changes its schema.
func (r *Reader) CheckSchema(ctx context.Context) (faults []string, err error) {
	if _, version, err := identify(ctx, r.db); err != nil || version < schemaVersion {
		return nil, err
	}
	fresh, err := sqlx.Open("sqlite", ":memory:")
	if err != nil {
		return nil, err
	}
	defer func() { _ = fresh.Close() }() // it was never anywhere else
	fresh.SetMaxOpenConns(1)
	if _, err := fresh.ExecContext(ctx, schema); err != nil {
		return nil, err
	}
	want, err := schemaOf(ctx, fresh)
	if err != nil {
		return nil, err
	}
	got, err := schemaOf(ctx, r.db)
	if err != nil {
		return nil, err
	}
	for name, sql := range want {
		switch found, ok := got[name]; {
		case !ok:
			faults = append(faults, "the "+name+" is missing")
		case found != sql:
			faults = append(faults, "the "+name+" was changed")
		}
	}
	for name := range got {
		if _, ok := want[name]; !ok {
			faults = append(faults, "the "+name+" is not Perlica's")
		}
	}
	slices.Sort(faults)
	return faults, nil
}

// schemaOf returns the statements that made db's tables, indexes and triggers.
func schemaOf(ctx context.Context, db *sqlx.DB) (map[string]string, error) {
	var rows []struct{ Kind, Name, SQL string }
	err := db.SelectContext(ctx, &rows, `
		SELECT type AS kind, name, sql
		FROM sqlite_schema
		WHERE sql IS NOT NULL`)
	if err != nil {
		return nil, fault.Explain(err)
	}
	made := map[string]string{}
	for _, row := range rows {
		made[row.Kind+" "+row.Name] = row.SQL
	}
	return made, nil
}

// CheckIntegrity has SQLite look through the whole file for structural damage, and hold each index
// against its table. The error wraps ErrCorrupt if there is any. Whether the events are those that
// were written is what Verify says, which looks for the same. A million events take some 5 s.
func (r *Reader) CheckIntegrity(ctx context.Context) error {
	return pragmaCheck(ctx, r.db, `PRAGMA integrity_check(1)`)
}

func pragmaCheck(ctx context.Context, db *sqlx.DB, pragma string) error {
	var found string
	if err := db.GetContext(ctx, &found, pragma); err != nil {
		return fault.Explain(err)
	}
	if found != "ok" {
		return fmt.Errorf("%w: %s", fault.ErrCorrupt, strings.ReplaceAll(found, "\n", ": "))
	}
	return nil
}

// CheckView looks at the file of a view without changing it and returns the last event
// that was applied. The error wraps ErrCorrupt if OpenView would build the file anew, and
// fs.ErrNotExist if there is none.
func CheckView(ctx context.Context, path string) (at event.Seq, err error) {
	path, err = filepath.Abs(path)
	if err != nil {
		return 0, err
	}
	if err := folder.CheckDatabase(path); err != nil {
		return 0, err
	}
	if info, err := os.Stat(path); err != nil {
		return 0, err
	} else if info.Size() == 0 {
		return 0, nil // OpenView was about to fill it
	}
	db, err := sqlx.Open("sqlite", readerDSN(path, false))
	if err != nil {
		return 0, err
	}
	defer func() { _ = db.Close() }() // read from only
	if err = pragmaCheck(ctx, db, `PRAGMA quick_check(1)`); err == nil {
		err = fault.Explain(db.GetContext(ctx, &at, `SELECT seq FROM position WHERE id = 1`))
	}
	switch {
	case err == nil, errors.Is(err, fault.ErrCorrupt), errors.Is(err, fault.ErrBusy), errors.Is(err, fault.ErrReadOnly):
		return at, err
	}
	return 0, fmt.Errorf("%w: %w", fault.ErrCorrupt, err)
}

// TryWrite makes a log in a temporary folder within dir, appends to it, asks its
// connection for the Settings, and removes it. The error says why a log in dir could not
// be written as it must be: ErrFull, ErrReadOnly, a *SettingError.
func TryWrite(ctx context.Context, dir string) (err error) {
	tmp, err := os.MkdirTemp(dir, ".perlica-try-")
	if err != nil {
		kind := fault.ErrReadOnly
		if fault.IsNoSpace(err) {
			kind = fault.ErrFull
		}
		return fmt.Errorf("%w: %w", kind, err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(tmp)) }()
	log, err := Open(ctx, filepath.Join(tmp, "eventlog.db"), Options{Context: "try"})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	w, err := openWritable(ctx, log.Path())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	if err := checkSettings(ctx, w.db, slices.Collect(maps.Keys(Settings()))...); err != nil {
		return err
	}
	_, err = log.Append(ctx, event.NewFact(event.MessageReceived, "doctor", event.Refs{}, struct{}{}))
	return err
}
