package kernel

import (
	"context"

	"github.com/perlica/perlica/eventlog/event"
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
	// alive nor listed, nothing else would ever end it.
	ended, err := r.recoverRuns(ctx, []event.RunID{intent.Run}, died)
	switch {
	case err != nil:
		return res, err
	case len(ended) == 0:
		return res, ErrInputRunning
	}
	return ended[0], nil
}
