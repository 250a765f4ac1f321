package hub

import (
	"context"
	"database/sql"
	_ "embed"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// SchemaVersion is the version of schema.sql.
const SchemaVersion = 1

//go:embed schema.sql
var schemaSQL string

// MakeSchema makes the tables and the roles of a team in one transaction, unless they exist. A schema of another
// version stays unchanged and is a *VersionError.
func (h *Hub) MakeSchema(ctx context.Context) error {
	return h.Do(ctx, func(ctx context.Context, c *Conn) error {
		return c.transact(ctx, func() error { return makeSchema(ctx, c) })
	})
}

func makeSchema(ctx context.Context, c *Conn) error {
	if _, err := c.Exec(ctx, `SELECT pg_advisory_xact_lock(hashtext('perlica schema'))`); err != nil {
		return err
	}
	var exists bool
	if err := c.QueryRow(ctx, `SELECT to_regclass('perlica.schema') IS NOT NULL`).Scan(&exists); err != nil {
		return err
	}
	if exists {
		return checkVersion(ctx, c)
	}
	err := c.run(ctx, schemaSQL)
	var pg *pgconn.PgError
	if errors.As(err, &pg) && pg.Code == stateDuplicate { // tables of a schema without a version
		return &VersionError{schema, 0, SchemaVersion}
	}
	if err == nil {
		_, err = c.Exec(ctx, `
			INSERT INTO perlica.schema (version)
			VALUES ($1)`, SchemaVersion)
	}
	return err
}

// checkVersion returns a *VersionError if the schema has another version.
func checkVersion(ctx context.Context, c *Conn) error {
	var n int
	err := c.QueryRow(ctx, `
		SELECT coalesce(max(version), 0)
		FROM perlica.schema`).Scan(&n)
	if err == nil && n != SchemaVersion {
		err = &VersionError{schema, n, SchemaVersion}
	}
	return err
}

// Team identifies the team of a database.
type Team struct {
	ID, Name string
	Admin    string // the verifier key of its first admin
}

// Found makes the team and its first generation in a database with a schema. If a team exists, it
// does nothing and returns false.
func (h *Hub) Found(ctx context.Context, t Team, generation string) (made bool, err error) {
	err = h.do(ctx, func(ctx context.Context, c *Conn) error {
		return c.transact(ctx, func() error {
			n, err := c.Exec(ctx, `
				INSERT INTO perlica.team (id, name, admin)
				VALUES ($1, $2, $3)
				ON CONFLICT DO NOTHING`, t.ID, t.Name, t.Admin)
			if err != nil || n == 0 {
				return err
			}
			made = true
			return begin(ctx, c, generation, "")
		})
	})
	return made && err == nil, err
}

// State is the present state of a hub.
type State struct {
	Team
	Server     int    // version
	Generation string // the present one
	Adopted    bool   // the generation began on this server
	System     int64
	Timeline   string
	Position   int64 // in the write-ahead log
	Clock      time.Time
	Login      string
	Superuser  bool // no rule restricts this role
	AdminRole  bool // the role has the rights of an admin
	Local      bool // the connection stays on this machine
	TLS        bool
	Verified   bool   // with TLS: the server's certificate was verified
	Followers  int    // standbys that follow the server now
	Commit     string // the server's setting synchronous_commit
	Standbys   string // the setting synchronous_standby_names
	FSync      bool
}

// Look returns the state of the hub. The errors are ErrNoTeam, ErrStandby and a *VersionError.
func (h *Hub) Look(ctx context.Context) (s State, err error) {
	err = h.do(ctx, func(ctx context.Context, c *Conn) error {
		if err := checkVersion(ctx, c); err != nil {
			return noTeam(err)
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
		s.Local = local(h.config.Host)
		s.Verified = h.config.TLSConfig != nil && (!h.config.TLSConfig.InsecureSkipVerify ||
			h.config.TLSConfig.VerifyPeerCertificate != nil)
		return noTeam(err)
	})
	return s, err
}

// noTeam translates the error of a missing row or table: the database has no team, or this role
// cannot see it.
func noTeam(err error) error {
	var pg *pgconn.PgError
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return ErrNoTeam
	case errors.As(err, &pg) && pg.Code == statePrivilege:
		return fmt.Errorf("%w: the role is no member of perlica_member", ErrNotAllowed)
	}
	return err
}
