package kernel

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/coder/acp-go-sdk"

	"github.com/perlica/perlica/eventlog"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/store"
	"github.com/perlica/perlica/interaction"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/kernel/filelock"
	"github.com/perlica/perlica/provider"
)

// Unfinished is a run whose intent has no outcome.
type Unfinished struct {
	Run   event.RunID
	Input event.InputID
	Alive bool // its process still holds the run's lock
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

// listUnfinished says of runs without an outcome whether they live.
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

// Unfinished reports whether the log, when it was opened, listed runs without an outcome. If it
// did not, a Recover at the start has nothing to do, and to ask costs a connection to the file.
func (r *Runner) Unfinished() bool { return r.log.Unfinished() }

// Recover writes the outcome of every run whose process is gone: unknown, since the
// prompt may have left. It sends nothing. It returns the results it wrote.
func (r *Runner) Recover(ctx context.Context) ([]Result, error) {
	return r.recoverAll(ctx, died)
}

// cause is why a run has no outcome of its own.
type cause struct{ subtype, message string }

var died = cause{"perlica_died", "Perlica ended before the outcome was known"}

func (r *Runner) recoverAll(ctx context.Context, why cause) ([]Result, error) {
	ids, err := r.log.OpenRuns(ctx)
	if err != nil {
		return nil, err
	}
	return r.recoverRuns(ctx, ids, why)
}

// RecoverUnlisted does the same for runs that are not on the log's list of those without an
// outcome, as after somebody changed the file. It looks at all runs, which takes a moment.
func (r *Runner) RecoverUnlisted(ctx context.Context) ([]Result, error) {
	ids, err := r.log.UnlistedRuns(ctx)
	if err != nil {
		return nil, err
	}
	return r.recoverRuns(ctx, ids, died)
}

func (r *Runner) recoverRuns(ctx context.Context, ids []event.RunID, why cause) ([]Result, error) {
	var recovered []Result
	for _, id := range ids {
		// The holder of the lock is the run itself, or is recovering it already.
		lock, err := filelock.Acquire(filelock.Run(r.opt.Paths.Locks, string(id)))
		if errors.Is(err, filelock.ErrHeld) {
			continue
		}
		if err != nil {
			return recovered, err
		}
		ended, err := r.recoverRun(ctx, id, why)
		lock.Release()
		if err != nil {
			return recovered, err
		}
		if !ended {
			continue
		}
		res, err := ReadResult(ctx, &r.log.Reader, id)
		if err != nil {
			return recovered, err
		}
		recovered = append(recovered, res)
	}
	return recovered, nil
}

// resolveRest resolves the questions of a run that were answered, or lapsed, but not resolved.
// Whether the agent got the answer is known only where that is on record: else its process died with
// the answer in hand.
func (r *Runner) resolveRest(ctx context.Context, id event.RunID) error {
	ends := map[event.InteractionID]event.Event{} // the last of each
	for e, err := range r.log.Events(ctx, event.Query{Run: id, Types: []event.Type{
		event.InteractionAnswered, event.InteractionLapsed, event.ReplySent, event.InteractionResolved,
	}}) {
		if err != nil {
			return err
		}
		if e.Interaction != "" {
			ends[e.Interaction] = e
		}
	}
	var resolved []event.Event
	for _, e := range ends {
		res := interaction.Resolution{Reason: interaction.Crashed}
		switch e.Type {
		case event.InteractionResolved:
			continue
		case event.ReplySent:
			// What cannot be decoded any more was pruned, or is a later version's.
			sent, _ := fact.Decode[fact.ReplySent](e)
			res = interaction.Resolution{Option: sent.Option, Sent: true}
		}
		resolved = append(resolved, event.NewFact(event.InteractionResolved, "perlica", e.Refs, res))
	}
	slices.SortFunc(resolved, func(a, b event.Event) int { return strings.Compare(string(a.Interaction), string(b.Interaction)) })
	return r.log.Record(resolved...)
}

// recoverRun ends one run of a process that is gone. It returns false if the run has its
// outcome: it ended in order after it was found open; or if it has no intent: then there is
// nothing to be known about.
func (r *Runner) recoverRun(ctx context.Context, id event.RunID, why cause) (ended bool, err error) {
	left, err := ReadRecord(ctx, &r.log.Reader, id, event.Query{})
	if err != nil {
		return false, err
	}
	if !left.Intended {
		return false, nil
	}
	if err := r.resolveRest(ctx, id); err != nil { // before others are closed, which takes a moment to be seen
		return false, err
	}
	questions, err := interaction.Pending(ctx, &r.log.Reader, []event.RunID{id})
	if err != nil {
		return false, err
	}
	for _, q := range questions {
		if err := r.questions.Abandon(ctx, q, interaction.Crashed); err != nil {
			return false, err
		}
	}
	e := &provider.Error{
		Provider: left.Provider, Type: provider.TypeGone, Subtype: why.subtype, Method: acp.AgentMethodSessionPrompt,
		Message: why.message,
	}
	_, err = r.log.Append(ctx,
		event.NewFact(event.OutcomeUnknown, "perlica", left.Refs, fact.Failed{
			Error: e, Text: left.Said.String(), NoticedBy: "recovery", Known: left.Progress(),
		}),
		event.NewFact(event.CallEnforced, "perlica", left.Refs, fact.Enforced{Calls: 1, Blocked: len(left.Refused), Permissions: left.Counted()}))
	var conflict *eventlog.ConflictError
	if errors.As(err, &conflict) {
		return false, nil
	}
	return err == nil, err
}
