package kernel

import (
	"context"
	"errors"
	"fmt"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/kernel/filelock"
)

// What keeps a run from being resolved.
var (
	ErrOutcomeKnown = errors.New("the run's outcome is known")
	ErrNoOutcome    = errors.New("the run has no outcome on record yet")
	ErrNoCall       = errors.New("the run made no call")
)

// Resolve puts a person's judgement of a run on record whose outcome is unknown: whether its
// prompt was sent. The last judgement counts. It sends nothing and changes nothing else. It
// fails with ErrOutcomeKnown, with ErrUnderWay while the run lives, with ErrNoOutcome if it
// died and Recover has not seen it yet, and with ErrNoCall if there was no intent.
func (r *Runner) Resolve(ctx context.Context, run event.RunID, f fact.Resolved) error {
	e, ok, err := r.log.Last(ctx, event.Query{Run: run, Types: []event.Type{
		event.Responded, event.ProviderError, event.OutcomeUnknown,
	}})
	if err != nil {
		return err
	}
	if !ok {
		return r.unresolvable(ctx, run)
	}
	if e.Type != event.OutcomeUnknown {
		return fmt.Errorf("%w: %s", ErrOutcomeKnown, e.Type)
	}
	if _, err = r.log.Append(ctx, event.NewFact(event.RunResolved, "user", e.Refs, f)); err == nil {
		r.seal(ctx)
	}
	return err
}

// unresolvable says why a run without an outcome cannot be resolved.
func (r *Runner) unresolvable(ctx context.Context, run event.RunID) error {
	alive, err := filelock.Held(filelock.Run(r.opt.Paths.Locks, string(run)))
	if err != nil {
		return err
	}
	_, intended, err := r.log.Last(ctx, event.Query{Run: run, Types: []event.Type{event.Requested}})
	switch {
	case err != nil:
		return err
	case alive:
		return ErrUnderWay
	case intended:
		return ErrNoOutcome
	}
	return ErrNoCall
}
