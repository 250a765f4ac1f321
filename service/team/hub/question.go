package hub

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
)

// PutQuestion writes a question to the hub. If the hub has it already, nothing changes.
func (h *Hub) PutQuestion(ctx context.Context, q Question) error {
	return h.exec(ctx, `
		INSERT INTO perlica.questions (id, input, worker, question)
		VALUES ($1, $2, $3, $4)
		ON CONFLICT DO NOTHING`, q.ID, q.Input, q.Worker, q.Question)
}

// CloseQuestion records the end of a question of this worker.
func (h *Hub) CloseQuestion(ctx context.Context, worker, id string, end json.RawMessage) error {
	return h.exec(ctx, `
		UPDATE perlica.questions
		SET closed = $3
		WHERE id = $1 AND worker = $2 AND closed IS NULL`, id, worker, end)
}

// CloseOthers closes the open questions of a worker that are not in the list "open", because their runs have ended.
func (h *Hub) CloseOthers(ctx context.Context, worker string, open []string, end json.RawMessage) error {
	return h.exec(ctx, `
		UPDATE perlica.questions
		SET closed = $3
		WHERE worker = $1 AND closed IS NULL AND NOT id = ANY($2)`, worker, open, end)
}

// Propose writes a member's answer to a question to the hub. It does not replace the member's first answer. The result
// "same" is false if the first answer differs from a.
func (h *Hub) Propose(ctx context.Context, a Answer) (same bool, err error) {
	err = h.do(ctx, func(ctx context.Context, c *Conn) error {
		_, err := c.Exec(ctx, `
			INSERT INTO perlica.answers (question, member, option, text, signature)
			VALUES ($1, $2, $3, $4, $5)
			ON CONFLICT DO NOTHING`, a.Question, a.Member, a.Option, a.Text, a.Signature)
		if err != nil {
			return err
		}
		return c.QueryRow(ctx, `
			SELECT option = $3 AND text = $4
			FROM perlica.answers
			WHERE question = $1 AND member = $2`, a.Question, a.Member, a.Option, a.Text).Scan(&same)
	})
	return same, err
}

// Judge records the worker's verdict on an answer. The verdict is empty if the answer counts.
func (h *Hub) Judge(ctx context.Context, question, member, verdict string) error {
	return h.exec(ctx, `
		UPDATE perlica.answers
		SET verdict = $3
		WHERE question = $1 AND member = $2 AND verdict IS NULL`, question, member, verdict)
}

// PutCancel writes a member's request to stop an input to the hub. It replaces an earlier request of this member.
func (h *Hub) PutCancel(ctx context.Context, cancel Cancel) error {
	return h.exec(ctx, `
		INSERT INTO perlica.cancels (input, member, signature)
		VALUES ($1, $2, $3)
		ON CONFLICT (input, member) DO UPDATE
		SET signature = excluded.signature`, cancel.Input, cancel.Member, cancel.Signature)
}

// exec runs a single writing statement.
func (h *Hub) exec(ctx context.Context, sql string, args ...any) error {
	return h.do(ctx, func(ctx context.Context, c *Conn) error {
		_, err := c.Exec(ctx, sql, args...)
		return err
	})
}

// Questions returns the open questions of a worker about its own inputs, oldest first. An empty
// worker or input selects all.
func (h *Hub) Questions(ctx context.Context, worker, input string) (list []Question, err error) {
	err = h.do(ctx, func(ctx context.Context, c *Conn) error {
		rows, err := c.query(ctx, `
			SELECT q.id, q.input, q.worker, q.question, q.asked
			FROM perlica.questions q
			JOIN perlica.claims c ON c.input = q.input AND c.worker = q.worker
			WHERE q.closed IS NULL AND $1 IN ('', q.worker) AND $2 IN ('', q.input)
			ORDER BY q.asked`, worker, input)
		if err == nil {
			list, err = collect[Question](rows)
		}
		return err
	})
	return list, err
}

// Verdict returns a member's answer with the worker's verdict, and the end of the question. The verdict and the end are
// nil while they are unknown. If the member gave no answer, its option and text are empty.
func (h *Hub) Verdict(ctx context.Context, question, member string) (given Answer, end json.RawMessage, err error) {
	err = h.do(ctx, func(ctx context.Context, c *Conn) error {
		given = Answer{Question: question, Member: member}
		err := c.QueryRow(ctx, `
			SELECT a.verdict, coalesce(a.option, ''), coalesce(a.text, ''), q.closed
			FROM perlica.questions q
			LEFT JOIN perlica.answers a ON a.question = q.id AND a.member = $2
			WHERE q.id = $1`, question, member).Scan(&given.Verdict, &given.Option, &given.Text, &end)
		if errors.Is(err, sql.ErrNoRows) { // the question was pruned
			return nil
		}
		return err
	})
	return given, end, err
}

// Pulse reports that a worker is alive and marks inputs as ready when their time has come. It
// returns the answers without a verdict to the worker's open questions and the requests to stop its
// inputs. It is one exchange.
func (h *Hub) Pulse(ctx context.Context, w Worker) (answers []Answer, cancels []Cancel, err error) {
	err = h.do(ctx, func(ctx context.Context, c *Conn) error {
		answers, cancels = nil, nil
		var x Exchange
		x.Add(`
			INSERT INTO perlica.workers (name, origin, projects, providers, labels, slots)
			VALUES ($1, $2, $3, $4, $5, $6)
			ON CONFLICT (name) DO UPDATE
			SET origin = excluded.origin, projects = excluded.projects, providers = excluded.providers, labels = excluded.labels,
			    slots = excluded.slots, heard = now()`, w.Name, w.Origin, w.Projects, w.Providers, w.Labels, w.Slots)
		x.Add(`
			UPDATE perlica.queue q
			SET ready = true
			FROM (
				SELECT input
				FROM perlica.queue
				WHERE NOT ready AND not_before <= now()
				ORDER BY not_before
				LIMIT 1000
				FOR UPDATE SKIP LOCKED
			) due
			WHERE q.input = due.input`)
		x.Add(`
			SELECT a.question, a.member, a.option, a.text, a.signature, a.verdict
			FROM perlica.questions q
			JOIN perlica.answers a ON a.question = q.id
			WHERE q.worker = $1 AND q.closed IS NULL AND a.verdict IS NULL
			ORDER BY a.at`, w.Name).read = func(rows *rows) (err error) {
			answers, err = collect[Answer](rows)
			return err
		}
		x.Add(`
			SELECT s.input, s.member, s.signature
			FROM perlica.claims k
			JOIN perlica.cancels s ON s.input = k.input
			WHERE k.worker = $1 AND NOT k.reported`, w.Name).read = func(rows *rows) (err error) {
			cancels, err = collect[Cancel](rows)
			return err
		}
		return c.Send(ctx, x)
	})
	return answers, cancels, err
}
