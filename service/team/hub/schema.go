package hub

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// migrations holds the steps from nothing to the present schema. They are numbered and go only
// forward, each in one transaction.
//
// //go:embed migrations/*.sql
//
//go:embed migrations/*.sql
var migrations embed.FS

// steps returns the migrations in order. Their number is the version of the schema.
var steps = sync.OnceValues(func() (list []string, err error) {
	names, err := fs.Glob(migrations, "migrations/*.sql") // sorted by name: their numbers have four digits
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		b, err := migrations.ReadFile(name)
		if err != nil {
			return nil, err
		}
		list = append(list, string(b))
	}
	return list, nil
})

// ground makes the missing roles and the schema. The two roles cannot log in; login roles become
// their members. Roles belong to the server, and an advisory lock belongs to a database. Another
// database of the server may become a team at the same time, so a role or a membership may appear
// after the check.
const ground = `
DO $$
BEGIN
	IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'perlica_member') THEN
		BEGIN
			CREATE ROLE perlica_member NOLOGIN;
		EXCEPTION WHEN duplicate_object OR unique_violation THEN
		END;
	END IF;
	IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'perlica_admin') THEN
		BEGIN
			CREATE ROLE perlica_admin NOLOGIN IN ROLE perlica_member;
		EXCEPTION WHEN duplicate_object OR unique_violation THEN
		END;
	END IF;
	-- From PostgreSQL 16 on who makes a role may grant it, and has nothing of it.
	IF NOT pg_has_role(current_user, 'perlica_admin', 'usage') THEN
		BEGIN
			EXECUTE format('GRANT perlica_admin TO %I', current_user);
		EXCEPTION WHEN unique_violation THEN
		WHEN insufficient_privilege THEN
			RAISE insufficient_privilege USING MESSAGE = format(
				'the role perlica_admin is there, made by another role of this server, which grants it: GRANT perlica_admin, perlica_member TO %I WITH ADMIN OPTION', current_user);
		END;
	END IF;
END $$;
CREATE SCHEMA IF NOT EXISTS perlica;
GRANT USAGE ON SCHEMA perlica TO perlica_member;
CREATE TABLE IF NOT EXISTS perlica.migrations (n integer PRIMARY KEY, applied timestamptz NOT NULL DEFAULT now());
GRANT SELECT ON perlica.migrations TO perlica_member;`

// Migrate brings the schema to this Perlica's version. It returns the earlier version, or 0 for an
// empty database. A newer schema stays unchanged and is a *VersionError. Several callers migrate
// one after the other. The caller limits the time for large tables.
func (h *Hub) Migrate(ctx context.Context) (before int, err error) {
	list, err := steps()
	if err != nil {
		return 0, err
	}
	err = h.Do(ctx, func(ctx context.Context, c *pgx.Conn) error {
		if before, err = version(ctx, c); err != nil && !errors.Is(known(err), ErrNoTeam) {
			return err
		}
		if before > len(list) {
			return &VersionError{schema, before, len(list)}
		}
		for n := before; n < len(list); n++ {
			if err := pgx.BeginFunc(ctx, c, func(tx pgx.Tx) error { return migrate(ctx, tx, n, list[n]) }); err != nil {
				return fmt.Errorf("migration %d: %w", n+1, err)
			}
		}
		return nil
	})
	return before, err
}

// migrate applies migration n, counted from 0, unless another process has applied it.
func migrate(ctx context.Context, tx pgx.Tx, n int, step string) error {
	for _, sql := range []string{`SELECT pg_advisory_xact_lock(hashtext('perlica migrations'))`, ground} {
		if _, err := tx.Exec(ctx, sql, pgx.QueryExecModeSimpleProtocol); err != nil {
			return err
		}
	}
	tag, err := tx.Exec(ctx, `
		INSERT INTO perlica.migrations (n)
		VALUES ($1)
		ON CONFLICT DO NOTHING`, n+1)
	if err != nil || tag.RowsAffected() == 0 {
		return err
	}
	_, err = tx.Exec(ctx, step, pgx.QueryExecModeSimpleProtocol)
	return err
}

// version returns the number of the schema's migrations.
func version(ctx context.Context, c *pgx.Conn) (n int, err error) {
	err = c.QueryRow(ctx, `
		SELECT coalesce(max(n), 0)
		FROM perlica.migrations`).Scan(&n)
	return n, err
}

// Team identifies the team of a database.
type Team struct {
	ID, Name string
	Admin    string // the verifier key of its first admin
}

// Found makes the team and its first generation in a database with a schema. If a team exists, it
// does nothing and returns false.
func (h *Hub) Found(ctx context.Context, t Team, generation string) (made bool, err error) {
	err = h.do(ctx, func(ctx context.Context, c *pgx.Conn) error {
		return pgx.BeginFunc(ctx, c, func(tx pgx.Tx) error {
			tag, err := tx.Exec(ctx, `
				INSERT INTO perlica.team (id, name, admin)
				VALUES ($1, $2, $3)
				ON CONFLICT DO NOTHING`, t.ID, t.Name, t.Admin)
			if err != nil || tag.RowsAffected() == 0 {
				return err
			}
			made = true
			return begin(ctx, tx, generation, "")
		})
	})
	return made && err == nil, err
}

// State is the present state of a hub.
type State struct {
	Team
	Schema, Server int    // versions
	Generation     string // the present one
	Adopted        bool   // the generation began on this server
	System         int64
	Timeline       string
	Position       int64 // in the write-ahead log
	Clock          time.Time
	Login          string
	Superuser      bool // no rule restricts this role
	AdminRole      bool // the role has the rights of an admin
	Local          bool // the connection stays on this machine
	TLS            bool
	Verified       bool   // with TLS: the server's certificate was verified
	Followers      int    // standbys that follow the server now
	Commit         string // the server's setting synchronous_commit
	Standbys       string // the setting synchronous_standby_names
	FSync          bool
}

// Look returns the state of the hub. The errors are ErrNoTeam, ErrStandby and a *VersionError.
func (h *Hub) Look(ctx context.Context) (s State, err error) {
	list, err := steps()
	if err != nil {
		return s, err
	}
	err = h.do(ctx, func(ctx context.Context, c *pgx.Conn) error {
		if s.Schema, err = version(ctx, c); err != nil {
			return noTeam(err)
		}
		if s.Schema != len(list) {
			return &VersionError{schema, s.Schema, len(list)}
		}
		err := c.QueryRow(ctx, `
			SELECT t.id, t.name, t.admin, current_setting('server_version_num')::int,
			       coalesce(g.name, ''), coalesce(g.system = here.system AND g.timeline = here.timeline, false),
			       here.system, here.timeline, here.position, clock_timestamp(), current_user, r.rolsuper OR r.rolbypassrls,
			       pg_has_role(current_user, 'perlica_admin', 'usage'),
			       coalesce((SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()), false),
			       coalesce((SELECT reset_val FROM pg_settings WHERE name = 'synchronous_commit'), ''),
			       current_setting('synchronous_standby_names'), current_setting('fsync') = 'on',
			       (SELECT count(*) FROM pg_stat_replication)
			FROM (`+here+`) here
			JOIN pg_roles r ON r.rolname = current_user
			CROSS JOIN perlica.team t
			LEFT JOIN perlica.generations g ON g.ended IS NULL`).
			Scan(&s.ID, &s.Name, &s.Admin, &s.Server, &s.Generation, &s.Adopted, &s.System, &s.Timeline, &s.Position,
				&s.Clock, &s.Login, &s.Superuser, &s.AdminRole, &s.TLS, &s.Commit, &s.Standbys, &s.FSync, &s.Followers)
		s.Local = local(c.Config().Host)
		s.Verified = h.config.TLSConfig != nil && (!h.config.TLSConfig.InsecureSkipVerify || h.config.TLSConfig.VerifyPeerCertificate != nil)
		return noTeam(err)
	})
	return s, err
}

// noTeam translates the error of a missing row or table: the database has no team, or this role
// cannot see it.
func noTeam(err error) error {
	var pg *pgconn.PgError
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return ErrNoTeam
	case errors.As(err, &pg) && pg.Code == statePrivilege:
		return fmt.Errorf("%w: the role is no member of perlica_member", ErrNotAllowed)
	}
	return err
}
