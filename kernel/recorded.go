package kernel

import (
	"context"
	"time"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/store"
	"github.com/perlica/perlica/kernel/fact"
)

// Recorded returns the result of the input with this id as the log has it. ok is false if
// no call was ever made for it; the error is ErrInputRunning while one is under way, and wraps
// fault.ErrCorrupt where the log is of two minds about it.
func (r *Runner) Recorded(ctx context.Context, id event.InputID) (res Result, ok bool, err error) {
	intent, ok, err := r.log.Intent(ctx, id)
	if err != nil || !ok {
		return Result{}, false, err
	}
	res, err = r.recordedResult(ctx, intent)
	return res, true, err
}

// replay is Recorded for an input that is given again: it must be the one that was called. Where
// that is not on record, because the intent is of an earlier version or was pruned, the result has a
// warning.
func (r *Runner) replay(ctx context.Context, in Input) (res Result, ok bool, err error) {
	intent, ok, err := r.log.Intent(ctx, in.ID)
	if err != nil || !ok {
		return Result{}, false, err
	}
	var requested fact.Requested
	if intent.Payload != nil {
		if requested, err = fact.Decode[fact.Requested](intent); err != nil {
			return Result{}, true, err
		}
	}
	if requested.Input != "" {
		files, err := in.files()
		if err != nil {
			return Result{}, true, err
		}
		if given := r.digest(in, files); given != requested.Input {
			return Result{}, true, &InputConflictError{Input: in.ID, Run: intent.Run, Recorded: requested.Input, Given: given}
		}
	}
	res, err = r.recordedResult(ctx, intent)
	if err == nil && requested.Input == "" {
		res.Warnings = append(res.Warnings, "input_not_compared: whether this is the text that was called is not on record any more")
	}
	return res, true, err
}

// recordedResult is the result of the run with this intent.
func (r *Runner) recordedResult(ctx context.Context, intent event.Event) (Result, error) {
	res, err := ReadResult(ctx, &r.log.Reader, intent.Run)
	if err != nil || res.Outcome != "" {
		return res, err
	}
	// Recover has ended what is listed as open and whose process is gone. If this is neither
	// alive nor listed, nobody else would ever end it.
	ended, err := r.recoverRuns(ctx, []event.RunID{intent.Run}, died)
	switch {
	case err != nil:
		return res, err
	case len(ended) == 0:
		return res, ErrInputRunning
	}
	return ended[0], nil
}

// ReadResult puts a run's result together from its facts. Its Outcome is empty if there is
// none yet.
func ReadResult(ctx context.Context, r *store.Reader, run event.RunID) (Result, error) {
	res := Result{Run: run, Replayed: true}
	for e, err := range r.Events(ctx, event.Query{Run: run, Class: event.Fact}) {
		if err != nil {
			return res, err
		}
		if err := res.Apply(e); err != nil {
			return res, err
		}
	}
	return res, nil
}

// Apply adds to the result what one fact of its run says; most facts say nothing of it. The
// error is that of fact.Decode. Of a fact whose payload is withheld the type says what it can.
func (res *Result) Apply(e event.Event) error {
	if e.Payload == nil {
		res.applyPruned(e)
		return nil
	}
	switch e.Type {
	case event.MessageReceived:
		m, err := fact.Decode[fact.MessageReceived](e)
		res.Input, res.Session, res.Provider = e.Input, e.Session, m.Provider
		return err
	case event.CancelRequested:
		s, err := fact.Decode[Stop](e)
		res.Stopped = &s
		return err
	case event.PolicyUnasked:
		u, err := fact.Decode[fact.UnaskedTool](e)
		res.Unasked = append(res.Unasked, u)
		return err
	case event.Responded:
		a, err := fact.Decode[fact.Responded](e)
		res.Outcome, res.Text, res.StopReason, res.Usage, res.Cost = OutcomeResponded, a.Text, a.StopReason, a.Usage, a.Cost
		res.Duration = time.Duration(a.DurationMS) * time.Millisecond
		return err
	case event.ProviderError, event.OutcomeUnknown:
		f, err := fact.Decode[fact.Failed](e)
		res.Outcome, res.Text, res.Err = OutcomeProviderError, f.Text, f.Error
		if e.Type == event.OutcomeUnknown {
			res.Outcome = OutcomeUnknown
		}
		res.Duration = time.Duration(f.DurationMS) * time.Millisecond
		return err
	case event.CallEnforced:
		n, err := fact.Decode[fact.Enforced](e)
		res.Calls, res.Blocked, res.Permissions = n.Calls, n.Blocked, n.Permissions
		return err
	}
	return nil
}

// applyPruned adds what a fact says without its payload: what happened, not how.
func (res *Result) applyPruned(e event.Event) {
	res.Pruned = true
	switch e.Type {
	case event.MessageReceived:
		res.Input, res.Session = e.Input, e.Session
	case event.CancelRequested:
		res.Stopped = &Stop{By: e.Actor, Why: "the reason was pruned"}
	case event.Responded:
		res.Outcome, res.Calls = OutcomeResponded, 1
	case event.ProviderError:
		res.Outcome = OutcomeProviderError
	case event.OutcomeUnknown:
		res.Outcome, res.Calls = OutcomeUnknown, 1
	}
}
