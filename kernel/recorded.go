package kernel

import (
	"context"
	"time"

	"github.com/perlica/perlica/eventlog"
)

// Recorded returns the result of the input with this id as the log has it. ok is false if
// no call was ever made for it; the error is ErrInputRunning while one is under way.
func (r *Runner) Recorded(ctx context.Context, id eventlog.InputID) (res Result, ok bool, err error) {
	intent, ok, err := r.log.Last(ctx, eventlog.Query{Input: id, Types: []eventlog.Type{eventlog.Requested}})
	if err != nil || !ok {
		return Result{}, false, err
	}
	res, err = ReadResult(ctx, &r.log.Reader, intent.Run)
	if err == nil && res.Outcome == "" {
		err = ErrInputRunning
	}
	return res, true, err
}

// ReadResult puts a run's result together from its facts. Its Outcome is empty if there is
// none yet.
func ReadResult(ctx context.Context, r *eventlog.Reader, run eventlog.RunID) (Result, error) {
	res := Result{Run: run, Replayed: true}
	for e, err := range r.Events(ctx, eventlog.Query{Run: run, Class: eventlog.Fact}) {
		if err != nil {
			return res, err
		}
		if err := res.apply(e); err != nil {
			return res, err
		}
	}
	return res, nil
}

// apply adds what one fact says.
func (res *Result) apply(e eventlog.Event) error {
	switch e.Type {
	case eventlog.MessageReceived:
		m, err := decodePayload[messageReceived](e)
		res.Input, res.Session, res.Provider = e.Input, e.Session, m.Provider
		return err
	case eventlog.CancelRequested:
		s, err := decodePayload[Stop](e)
		res.Stopped = &s
		return err
	case eventlog.PolicyUnasked:
		u, err := decodePayload[UnaskedTool](e)
		res.Unasked = append(res.Unasked, u)
		return err
	case eventlog.Responded:
		a, err := decodePayload[responded](e)
		res.Outcome, res.Text, res.StopReason, res.Usage, res.Cost = OutcomeResponded, a.Text, a.StopReason, a.Usage, a.Cost
		res.Duration = time.Duration(a.DurationMS) * time.Millisecond
		return err
	case eventlog.ProviderError, eventlog.OutcomeUnknown:
		f, err := decodePayload[failed](e)
		res.Outcome, res.Text, res.Err = OutcomeProviderError, f.Text, f.Error
		if e.Type == eventlog.OutcomeUnknown {
			res.Outcome = OutcomeUnknown
		}
		res.Duration = time.Duration(f.DurationMS) * time.Millisecond
		return err
	case eventlog.CallEnforced:
		n, err := decodePayload[enforced](e)
		res.Calls, res.Blocked, res.Permissions = n.Calls, n.Blocked, n.Permissions
		return err
	}
	return nil
}
