package hub

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/evidence"
)

// goneBytes is added to the size of a batch for each removed payload, in bytes. A larger batch gets a longer time
// limit, and a removal takes time, too.
const goneBytes = 64

var (
	// ErrOtherLog says that the worker's name belongs to another log, or the log to another name.
	ErrOtherLog error = &Fault{
		Text:   "hub: the worker's name belongs to another log",
		Advice: "a name belongs to one log for ever: join under another name; see 'Copies' in docs/team.md",
	}
	// errMoved says that the end of the copy has changed, because another process wrote to it.
	errMoved = errors.New("hub: the copy has another end than before")
	// ErrNone says that no copy has this name.
	ErrNone error = &Fault{
		Text:   "hub: there is no copy of a worker of that name",
		Advice: "perlica log verify --team lists the copies",
	}
)

// Copy describes the copy of a worker's log.
type Copy struct {
	Worker     string
	Origin     string    // the log's name in its checkpoints
	Size       int64     // number of events
	Leaf       []byte    // the leaf of the last event
	Checkpoint int64     // size of the newest checkpoint
	Note       string    // the text of that checkpoint
	Cosigned   int64     // size of the newest checkpoint that a keeper cosigned
	Forked     event.Seq // an event with two versions in the log and its copy; 0 means that none is known
}

const copyColumns = `l.worker, l.origin, coalesce(e.seq, 0), e.leaf,
	coalesce(k.size, 0), coalesce(k.note, ''),
	coalesce((SELECT max(size) FROM perlica.cosignatures c WHERE c.worker = l.worker), 0), coalesce(l.forked, 0)
FROM perlica.logs l
LEFT JOIN LATERAL (
	SELECT seq, leaf
	FROM perlica.events e
	WHERE e.worker = l.worker
	ORDER BY seq DESC
	LIMIT 1
) e ON true
LEFT JOIN LATERAL (
	SELECT size, note
	FROM perlica.checkpoints c
	WHERE c.worker = l.worker
	ORDER BY size DESC
	LIMIT 1
) k ON true`

// ListCopies returns the copies, by name.
func ListCopies(ctx context.Context, h *Hub) (list []Copy, err error) {
	err = h.Carry(ctx, 0, func(ctx context.Context, c *Conn) error {
		rows, err := c.query(ctx, `
			SELECT `+copyColumns+`
			ORDER BY l.worker`)
		if err == nil {
			list, err = collect[Copy](rows)
		}
		return err
	})
	return list, err
}

// enrol returns the copy of a worker's log. If "known" is false, it first registers the log under the worker's name.
// One name belongs to one log for ever. If the name has another log, or the log another name, the error is ErrOtherLog.
func enrol(ctx context.Context, h *Hub, worker, origin string, known bool) (found Copy, err error) {
	err = h.Carry(ctx, 0, func(ctx context.Context, c *Conn) error {
		if !known {
			_, err := c.Exec(ctx, `
				INSERT INTO perlica.logs (worker, origin)
				VALUES ($1, $2)
				ON CONFLICT DO NOTHING`, worker, origin)
			if err != nil {
				return err
			}
		}
		found, err = one(ctx, c, worker)
		if errors.Is(err, ErrNone) && !known || err == nil && found.Origin != origin {
			return ErrOtherLog // the name has another log, or the log has another name
		}
		return err
	})
	return found, err
}

func one(ctx context.Context, c *Conn, worker string) (found Copy, err error) {
	rows, err := c.query(ctx, `
		SELECT `+copyColumns+`
		WHERE l.worker = $1`, worker)
	if err == nil {
		found, err = collectOne[Copy](rows)
	}
	if errors.Is(err, sql.ErrNoRows) {
		err = fmt.Errorf("%w: %s", ErrNone, worker)
	}
	return found, err
}

// Batch is the part of a log that a worker adds to its copy at once.
type Batch struct {
	Worker string
	Size   int64 // size of the copy before the batch
	Events []event.Event

	// Gone, Inputs, Runs and Questions name content that was removed from the worker's log. Gone names payloads of
	// events, Inputs texts and attachments, Runs the texts of results, and Questions the questions with their answers.
	Gone                    []int64
	Inputs, Runs, Questions []string

	Checkpoints []evidence.Checkpoint
}

// AppendCopy adds a batch as a whole. The error is errMoved if the copy has another end than
// expected. It is ErrNotAllowed if the worker may not write the copy: it left the team, or its log
// and the copy differ. After another error it is unknown whether the batch was added.
func AppendCopy(ctx context.Context, h *Hub, s Batch) error {
	var seqs []int64
	var leaves, headers, payloads [][]byte
	bytes := 0
	for i := range s.Events {
		e := &s.Events[i]
		header := e.AppendHeader(nil)
		seqs, leaves, headers, payloads = append(seqs, int64(e.Seq)), append(leaves, e.LeafHash[:]), append(headers, header),
			append(payloads, e.Payload)
		bytes += len(header) + len(e.Payload)
	}
	err := h.Carry(ctx, bytes+goneBytes*len(s.Gone), func(ctx context.Context, c *Conn) error {
		var x Exchange
		// If two processes write after the same event, the first one wins, because the second one's rows have existing
		// keys. The division by zero fails the whole transaction if the copy has another end: a restored hub has lost
		// its end.
		x.Add(`
			SELECT 1 / (coalesce((SELECT seq FROM perlica.events WHERE worker = $1 ORDER BY seq DESC LIMIT 1), 0) = $2)::int`,
			s.Worker, s.Size)
		if len(seqs) > 0 {
			x.Add(`
				INSERT INTO perlica.events (worker, seq, leaf, header, payload)
				SELECT $1, e.seq, e.leaf, e.header, e.payload
				FROM unnest($2::bigint[], $3::bytea[], $4::bytea[], $5::bytea[]) AS e (seq, leaf, header, payload)`,
				s.Worker, seqs, leaves, headers, payloads)
		}
		if len(s.Gone) > 0 {
			prune(&x, &s)
		}
		for _, c := range s.Checkpoints {
			x.Add(`
				INSERT INTO perlica.checkpoints (worker, size, note)
				VALUES ($1, $2, $3)
				ON CONFLICT DO NOTHING`, s.Worker, c.Size, c.Note)
		}
		return c.Send(ctx, x)
	})
	var pg *pgconn.PgError
	if errors.As(err, &pg) && (pg.Code == stateUnique || pg.Code == stateDivision) {
		return errMoved
	}
	if errors.Is(err, ErrUnsure) {
		return nil // after ErrUnsure the batch is written; a promoted standby gets missing events again
	}
	return err
}

// prune removes payloads from a copy and from the hub's other tables.
func prune(x *Exchange, s *Batch) {
	x.Add(`
		UPDATE perlica.events
		SET payload = NULL
		WHERE worker = $1 AND seq = ANY($2) AND payload IS NOT NULL`, s.Worker, s.Gone)
	x.Add(`
		DELETE FROM perlica.payloads p
		USING perlica.claims k
		WHERE k.worker = $1 AND k.input = p.input AND p.input = ANY($2)`, s.Worker, s.Inputs)
	// Ids and numbers of a result stay. The agent's words are in its text, its content, its tools,
	// its warnings and its error.
	x.Add(`
		UPDATE perlica.outcomes
		SET result = (
			SELECT (coalesce(jsonb_object_agg(key, value), '{}') || '{"text": "", "pruned": true}')::json
			FROM jsonb_each(result::jsonb)
			WHERE key IN ('type', 'schema', 'run_id', 'input_id', 'session_id', 'provider', 'outcome', 'duration_ms', 'permissions', 'blocked_tool_calls',
				'calls', 'is_error'))
		WHERE worker = $1 AND result ->> 'run_id' = ANY($2)`, s.Worker, s.Runs)
	x.Add(`
		UPDATE perlica.answers a
		SET text = ''
		FROM perlica.questions q
		WHERE q.worker = $1 AND q.id = ANY($2) AND a.question = q.id AND a.text <> ''`, s.Worker, s.Questions)
	x.Add(`
		UPDATE perlica.questions
		SET question = '{}', closed = coalesce(closed, '{}') - 'answer'
		WHERE worker = $1 AND id = ANY($2)`, s.Worker, s.Questions)
}

// ForkCopy records on the hub that the worker's log and its copy have different events. The copy
// then accepts no writes, and no process of this worker may continue.
func ForkCopy(ctx context.Context, h *Hub, worker string, seq event.Seq) error {
	return h.Carry(ctx, 0, func(ctx context.Context, c *Conn) error {
		_, err := c.Exec(ctx, `
			UPDATE perlica.logs
			SET forked = $2
			WHERE worker = $1 AND forked IS NULL`, worker, int64(seq))
		return err
	})
}

// cosign adds a keeper's signature to a checkpoint. It does not replace the keeper's earlier signature.
func cosign(ctx context.Context, h *Hub, worker string, size int64, keeper, line string) error {
	return h.Carry(ctx, 0, func(ctx context.Context, c *Conn) error {
		_, err := c.Exec(ctx, `
			INSERT INTO perlica.cosignatures (worker, size, keeper, line)
			VALUES ($1, $2, $3, $4)
			ON CONFLICT DO NOTHING`, worker, size, keeper, line)
		return err
	})
}
