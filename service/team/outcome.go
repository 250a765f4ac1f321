package team

import (
	"fmt"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/message"
	"github.com/perlica/perlica/kernel"
	"github.com/perlica/perlica/kernel/budget"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/kernel/record"
	"github.com/perlica/perlica/provider"
	"github.com/perlica/perlica/service/team/hub"
)

// A RefusedError means that the owner of an input refused it for good, and made no call.
type RefusedError struct {
	Worker, Why string
}

// These are the sentences about an input without a known call.
var (
	madeNoCall = message.New("team.made-no-call", "%s made no call: %s")
	closedIt   = message.New("team.closed-input", "%s closed it, the outcome is not known")
	closedNote = message.New("team.closed-input-note", "%s closed it, the outcome is not known: %s")
)

func (e *RefusedError) Error() string { return e.Tell().Text }

// Tell returns the error's sentence.
func (e *RefusedError) Tell() *message.Text { return madeNoCall.With(e.Worker, e.Why) }

// Outcome returns the result of an input that has ended. Its errors mean that no call was made: a *kernel.StoppedError,
// a *budget.RefusedError or a *RefusedError. A fourth error means that the result cannot be read.
func Outcome(s hub.Status) (record.Result, error) {
	switch s.State {
	case hub.Withdrawn:
		return record.Result{}, &kernel.StoppedError{Stop: fact.Stop{By: "user", Why: "withdrawn from the queue"}}
	case hub.Adopted, hub.Lost:
		return UnknownOutcome(s.ID, "the hub was replaced before the input's outcome was known there"), nil
	case hub.Resolved:
		return UnknownOutcome(s.ID, judgement(s).Text), nil
	}
	found, err := ResultOf(s)
	if err != nil {
		return record.Result{}, fmt.Errorf("the result on the hub cannot be read: %w", err)
	}
	if s.State != hub.Refused {
		return found.Kernel(), nil
	}
	switch {
	case found.Stopped != nil:
		return record.Result{}, &kernel.StoppedError{Stop: *found.Stopped}
	case found.Budget != nil:
		return record.Result{}, &budget.RefusedError{BudgetReached: *found.Budget}
	case found.Error != nil:
		return record.Result{}, &RefusedError{s.Worker, found.Error.Message}
	}
	return record.Result{}, &RefusedError{s.Worker, "no reason is given"}
}

// judgement describes the judgement of the member that closed an input.
func judgement(s hub.Status) *message.Text {
	if s.Note != "" {
		return closedNote.With(s.By, s.Note)
	}
	return closedIt.With(s.By)
}

// UnknownOutcome returns the result of an input with an unknown outcome.
func UnknownOutcome(id, why string) record.Result {
	return record.Result{Input: event.InputID(id), Outcome: record.OutcomeUnknown,
		Err: &provider.Error{Type: provider.TypeGone, Subtype: "team", Message: why}}
}
