package store

import (
	"context"
	_ "embed"
	"fmt"
	"slices"
	"strings"

	"github.com/jmoiron/sqlx"
	"golang.org/x/mod/sumdb/tlog"
	_ "modernc.org/sqlite" // the "sqlite" driver

	"github.com/perlica/perlica/eventlog/disk"
	"github.com/perlica/perlica/eventlog/tree"
)

// identify reads the kind and version of the file. Both are zero for a new file.
func identify(ctx context.Context, db *sqlx.DB) (app, version int, err error) {
	err = db.QueryRowxContext(ctx, `
		SELECT application_id, user_version
		FROM pragma_application_id, pragma_user_version`).Scan(&app, &version)
	if err != nil {
		return 0, 0, disk.Explain(err)
	}
	switch {
	case app == 0 && version == 0:
		return 0, 0, nil
	case app != ApplicationID:
		return app, version, disk.ErrForeign
	case version > SchemaVersion:
		return app, version, fmt.Errorf("%w (schema %d, this one knows %d)", disk.ErrNewer, version, SchemaVersion)
	}
	return app, version, nil
}

// Migrate makes the tables of a new file and updates those of an older one, in one transaction.
func Migrate(ctx context.Context, db *sqlx.DB) error {
	_, version, err := identify(ctx, db)
	if err != nil {
		return err
	}
	if version == SchemaVersion {
		return isOurs(ctx, db)
	}
	tx, err := db.BeginTxx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // after Commit it does nothing
	// Another process may have been faster. The write lock now shows the final version.
	if err := tx.GetContext(ctx, &version, `PRAGMA user_version`); err != nil || version == SchemaVersion {
		return err // this program made it just before
	}
	if version == 0 {
		err = create(ctx, tx)
	} else {
		err = upgrade(ctx, tx)
	}
	if err != nil {
		return err
	}
	if err := isOurs(ctx, tx); err != nil {
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
	_, err := tx.ExecContext(ctx, fmt.Sprintf("%s;\nPRAGMA application_id = %d;\nPRAGMA user_version = %d;", Schema, ApplicationID, SchemaVersion))
	return err
}

// upgrade updates a file of schema version 1. It drops obsolete parts, makes missing ones, and
// computes the nodes of the tree from the leaves.
func upgrade(ctx context.Context, tx *sqlx.Tx) error {
	if _, err := tx.ExecContext(ctx, `
		DROP TABLE tree;
		DROP TRIGGER events_are_not_updated;
		DROP INDEX events_one_outcome_per_run;`); err != nil {
		return err
	}
	var made []string
	if err := tx.SelectContext(ctx, &made, `SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL`); err != nil {
		return err
	}
	for _, sql := range Statements() {
		if slices.Contains(made, sql) {
			continue
		}
		if _, err := tx.ExecContext(ctx, sql); err != nil {
			return err
		}
	}
	if _, err := tx.ExecContext(ctx, fmt.Sprintf(`PRAGMA user_version = %d`, SchemaVersion)); err != nil {
		return err
	}
	return rebuildNodes(ctx, tx)
}

// Statements returns the statements of Schema, as SQLite keeps them.
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

// rebuildNodes fills the table of nodes from the leaves.
func rebuildNodes(ctx context.Context, tx *sqlx.Tx) error {
	rows, err := tx.QueryxContext(ctx, `SELECT leaf FROM events ORDER BY seq`)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }() // rows.Err below returns the error
	var tree tree.Range
	for rows.Next() {
		var leaf []byte
		if err := rows.Scan(&leaf); err != nil {
			return err
		}
		if len(leaf) != tlog.HashSize {
			return fmt.Errorf("%w: event %d: a hash of the wrong length", disk.ErrCorrupt, tree.Size+1)
		}
		tree.Add(tlog.Hash(leaf))
	}
	if err := rows.Err(); err != nil {
		return err
	}
	for _, n := range tree.Nodes {
		if _, err := tx.ExecContext(ctx, `INSERT INTO nodes (level, n, hash) VALUES (?, ?, ?)`, n.Level, n.N, n.Hash[:]); err != nil {
			return err
		}
	}
	return nil
}

// isOurs returns ErrCorrupt unless the tables, indexes and triggers of the file are exactly those
// of Schema. A log can come with a cloned repository. Without an index it would accept a second
// intent, and an additional trigger could answer its own questions.
func isOurs(ctx context.Context, db sqlx.QueryerContext) error {
	return changedSchema(schemaFaults(ctx, db))
}

// changedSchema returns an error that wraps ErrCorrupt and names the first fault.
func changedSchema(faults []string, err error) error {
	if err == nil && len(faults) > 0 {
		err = fmt.Errorf("%w: its schema was changed: %s", disk.ErrCorrupt, faults[0])
	}
	return err
}
