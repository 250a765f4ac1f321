package record

import (
	"context"
	"slices"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/store"
	"github.com/perlica/perlica/interaction"
	"github.com/perlica/perlica/kernel/filelock"
)

// Unfinished is a run with an intent but no outcome.
type Unfinished struct {
	Run   event.RunID
	Input event.InputID
	Alive bool // true if a process still holds the run's lock
}

// ListUnfinished returns the runs without an outcome, oldest first. It changes nothing.
func ListUnfinished(ctx context.Context, log *store.Reader, locks string) ([]Unfinished, error) {
	ids, err := log.OpenRuns(ctx)
	if err != nil {
		return nil, err
	}
	unlisted, err := log.UnlistedRuns(ctx)
	if err != nil {
		return nil, err
	}
	return listUnfinished(ctx, log, locks, append(unlisted, ids...))
}

// listUnfinished finds out for each run whether its process is still alive.
func listUnfinished(ctx context.Context, log *store.Reader, locks string, ids []event.RunID) ([]Unfinished, error) {
	var list []Unfinished
	for _, id := range ids {
		intent, _, err := log.Last(ctx, event.Query{Run: id, Types: []event.Type{event.Requested}})
		if err != nil {
			return nil, err
		}
		alive, err := filelock.Held(filelock.Run(locks, string(id)))
		if err != nil {
			return nil, err
		}
		list = append(list, Unfinished{Run: id, Input: intent.Input, Alive: alive})
	}
	return list, nil
}

// OpenFlows returns the flow runs without an end. Their questions stay open without a process.
func OpenFlows(ctx context.Context, log event.Reader) (open []event.RunID, err error) {
	for e, err := range log.Events(ctx, event.Query{Interaction: event.Flows, Types: []event.Type{event.FlowStarted,
		event.FlowFinished}}) {
		if err != nil {
			return nil, err
		}
		open = slices.DeleteFunc(open, func(run event.RunID) bool { return run == e.Run })
		if e.Type == event.FlowStarted {
			open = append(open, e.Run)
		}
	}
	return open, nil
}

// PendingQuestions returns the open questions of the running runs and of the flow runs without an end, oldest first. It
// changes nothing.
func PendingQuestions(ctx context.Context, log *store.Reader, locks string) ([]interaction.Question, error) {
	ids, err := log.OpenRuns(ctx) // this list includes every running run
	if err != nil {
		return nil, err
	}
	unfinished, err := listUnfinished(ctx, log, locks, ids)
	if err != nil {
		return nil, err
	}
	var living []event.RunID
	for _, u := range unfinished {
		if u.Alive {
			living = append(living, u.Run)
		}
	}
	flows, err := OpenFlows(ctx, log)
	if err != nil {
		return nil, err
	}
	all, err := interaction.Pending(ctx, log, append(living, flows...))
	if err != nil {
		return nil, err
	}
	var open []interaction.Question
	for _, q := range all {
		if q.Expires.After(q.Asked) { // otherwise nobody can be asked, and the question is about to end
			open = append(open, q)
		}
	}
	return open, nil
}
