package store

import (
	"context"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/fault"
)

// isOutcome is the condition that an event is an outcome, as the index of outcomes has it: written
// otherwise it would not serve.
const isOutcome = `(type = 'llm.responded' OR type = 'llm.provider_error' OR type = 'llm.outcome_unknown')`

// hasOutcome is the condition that a run of the table or subquery x has its outcome.
const hasOutcome = `EXISTS (
			SELECT 1
			FROM events
			WHERE run_id = x.run_id AND ` + isOutcome + `)`

// listed are the rows of open_runs that follow from the events. The others are somebody else's:
// a file may come from anywhere, and a run that never was must not get an outcome. CROSS: there
// are few of them and many intents.
const listed = `
		SELECT x.run_id
		FROM open_runs AS x
		CROSS JOIN events AS intent ON intent.seq = x.seq
		WHERE intent.type = 'llm.requested' AND intent.run_id = x.run_id AND NOT ` + hasOutcome

// intended are the runs without an outcome, by the events alone.
const intended = `
		SELECT x.run_id
		FROM events AS x
		WHERE x.type = 'llm.requested' AND NOT ` + hasOutcome

// OpenRuns returns the runs whose intent has no outcome yet, oldest first, whether their
// process lives or not. It takes no longer the longer the log is, and so relies on the list
// that is kept of them; what is on that list and does not follow from the events is left out.
func (r *Reader) OpenRuns(ctx context.Context) ([]event.RunID, error) {
	return r.runs(ctx, listed+` ORDER BY x.seq`)
}

// UnlistedRuns returns those that OpenRuns leaves out because they are not on its list, oldest
// first. There are none unless somebody changed the file. It looks at every intent of the log.
func (r *Reader) UnlistedRuns(ctx context.Context) ([]event.RunID, error) {
	return r.runs(ctx, intended+` AND x.run_id NOT IN (`+listed+`) ORDER BY x.seq`)
}

func (r *Reader) runs(ctx context.Context, query string) (runs []event.RunID, err error) {
	err = r.db.SelectContext(ctx, &runs, query)
	return runs, fault.Explain(err)
}
