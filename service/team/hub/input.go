package hub

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sort"
	"strings"
	"time"
)

// These are the results of a submission.
const (
	New     = "new"
	There   = "there"   // an input with this id and this digest existed before
	Differs = "differs" // a different input with this id existed before
)

// piece is the largest size of one row of a payload, in bytes. A larger payload has several rows.
const piece = 1 << 20

// Submit writes all inputs to the hub, or none, and returns the result for each id. The inputs must belong to the
// present generation, and it must have begun on this server. Otherwise the error is ErrEnded or ErrNotAdopted, and
// nothing was written. After another error it is unknown whether the inputs were written, and Find tells.
func (h *Hub) Submit(ctx context.Context, generation string, inputs []Input) (came map[string]string, err error) {
	inputs = slices.Clone(inputs)
	// All submissions use the same order, because different orders could deadlock.
	sort.Slice(inputs, func(i, j int) bool { return inputs[i].ID < inputs[j].ID })
	cols, err := columnsOf(inputs)
	if err != nil {
		return nil, err
	}
	size := 0
	for _, b := range cols.bytes {
		size += len(b)
	}
	err = h.Carry(ctx, size, func(ctx context.Context, c *Conn) error {
		came, err = submit(ctx, c, generation, inputs, cols)
		return err
	})
	if errors.Is(err, ErrEnded) { // the server may be another one; then the error is ErrNotAdopted
		if s, lerr := h.Look(ctx); lerr == nil && s.Generation == generation && !s.Adopted {
			err = ErrNotAdopted
		}
	}
	return came, err
}

// columns holds inputs as one list for each column.
type columns struct {
	id, sender, digest, project, provider, labels, worker, session, permissions, replaces, attachments, lane []string
	priority                                                                                                 []int
	notBefore                                                                                                []*time.Time
	signature                                                                                                [][]byte
	pieceOf                                                                                                  []string
	part, piece                                                                                              []int
	bytes                                                                                                    [][]byte
	// lanes has one input of each lane. A lane is the queue of inputs with the same requirements.
	lanes []*Input
}

func columnsOf(inputs []Input) (l columns, err error) {
	lanes := map[string]bool{}
	for i := range inputs {
		in := &inputs[i]
		attachments, err := json.Marshal(append([]Attachment{}, in.Attachments...))
		if err != nil {
			return l, err
		}
		l.id, l.sender, l.digest, l.project = append(l.id, in.ID), append(l.sender, in.Sender), append(l.digest, in.Digest),
			append(l.project, in.Project)
		l.provider, l.labels = append(l.provider, in.Provider), append(l.labels, strings.Join(in.Labels, ","))
		l.worker, l.session = append(l.worker, in.Worker), append(l.session, in.Session)
		l.permissions, l.replaces = append(l.permissions, in.Permissions), append(l.replaces, in.Replaces)
		l.attachments, l.lane = append(l.attachments, string(attachments)), append(l.lane, in.Lane())
		l.priority, l.signature = append(l.priority, in.Priority), append(l.signature, in.Signature)
		var at *time.Time
		if !in.NotBefore.IsZero() {
			at = &in.NotBefore
		}
		l.notBefore = append(l.notBefore, at)
		for part, b := range in.Payload {
			for n := 0; n == 0 || len(b) > 0; n++ {
				cut := min(len(b), piece)
				l.pieceOf, l.part, l.piece, l.bytes = append(l.pieceOf, in.ID), append(l.part, part), append(l.piece, n),
					append(l.bytes, b[:cut])
				b = b[cut:]
			}
		}
		if !lanes[in.Lane()] {
			lanes[in.Lane()] = true
			l.lanes = append(l.lanes, in)
		}
	}
	slices.SortFunc(l.lanes, func(a, b *Input) int { return cmp.Compare(a.Lane(), b.Lane()) })
	return l, nil
}

// submit runs Submit as one transaction in one exchange.
func submit(ctx context.Context, c *Conn, generation string, inputs []Input, l columns) (map[string]string, error) {
	var x Exchange
	for _, in := range l.lanes {
		x.Add(`
			INSERT INTO perlica.lanes (lane, project, provider, labels, worker)
			VALUES ($1, $2, $3, $4, $5)
			ON CONFLICT DO NOTHING`, in.Lane(), in.Project, in.Provider, append([]string{}, in.Labels...), in.Worker)
	}
	came := map[string]string{}
	// The row of the generation is locked until the commit. So an adoption waits for this commit, or it came first and
	// no row is inserted.
	x.Add(`
		WITH current AS (
			SELECT g.name
			FROM perlica.generations g, (`+here+`) here
			WHERE g.ended IS NULL AND g.name = $1 AND g.system = here.system AND g.timeline = here.timeline
			FOR SHARE OF g
		)
		INSERT INTO perlica.inputs (id, generation, sender, digest, project, provider, labels, permissions, priority, not_before, replaces, attachments, signature, worker, session)
		SELECT g.id, current.name, g.sender, g.digest, g.project, g.provider, string_to_array(g.labels, ','), g.permissions, g.priority,
		       g.not_before, g.replaces, g.attachments::jsonb, g.signature, g.worker, g.session
		FROM unnest($2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[], $9::int[],
		            $10::timestamptz[], $11::text[], $12::text[], $13::bytea[], $14::text[], $15::text[])
		     AS g (id, sender, digest, project, provider, labels, permissions, priority, not_before, replaces, attachments, signature, worker, session), current
		ON CONFLICT DO NOTHING
		RETURNING id`,
		generation, l.id, l.sender, l.digest, l.project, l.provider, l.labels, l.permissions, l.priority, l.notBefore,
		l.replaces,
		l.attachments, l.signature, l.worker, l.session).
		read = func(rows *rows) error {
		ids, err := collect[string](rows)
		for _, id := range ids {
			came[id] = New
		}
		return err
	}
	// The join with xmin selects the inputs that this transaction has inserted, because an existing input has its
	// payload already.
	x.Add(`
		INSERT INTO perlica.payloads (input, part, piece, bytes)
		SELECT p.input, p.part, p.piece, p.bytes
		FROM unnest($1::text[], $2::int[], $3::int[], $4::bytea[]) AS p (input, part, piece, bytes)
		JOIN perlica.inputs i ON i.id = p.input AND i.xmin = pg_current_xact_id()::xid`, l.pieceOf, l.part, l.piece, l.bytes)
	x.Add(`
		INSERT INTO perlica.queue (input, generation, sender, lane, priority, not_before, ready)
		SELECT i.id, i.generation, i.sender, g.lane, i.priority, i.not_before, coalesce(i.not_before <= now(), true)
		FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS g (id, lane, n)
		JOIN perlica.inputs i ON i.id = g.id AND i.xmin = pg_current_xact_id()::xid
		ORDER BY g.n`, l.id, l.lane)
	x.Add(`
		SELECT id, digest
		FROM perlica.inputs
		WHERE id = ANY($1)`, l.id).read = func(rows *rows) error { return compare(rows, inputs, came) }
	if err := c.Send(ctx, x); err != nil {
		return nil, err
	}
	for _, in := range inputs {
		if came[in.ID] == "" {
			return nil, fmt.Errorf("%w: %s", ErrEnded, generation)
		}
	}
	return came, nil
}

// compare compares each existing input with the given one of the same id, and writes the result to came.
func compare(rows *rows, inputs []Input, came map[string]string) error {
	digests := map[string]string{}
	for _, in := range inputs {
		digests[in.ID] = in.Digest
	}
	var id, digest string
	return rows.each([]any{&id, &digest}, func() error {
		switch {
		case came[id] == New:
		case digests[id] == digest:
			came[id] = There
		default:
			came[id] = Differs
		}
		return nil
	})
}

// Find returns the digests of the existing inputs among ids.
func (h *Hub) Find(ctx context.Context, ids []string) (digests map[string]string, err error) {
	digests = map[string]string{}
	err = h.do(ctx, func(ctx context.Context, c *Conn) error {
		rows, err := c.query(ctx, `
			SELECT id, digest
			FROM perlica.inputs
			WHERE id = ANY($1)`, ids)
		if err != nil {
			return err
		}
		var id, digest string
		err = rows.each([]any{&id, &digest}, func() error {
			digests[id] = digest
			return nil
		})
		return err
	})
	return digests, err
}

// pieces is the number of rows of a payload that one exchange reads. A slow connection gets the time limit for these
// rows. Between two exchanges other callers can use the connection.
const pieces = 4

// Fetch returns the payload of an input: its text, then its attachments. It returns an error if the payload is larger
// than the parameter "most", in bytes.
func (h *Hub) Fetch(ctx context.Context, id string, most int) (payload [][]byte, err error) {
	for part, n, more := 0, -1, true; more; {
		err := h.Carry(ctx, pieces*piece, func(ctx context.Context, c *Conn) error {
			rows, err := c.query(ctx, `
				SELECT part, piece, bytes
				FROM perlica.payloads
				WHERE input = $1 AND (part, piece) > ($2, $3)
				ORDER BY part, piece
				LIMIT $4`, id, part, n, pieces)
			if err != nil {
				return err
			}
			var b []byte
			found := 0
			err = rows.each([]any{&part, &n, &b}, func() error {
				for len(payload) <= part && len(payload) < maxParts {
					payload = append(payload, nil)
				}
				if part >= len(payload) || part < 0 {
					return errors.New("hub: a payload of too many parts")
				}
				if most -= len(b); most < 0 {
					return errors.New("hub: a payload of too many bytes")
				}
				payload[part] = append(payload[part], b...)
				found++
				return nil
			})
			more = found == pieces
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return payload, nil
}

// maxParts limits the memory that a hostile row can cause.
const maxParts = 1000
