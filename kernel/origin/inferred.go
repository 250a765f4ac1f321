package origin

import (
	"context"
	"path/filepath"
	"slices"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/kernel/fact"
)

// inferred returns the files that have changed during a run without a tool call that describes the change. The event
// is an observation of the work tree. The result is empty unless this observation and the one before the turn are
// complete. The earlier observation must precede the first tool call. No other run may begin or end between the two
// observations.
func inferred(ctx context.Context, log event.Reader, after event.Event) ([]Change, error) {
	f, err := fact.Decode[fact.TreeObserved](after)
	if err != nil || f.When != "after" || f.Late || f.More || len(f.Changed) == 0 {
		return nil, nil
	}
	start, err := observedBefore(ctx, log, after)
	if err != nil || start == 0 {
		return nil, err
	}
	q := event.Query{After: start, Until: after.Seq, Types: []event.Type{event.Requested, event.CallEnforced}}
	for e, err := range log.Events(ctx, q) {
		if err != nil {
			return nil, err
		}
		if e.Run != after.Run {
			return nil, nil
		}
	}
	r, err := readRun(ctx, log, after.Run)
	if err != nil || r.start() == 0 || r.start() < start {
		return nil, err
	}
	return r.inferred(f, after), nil
}

// observedBefore returns the number of the event with the complete observation before the run's turn, or 0.
func observedBefore(ctx context.Context, log event.Reader, after event.Event) (event.Seq, error) {
	q := event.Query{Run: after.Run, Until: after.Seq, Types: []event.Type{event.TreeObserved}}
	for e, err := range log.Events(ctx, q) {
		if err != nil {
			return 0, err
		}
		if f, err := fact.Decode[fact.TreeObserved](e); err == nil && f.When == "before" && !f.More {
			return e.Seq, nil
		}
	}
	return 0, nil
}

// inferred returns the changed files, except the files with a change that a tool call of the run describes.
func (r *runReader) inferred(f fact.TreeObserved, after event.Event) (list []Change) {
	change := r.change
	change.Inferred, change.At, change.source.End = true, after.Time, after.Seq
	for _, c := range r.order {
		if c.Kind != "execute" || c.decision.Kind == refused {
			continue
		}
		change.Commands = append(change.Commands, beginning(c.Title))
		change.Decision, change.Call = c.decision, string(c.ID)
	}
	if len(change.Commands) != 1 {
		change.Decision, change.Call = Decision{}, ""
	}
	described := r.changes()
	for _, file := range f.Changed {
		change.Path = filepath.Join(f.Root, filepath.FromSlash(file.Path))
		change.Removes = file.Mode == ""
		if !slices.ContainsFunc(described, func(c Change) bool { return c.Path == change.Path }) {
			list = append(list, change)
		}
	}
	return list
}
