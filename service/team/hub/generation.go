package hub

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
)

// here is this server: its system identifier, its timeline, and its position in the write-ahead log. The
// timeline is that of the segment that is written, which changes with a promotion at once.
const here = `
	SELECT (SELECT system_identifier FROM pg_control_system()) AS system,
	       left(pg_walfile_name(pg_current_wal_insert_lsn()), 8) AS timeline,
	       pg_current_wal_insert_lsn() - '0/0'::pg_lsn AS position`

// ErrNotAdopted says that the server is not the one on which the present generation began: it was promoted, or
// restored from a backup, and may have forgotten claims.
var ErrNotAdopted error = &Fault{
	Text:   "hub: this server is not the one on which its generation began",
	Advice: "it was promoted or restored; if it is to go on, an admin says so: perlica team adopt",
}

// ErrEnded says that a generation has ended.
var ErrEnded error = &Fault{
	Text:   "hub: the generation has ended",
	Advice: "nothing was taken; submit again",
}

// errSameServer says that the present generation began on this server, as far as the server can tell.
var errSameServer error = &hintError{errors.New("hub: the generation began on this server"), "if a copy of its disk was put back nevertheless: perlica team adopt --even"}

// begin begins a generation on this server.
func begin(ctx context.Context, tx pgx.Tx, name, by string) error {
	_, err := tx.Exec(ctx, `
		INSERT INTO perlica.generations (name, system, timeline, by)
		SELECT $1, here.system, here.timeline, $2
		FROM (`+here+`) here`, name, by)
	return err
}

// Adoption says what an adoption closed.
type Adoption struct {
	Queued  int // inputs that waited, or were in no claim
	Claimed int // inputs in claims without an outcome
}

// Adopt ends the present generation and begins another one on this server. Every input without an outcome is
// closed, and none of them can be claimed again. Where the present generation began here it fails with
// an error, unless even is true: for a copy of the disk that was put back and that nothing gives away. A million inputs
// take a minute; how long it may be is the caller's to bound.
func (h *Hub) Adopt(ctx context.Context, name, by string, even bool) (done Adoption, err error) {
	err = h.Do(ctx, func(ctx context.Context, c *pgx.Conn) error {
		return pgx.BeginFunc(ctx, c, func(tx pgx.Tx) error {
			// Anyone who submits holds this row; anyone who claims holds rows of the queue, which are waited for below.
			var same bool
			err := tx.QueryRow(ctx, `
				SELECT g.system = here.system AND g.timeline = here.timeline
				FROM perlica.generations g, (`+here+`) here
				WHERE g.ended IS NULL
				FOR UPDATE OF g`).Scan(&same)
			switch {
			case err != nil:
				return err
			case same && !even:
				return errSameServer
			}
			// To a server that has not looked at it since, the table of closings is empty while it is filled, and would be read
			// for each input: the rows are matched by hashes.
			for _, sql := range []string{`
				SET LOCAL enable_nestloop = off`, `
				UPDATE perlica.generations
				SET ended = now()
				WHERE ended IS NULL`, `
				DELETE FROM perlica.queue`} {
				if _, err := tx.Exec(ctx, sql); err != nil {
					return err
				}
			}
			if err := begin(ctx, tx, name, by); err != nil {
				return err
			}
			// A statement of its own: it sees the claims that the deletion waited for.
			return tx.QueryRow(ctx, `
				WITH closed AS (
					INSERT INTO perlica.closings (input, kind, by, note)
					SELECT i.id, 'adopted', $1, 'closed by the generation ' || $2
					FROM perlica.inputs i
					WHERE NOT EXISTS (SELECT FROM perlica.outcomes o WHERE o.input = i.id)
					  AND NOT EXISTS (SELECT FROM perlica.closings c WHERE c.input = i.id AND c.kind IN ('adopted', 'withdrawn'))
					RETURNING input
				)
				SELECT count(*) FILTER (WHERE k.input IS NULL), count(*) FILTER (WHERE k.input IS NOT NULL)
				FROM closed
				LEFT JOIN perlica.claims k ON k.input = closed.input`, by, name).Scan(&done.Queued, &done.Claimed)
		})
	})
	return done, err
}
