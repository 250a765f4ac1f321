package hub

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Worker is a worker's description of itself.
type Worker struct {
	Name      string    `json:"name"`
	Origin    string    `json:"origin"` // the origin of the worker's log
	Projects  []string  `json:"projects"`
	Providers []string  `json:"providers"`
	Labels    []string  `json:"labels"`
	Slots     int       `json:"slots"`
	Heard     time.Time `json:"heard"` // by the hub's clock
}

// Claim is an input that a worker owns for ever.
type Claim struct {
	Input
	// Position is the server's position in the write-ahead log at the claim.
	Position int64
	// Text is the first part of the input's text. It is the whole text of a short input if its
	// digest matches.
	Text []byte
}

// A ForgottenError says that a server has lost claims. It has the same generation and timeline as before. But its
// position is earlier than a claim of this worker, or this claim is missing. The server is a restored copy, or it lost
// acknowledged data.
type ForgottenError struct {
	Claim       // the newest claim of the generation that the worker knows
	Have  int64 // the server's position
}

func (e *ForgottenError) Error() string {
	if e.Have >= e.Position {
		return fmt.Sprintf(
			"hub: the server lacks this worker's claim of %s: it was restored from a copy, or lost acknowledged data",
			e.ID)
	}
	return fmt.Sprintf(
		"hub: the server is at position %d of its log, and was at %d before: it was restored from a copy", e.Have,
		e.Position)
}

// Hint returns the remedy.
func (e *ForgottenError) Hint() string {
	return "to continue with this server anyway, an admin runs: perlica team adopt --even"
}

// short is the largest size of a text that is fetched with its claim, in bytes.
const short = 8 << 10

// claimColumns lists the columns that readTaken reads.
const claimColumns = `i.id, i.generation, i.sender, i.digest, i.project, i.provider, i.labels, i.worker, i.session, i.permissions, i.priority, i.not_before, i.replaces, i.attachments, i.signature`

// claimSQL is the statement of a claim. A lane is the queue of inputs with the same requirements. The server reads the
// rows of a lane and their inputs through indexes, even if the tables are large and the planner's estimates are wrong.
// The LIMIT 1 prevents a scan of all inputs. The row of the input decides its requirements and its time. The queue's
// lane and its ready flag only tell where to look, because any person with a member's password can write them.
const claimSQL = `
	WITH here AS MATERIALIZED (
		SELECT g.name, here.position::bigint AS position, coalesce(($6::jsonb -> g.name ->> 'position')::bigint, 0) AS remembered,
		       coalesce($6::jsonb -> g.name ->> 'input', '') AS mark,
		       coalesce($6::jsonb -> g.name ->> 'input', '') = ''
		       OR EXISTS (SELECT FROM perlica.claims k WHERE k.input = $6::jsonb -> g.name ->> 'input' AND k.worker = $1) AS kept
		FROM perlica.generations g, (` + here + `) here
		WHERE g.ended IS NULL AND g.system = here.system AND g.timeline = here.timeline
		  AND (SELECT max(version) FROM perlica.schema) = $7
	), next AS (
		SELECT q.input, q.priority, q.place
		FROM here, perlica.lanes l
		CROSS JOIN LATERAL (
			SELECT q.input, q.priority, q.place
			FROM perlica.queue q
			WHERE q.lane = l.lane AND q.ready
			  AND (SELECT i.generation = (SELECT name FROM here) AND coalesce(i.not_before <= now(), true)
			              AND i.project = ANY($2) AND (i.provider = '' OR i.provider = ANY($3)) AND i.labels <@ $4::text[] AND i.worker IN ('', $1)
			              AND NOT EXISTS (SELECT FROM perlica.closings s WHERE s.input = i.id AND s.kind <> 'resolved')
			       FROM perlica.inputs i
			       WHERE i.id = q.input
			       LIMIT 1)
			ORDER BY q.priority DESC, q.place
			LIMIT $5
			FOR UPDATE SKIP LOCKED
		) q
		WHERE here.position >= here.remembered AND here.kept
		  AND l.project = ANY($2) AND (l.provider = '' OR l.provider = ANY($3)) AND l.labels <@ $4::text[]
		  AND l.worker IN ('', $1)
	), taken AS (
		DELETE FROM perlica.queue q
		WHERE q.input = ANY(ARRAY(SELECT input FROM next ORDER BY priority DESC, place LIMIT $5))
		RETURNING q.input
	), claimed AS (
		INSERT INTO perlica.claims (input, worker, generation, position)
		SELECT taken.input, $1, here.name, here.position
		FROM taken, here
		ON CONFLICT DO NOTHING
		RETURNING input, position
	)
	SELECT here.name, here.position, here.remembered, here.mark, here.kept, claimed.position,
	       (SELECT p.bytes FROM perlica.payloads p WHERE p.input = i.id AND p.part = 0 AND p.piece = 0 AND length(p.bytes) <= $8), ` + claimColumns + `
	FROM here
	LEFT JOIN (claimed CROSS JOIN LATERAL (SELECT * FROM perlica.inputs i WHERE i.id = claimed.input LIMIT 1) i) ON true
	ORDER BY i.priority DESC, i.submitted`

// Claim makes the worker the owner of waiting inputs, in the order of their priority and age. The parameter "most" is
// the largest number of inputs. Claim is one transaction. After an error it is unknown whether inputs were claimed, and
// Owned returns them. The parameter "remembered" has the newest claim of each generation that this worker knows. After
// ErrNotAdopted, a *VersionError or a *ForgottenError nothing was claimed.
func (h *Hub) Claim(ctx context.Context, w Worker, most int, remembered map[string]Claim) (claims []Claim, err error) {
	type mark struct {
		Position int64  `json:"position"`
		Input    string `json:"input"`
	}
	marks := map[string]mark{}
	for generation, c := range remembered {
		marks[generation] = mark{c.Position, c.ID}
	}
	known, err := json.Marshal(marks)
	if err != nil {
		return nil, err
	}
	err = h.do(ctx, func(ctx context.Context, c *Conn) error {
		rows, err := c.query(ctx, claimSQL,
			w.Name, w.Projects, w.Providers, w.Labels, most, string(known), SchemaVersion, short)
		if err != nil {
			return err
		}
		claims, err = readTaken(rows)
		return err
	})
	if errors.Is(err, ErrNotAdopted) { // the schema may also have another version
		if _, lerr := h.Look(ctx); errors.As(lerr, new(*VersionError)) {
			err = lerr
		}
	}
	return claims, err
}

// readTaken reads the rows of claimSQL. A server that may claim returns a row even without a claim.
func readTaken(rows *rows) (claims []Claim, err error) {
	found := false
	var at int64
	var mark Claim
	var kept bool
	var position *int64
	var text []byte
	var row inputRow
	err = rows.each(append([]any{&mark.Generation, &at, &mark.Position, &mark.ID, &kept, &position, &text},
		row.fields()...), func() error {
		found = true
		if at < mark.Position || !kept {
			return &ForgottenError{mark, at}
		}
		if position != nil {
			claims = append(claims, Claim{row.input(), *position, text})
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if !found {
		return nil, ErrNotAdopted
	}
	return claims, nil
}

// inputRow is a row of the table inputs. All fields are nil if a join found no input.
type inputRow struct {
	id, generation, sender, digest, project, provider, worker, session, permissions, replaces *string
	labels                                                                                    []string
	priority                                                                                  *int
	notBefore                                                                                 *time.Time
	attachments                                                                               []Attachment
	signature                                                                                 []byte
}

// fields returns the destinations of the columns of claimColumns.
func (r *inputRow) fields() []any {
	return []any{&r.id, &r.generation, &r.sender, &r.digest, &r.project, &r.provider, &r.labels, &r.worker, &r.session,
		&r.permissions, &r.priority, &r.notBefore,
		&r.replaces, &r.attachments, &r.signature}
}

func (r *inputRow) input() Input {
	in := Input{
		ID: *r.id, Generation: *r.generation, Sender: *r.sender, Digest: *r.digest, Project: *r.project,
		Provider: *r.provider,
		Labels:   r.labels, Worker: *r.worker, Session: *r.session, Permissions: *r.permissions, Priority: *r.priority,
		Replaces: *r.replaces, Attachments: r.attachments, Signature: r.signature,
	}
	if r.notBefore != nil {
		in.NotBefore = *r.notBefore
	}
	return in
}

// Owned returns the claims of a worker without an outcome, from all generations, oldest first.
func (h *Hub) Owned(ctx context.Context, worker string) (claims []Claim, err error) {
	err = h.do(ctx, func(ctx context.Context, c *Conn) error {
		rows, err := c.query(ctx, `
			SELECT k.position, `+claimColumns+`
			FROM perlica.claims k
			JOIN perlica.inputs i ON i.id = k.input
			WHERE k.worker = $1 AND NOT k.reported
			ORDER BY k.at`, worker)
		if err != nil {
			return err
		}
		claims = nil
		var position int64
		var row inputRow
		return rows.each(append([]any{&position}, row.fields()...), func() error {
			claims = append(claims, Claim{Input: row.input(), Position: position})
			return nil
		})
	})
	return claims, err
}

// Input returns an input without its payload. ok is false if the input does not exist.
func (h *Hub) Input(ctx context.Context, id string) (in Input, ok bool, err error) {
	err = h.do(ctx, func(ctx context.Context, c *Conn) error {
		var row inputRow
		err := c.QueryRow(ctx, `
			SELECT `+claimColumns+`
			FROM perlica.inputs i
			WHERE i.id = $1`, id).Scan(row.fields()...)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		if ok = err == nil; ok {
			in = row.input()
		}
		return err
	})
	return in, ok, err
}

// ErrNoClaim says that the hub does not know a claim or a question, for example because it was restored from an earlier
// backup.
var ErrNoClaim = errors.New("hub: there is no such claim here")

// Report writes the outcome of a claim to the hub. The owner has signed the outcome, and the owner's log has it. Report
// replaces an outcome of another writer, because only the owner's counts.
func (h *Hub) Report(ctx context.Context, worker, input, outcome string, result json.RawMessage,
	signature []byte) error {
	return h.do(ctx, func(ctx context.Context, c *Conn) error {
		n, err := c.Exec(ctx, `
			WITH mine AS (
				UPDATE perlica.claims
				SET reported = true
				WHERE input = $1 AND worker = $2
				RETURNING input, worker
			), said AS (
				INSERT INTO perlica.outcomes (input, worker, outcome, result, digest, signature)
				SELECT mine.input, mine.worker, $3, $4, $5, $6
				FROM mine
				ON CONFLICT (input) DO UPDATE
				SET outcome = excluded.outcome, result = excluded.result, digest = excluded.digest, signature = excluded.signature
				WHERE outcomes.signature IS DISTINCT FROM excluded.signature
			)
			SELECT FROM mine`, input, worker, outcome, result, Hash(result), signature)
		if err == nil && n == 0 {
			return ErrNoClaim
		}
		return err
	})
}
