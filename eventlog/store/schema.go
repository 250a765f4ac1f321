package store

import (
	"context"
	"fmt"
	"strings"

	"github.com/jmoiron/sqlx"

	"github.com/perlica/perlica/eventlog/disk"
)

// identify returns an error unless the file is empty or a log of this version. One statement reads the mark and the
// tables, because another process may be making both.
func identify(ctx context.Context, db *sqlx.DB) (empty bool, err error) {
	var app, version, tables int
	err = db.QueryRowxContext(ctx, `
		SELECT application_id, user_version, (SELECT count(*) FROM sqlite_schema)
		FROM pragma_application_id, pragma_user_version`).Scan(&app, &version, &tables)
	switch {
	case err != nil:
		return false, disk.Explain(err)
	case app == 0 && version == 0 && tables == 0:
		return true, nil
	case app != ApplicationID:
		return false, disk.ErrForeign
	case version != SchemaVersion:
		return false, fmt.Errorf("%w (schema %d, this version reads schema %d)", disk.ErrVersion, version, SchemaVersion)
	}
	return false, nil
}

// Prepare makes the tables of a new file in one transaction, and checks the tables of an existing log.
func Prepare(ctx context.Context, db *sqlx.DB) error {
	empty, err := identify(ctx, db)
	if err != nil {
		return err
	}
	if !empty {
		return isOurs(ctx, db)
	}
	tx, err := db.BeginTxx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // After Commit this does nothing.
	// Read the version again, because another process may have just made the tables. With the write lock, this process
	// sees them.
	var version int
	if err := tx.GetContext(ctx, &version, `PRAGMA user_version`); err != nil || version == SchemaVersion {
		return err
	}
	if err := create(ctx, tx); err != nil {
		return err
	}
	return tx.Commit()
}

// create makes the tables of an empty file.
func create(ctx context.Context, tx *sqlx.Tx) error {
	var tables int
	if err := tx.GetContext(ctx, &tables, `SELECT count(*) FROM sqlite_schema`); err != nil {
		return err
	}
	if tables > 0 {
		return disk.ErrForeign
	}
	_, err := tx.ExecContext(ctx, fmt.Sprintf("%s;\nPRAGMA application_id = %d;\nPRAGMA user_version = %d;",
		Schema, ApplicationID, SchemaVersion))
	return err
}

// Statements returns the statements of Schema in the form in which SQLite stores them.
func Statements() []string {
	parts := strings.Split("\n"+Schema, "\nCREATE ")
	var list []string
	for _, p := range parts[1:] {
		sql, _, _ := strings.Cut(p, ";\n\n")
		if strings.Contains(p, "\nEND;") {
			sql, _, _ = strings.Cut(p, "\nEND;")
			sql += "\nEND"
		}
		list = append(list, "CREATE "+strings.TrimSuffix(strings.TrimSpace(sql), ";"))
	}
	return list
}

// isOurs returns ErrCorrupt unless the tables, indexes and triggers of the file are exactly those of Schema. A log
// may come with a cloned repository. Without an index, a log would accept a second intent, and an additional trigger
// could write an answer to a question.
func isOurs(ctx context.Context, db sqlx.QueryerContext) error {
	return changedSchema(schemaFaults(ctx, db))
}

// changedSchema returns an error that wraps ErrCorrupt and contains the first of the faults.
func changedSchema(faults []string, err error) error {
	if err == nil && len(faults) > 0 {
		err = fmt.Errorf("%w: its schema was changed: %s", disk.ErrCorrupt, faults[0])
	}
	return err
}
