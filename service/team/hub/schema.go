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

// migrations are the steps from nothing to the present schema: numbered, forward only, a transaction each.
//
//go:embed migrations/*.sql
var migrations embed.FS

// steps are the migrations in their order; the version of a schema is how many of them it has.
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

// ground makes the roles and the schema, where they are not there. The two roles cannot log in: those that do are
// made members of them. Roles belong to the server, and an advisory lock to a database: another database of the
// server may become a team's at the same time, so that a role or a membership appears after it was looked for.
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

// Migrate brings the schema to the version of this Perlica and returns what it was before, 0 for none. A newer one
// is a *VersionError, and is left alone. Of several that migrate at once each waits for the one before. How long a large table
// takes is the caller's to bound.
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

// migrate applies migration n, counted from 0, unless another process has.
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

// version is how many migrations the schema has.
func version(ctx context.Context, c *pgx.Conn) (n int, err error) {
	err = c.QueryRow(ctx, `
		SELECT coalesce(max(n), 0)
		FROM perlica.migrations`).Scan(&n)
	return n, err
}

// Team is what a database belongs to.
type Team struct {
	ID, Name string
	Admin    string // the verifier key of its first admin
}

// Found makes the team of a database whose schema is there, and its first generation. It does nothing, and returns
// false, if there is a team.
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

// State is what a hub is at the moment.
type State struct {
	Team
	Schema, Server int    // versions
	Generation     string // the one that has not ended
	Adopted        bool   // this server is the one on which it began
	System         int64
	Timeline       string
	Position       int64 // in the write-ahead log
	Clock          time.Time
	Login          string
	Superuser      bool // nothing holds this role back
	AdminRole      bool // it may do what an admin's role may
	Local          bool // the connection leaves this machine nowhere
	TLS            bool
	Verified       bool   // with TLS: the server's certificate was verified
	Followers      int    // standbys that follow the server now
	Commit         string // the setting synchronous_commit, of the server
	Standbys       string // the setting synchronous_standby_names
	FSync          bool
}

// Look returns what the hub is. The errors are ErrNoTeam, ErrStandby and a *VersionError.
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

// noTeam says that there is no row, or no table, because there is no team, or none that this role may see.
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
