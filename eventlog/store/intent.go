package store

import (
	"context"
	"fmt"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/fault"
)

// Intent returns the intent of the call that was made for an input; ok is false if none was. A
// second call must not hang on one structure of the file: who is not in the index of inputs is
// looked for among the runs as well, which have an index and a table of their own. That takes 0.1 s
// Conditions a million events hold 25,000 runs. Where the two differ the error wraps ErrCorrupt.
func (r *Reader) Intent(ctx context.Context, id event.InputID) (e event.Event, ok bool, err error) {
	q := event.Query{Input: id, Types: []event.Type{event.Requested}}
	e, ok, err = r.Last(ctx, q)
	if err == nil && !ok {
		if err = r.uncalled(ctx, id); err != nil {
			// Another process may have called it between the two looks: then the index has it now.
			if again, found, lerr := r.Last(ctx, q); lerr == nil && found {
				e, ok, err = again, true, nil
			}
		}
	}
	if err == nil && ok && (e.Input != id || e.Type != event.Requested || e.Leaf() != e.LeafHash) {
		err = fmt.Errorf("%w: its index of inputs leads for %q to event %d, which is another one than was written", fault.ErrCorrupt, id, e.Seq)
	}
	return e, ok && err == nil, err
}

// uncalled returns an error if a run says that the input was called.
func (r *Reader) uncalled(ctx context.Context, id event.InputID) error {
	var runs []struct {
		Run  event.RunID `db:"run_id"`
		Type event.Type
	}
	err := r.db.SelectContext(ctx, &runs, `
		SELECT run_id, type
		FROM events INDEXED BY events_one_outcome_per_run
		WHERE input_id = ?1 AND `+isOutcome+`
		UNION
		SELECT x.run_id, intent.type
		FROM open_runs AS x
		CROSS JOIN events AS intent ON intent.seq = x.seq
		WHERE intent.input_id = ?1`, string(id))
	if err != nil {
		return fault.Explain(err)
	}
	for _, run := range runs {
		if run.Type == event.ProviderError { // the agent may have failed before there was an intent
			var seq event.Seq
			err := r.db.GetContext(ctx, &seq, `
				SELECT coalesce(max(seq), 0)
				FROM events INDEXED BY events_run
				WHERE run_id = ? AND class = 'fact' AND type = 'llm.requested'`, string(run.Run))
			if err != nil {
				return fault.Explain(err)
			}
			if seq == 0 {
				continue
			}
		}
		return fmt.Errorf("%w: run %s was made for the input %q, and the index of inputs does not have it", fault.ErrCorrupt, run.Run, id)
	}
	return nil
}
