package hub

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"time"
)

// These are the states of an input in addition to the outcomes of a run.
const (
	Waiting   = "waiting" // the input's time has not come
	Queued    = "queued"
	Claimed   = "claimed"
	Refused   = "refused"   // the owner refused the input: no call was made
	Withdrawn = "withdrawn" // from the queue
	Adopted   = "adopted"   // closed by an adoption: the outcome is unknown
	Resolved  = "resolved"  // a person's opinion
	Lost      = "lost"      // neither queued nor claimed
)

// Status is the state of an input.
type Status struct {
	ID         string          `json:"id"`
	Generation string          `json:"generation"`
	Sender     string          `json:"sender"`
	Project    string          `json:"project"`
	Submitted  time.Time       `json:"submitted"`
	State      string          `json:"state"`              // one of the constants, or an outcome
	Worker     string          `json:"worker,omitempty"`   // its owner
	Result     json.RawMessage `json:"result,omitempty"`   // the result in an outcome
	Note       string          `json:"note,omitempty"`     // the note in a closing
	Replaces   string          `json:"replaces,omitempty"` // the id of an earlier input
	By         string          `json:"by,omitempty"`       // the member that closed the input
	Digest     string          `json:"-"`                  // the digest of an outcome's result, before it was pruned
	// Signature is the owner's signature of an outcome, or a member's signature of an opinion. It was not verified.
	Signature []byte `json:"-"`
}

// Ended reports whether the state of the input is final.
func (s Status) Ended() bool { return s.State != Queued && s.State != Waiting && s.State != Claimed }

// stateSQL computes the state of an input i from its claim k, outcome o, place in the queue q and
// closings. The owner's outcome precedes all others.
const stateSQL = `
	CASE WHEN o.input IS NOT NULL THEN o.outcome
	     WHEN s.kind IS NOT NULL THEN s.kind
	     WHEN k.input IS NOT NULL THEN 'claimed'
	     WHEN q.ready THEN 'queued'
	     WHEN q.input IS NOT NULL THEN 'waiting'
	     ELSE 'lost' END`

const statusFrom = `
	FROM perlica.inputs i
	LEFT JOIN perlica.claims k ON k.input = i.id
	LEFT JOIN perlica.outcomes o ON o.input = i.id
	LEFT JOIN perlica.queue q ON q.input = i.id
	LEFT JOIN LATERAL (
		SELECT kind, note, by, signature
		FROM perlica.closings c
		WHERE c.input = i.id
		ORDER BY kind = 'resolved' DESC, at DESC
		LIMIT 1
	) s ON true`

const statusColumns = `i.id, i.generation, i.sender, i.project, i.submitted, ` + stateSQL +
	` AS state, coalesce(k.worker, '') AS worker, o.result, coalesce(s.note, '') AS note, i.replaces, coalesce(s.by, '') AS by, coalesce(o.digest, '') AS digest,
	CASE WHEN o.input IS NULL THEN s.signature ELSE o.signature END AS signature`

// Status returns the state of an input. ok is false if the input does not exist.
func (h *Hub) Status(ctx context.Context, id string) (s Status, ok bool, err error) {
	err = h.do(ctx, func(ctx context.Context, c *Conn) error {
		rows, err := c.query(ctx, `SELECT `+statusColumns+statusFrom+` WHERE i.id = $1`, id)
		if err == nil {
			s, err = collectOne[Status](rows)
		}
		if ok = err == nil; errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		return err
	})
	return s, ok, err
}

// Inputs returns the newest inputs in a state, without their results. If state is empty, it returns inputs in any
// state. The states are the hub's unverified ones. The query takes seconds with a million inputs. The caller limits the
// time.
func (h *Hub) Inputs(ctx context.Context, state string, most int) (list []Status, err error) {
	err = h.Do(ctx, func(ctx context.Context, c *Conn) error {
		rows, err := c.query(ctx, `
			SELECT id, generation, sender, project, submitted, state, worker, NULL::json, note, replaces, by, digest, signature
			FROM (SELECT `+statusColumns+statusFrom+`) all_inputs
			WHERE $1 = '' OR state = $1
			ORDER BY submitted DESC, id DESC
			LIMIT $2`, state, most)
		if err == nil {
			list, err = collect[Status](rows)
		}
		return err
	})
	return list, err
}

// Counts returns the number of inputs of the present generation in each state. The states are the same as in the
// results of Inputs.
func (h *Hub) Counts(ctx context.Context) (counts map[string]int, err error) {
	counts = map[string]int{}
	err = h.Do(ctx, func(ctx context.Context, c *Conn) error {
		rows, err := c.query(ctx, `
			SELECT `+stateSQL+`, count(*)`+statusFrom+`
			JOIN perlica.generations g ON g.name = i.generation AND g.ended IS NULL
			GROUP BY 1`)
		if err != nil {
			return err
		}
		var state string
		var n int
		err = rows.each([]any{&state, &n}, func() error {
			counts[state] = n
			return nil
		})
		return err
	})
	return counts, err
}

// Workers returns the workers, by name, and the hub's time.
func (h *Hub) Workers(ctx context.Context) (list []Worker, now time.Time, err error) {
	err = h.do(ctx, func(ctx context.Context, c *Conn) error {
		rows, err := c.query(ctx, `
			SELECT name, origin, projects, providers, labels, slots, heard
			FROM perlica.workers
			ORDER BY name`)
		if err == nil {
			list, err = collect[Worker](rows)
		}
		if err == nil {
			err = c.QueryRow(ctx, `SELECT now()`).Scan(&now)
		}
		return err
	})
	return list, now, err
}

// Withdraw removes an input from the queue. It returns false if the input is claimed or closed.
func (h *Hub) Withdraw(ctx context.Context, input, by string) (done bool, err error) {
	err = h.do(ctx, func(ctx context.Context, c *Conn) error {
		n, err := c.Exec(ctx, `
			WITH gone AS (
				DELETE FROM perlica.queue
				WHERE input = $1
				RETURNING input
			)
			INSERT INTO perlica.closings (input, kind, by, note)
			SELECT input, 'withdrawn', $2, ''
			FROM gone`, input, by)
		done = n > 0
		return err
	})
	return done && err == nil, err
}

// Resolve writes a member's opinion about an input to the hub. It replaces the member's earlier opinion and changes
// nothing else.
func (h *Hub) Resolve(ctx context.Context, input, by, note string, signature []byte) error {
	return h.exec(ctx, `
		INSERT INTO perlica.closings (input, kind, by, note, signature)
		VALUES ($1, 'resolved', $2, $3, $4)
		ON CONFLICT (input, kind, by) DO UPDATE
		SET note = excluded.note, signature = excluded.signature, at = now()`, input, by, note, signature)
}

// Opinions returns the status of a Resolved input once for each opinion, newest first.
func (h *Hub) Opinions(ctx context.Context, s Status) (list []Status, err error) {
	err = h.do(ctx, func(ctx context.Context, c *Conn) error {
		rows, err := c.query(ctx, `
			SELECT by, note, signature
			FROM perlica.closings
			WHERE input = $1 AND kind = 'resolved'
			ORDER BY at DESC`, s.ID)
		if err != nil {
			return err
		}
		list = nil
		err = rows.each([]any{&s.By, &s.Note, &s.Signature}, func() error {
			list = append(list, s)
			return nil
		})
		return err
	})
	return list, err
}
