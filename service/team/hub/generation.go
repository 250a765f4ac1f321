package hub

import (
	"context"
	"errors"
)

// here selects this server's system identifier, timeline and position in the write-ahead log. It takes the timeline
// from the current segment, because that changes at once with a promotion.
const here = `
	SELECT (SELECT system_identifier FROM pg_control_system()) AS system,
	       left(pg_walfile_name(pg_current_wal_insert_lsn()), 8) AS timeline,
	       pg_current_wal_insert_lsn() - '0/0'::pg_lsn AS position`

// ErrNotAdopted says that the present generation did not begin on this server. The server was
// promoted or restored from a backup, and may have forgotten claims.
var ErrNotAdopted error = &Fault{
	Text:   "hub: the present generation did not begin on this server",
	Advice: "a promoted or restored server needs the consent of an admin: perlica team adopt",
}

// ErrEnded says that a generation has ended.
var ErrEnded error = &Fault{
	Text:   "hub: the generation has ended",
	Advice: "nothing was taken; submit again",
}

// errSameServer says that the present generation began on this server, as far as the server can
// tell.
var errSameServer error = &hintError{errors.New("hub: the generation began on this server"),
	"if a copy of its disk was put back nevertheless: perlica team adopt --even"}

// begin begins a generation on this server.
func begin(ctx context.Context, c *Conn, name, by string) error {
	_, err := c.Exec(ctx, `
		INSERT INTO perlica.generations (name, system, timeline, by)
		SELECT $1, here.system, here.timeline, $2
		FROM (`+here+`) here`, name, by)
	return err
}

// Adoption counts the inputs that a call of Adopt closed.
type Adoption struct {
	Queued  int // waiting inputs, and inputs without a claim
	Claimed int // claimed inputs without an outcome
}

// Adopt ends the present generation and begins another one on this server. It closes every input without an outcome,
// and none of these can be claimed again. If the present generation began here, Adopt fails unless "even" is true. A
// server on a restored copy of the disk needs "even", because it looks like the original server. A million inputs take
// about a minute. The caller limits the time.
func (h *Hub) Adopt(ctx context.Context, name, by string, even bool) (done Adoption, err error) {
	err = h.Do(ctx, func(ctx context.Context, c *Conn) error {
		return c.transact(ctx, func() error {
			// No submission runs at the same time, because each one locks this row. Running claims lock rows of the
			// queue, so the deletion below waits for them.
			var same bool
			err := c.QueryRow(ctx, `
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
			// The server's statistics say that the table of closings is empty. The server would scan the growing table
			// for each input, so it must match rows by hashes.
			for _, sql := range []string{`
				SET LOCAL enable_nestloop = off`, `
				UPDATE perlica.generations
				SET ended = now()
				WHERE ended IS NULL`, `
				DELETE FROM perlica.queue`} {
				if _, err := c.Exec(ctx, sql); err != nil {
					return err
				}
			}
			if err := begin(ctx, c, name, by); err != nil {
				return err
			}
			// This must be a separate statement, so that it sees the claims for which the deletion waited.
			return c.QueryRow(ctx, `
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
