package flow

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/intents"
	"github.com/perlica/perlica/interaction"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/kernel/filelock"
)

// file is a log in a file.
type file interface {
	event.Reader
	Path() string
}

// Look returns the state of a flow run for a reader. The state includes the calls and questions that have no decision
// yet. Look changes nothing.
func Look(ctx context.Context, log file, locks, id string) (*State, error) {
	s, err := readState(ctx, log, id)
	if err != nil {
		return nil, err
	}
	if s.Alive, err = filelock.Held(filelock.Run(locks, string(RunID(id)))); err != nil {
		return nil, err
	}
	if s.Finished != nil && s.Finished.Outcome != fact.FlowCancelled {
		return s, nil
	}
	for _, st := range s.Steps {
		decision, _, ready := s.verdict(st)
		if st.Phase.decided() || !ready || decision != "" {
			continue
		}
		if err := s.lookAt(ctx, log, locks, st); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// lookAt finds the call, the question or the inner flow of a step without a decision.
func (s *State) lookAt(ctx context.Context, log file, locks string, st *StepState) error {
	switch {
	case st.Ask != "":
		q, err := s.OpenQuestion(ctx, log, st)
		if err == nil && q != "" {
			s.setPhase(st, 0, Asked)
		}
		return err
	case st.Flow != "":
		inner, err := Look(ctx, log, locks, strings.TrimPrefix(string(s.InputID(st, 0)), event.FlowPrefix))
		if errors.Is(err, ErrNoRun) {
			return nil // the inner flow has not begun
		}
		if err != nil {
			return err
		}
		switch outcome := inner.Outcome(); outcome {
		case string(Running), string(Asked), string(Unknown):
			s.setPhase(st, 0, Phase(outcome))
		}
		return nil
	case !st.loops():
		_, err := s.lookAtCall(ctx, log, locks, st, 0)
		return err
	}
	// The driver begins the items in order, and at most Parallel of them at the same time. So after more than Parallel
	// items without a call, no later item has a call and the search ends.
	missed := 0
	for i := range st.Items {
		if st.Items[i].Phase.decided() {
			continue
		}
		called, err := s.lookAtCall(ctx, log, locks, st, i+1)
		if err != nil {
			return err
		}
		switch {
		case called:
			missed = 0
		case st.Items[i].Attempt == 0: // a retried item waits, also if the driver has begun it before
			missed++
		}
		if missed > st.Parallel {
			return nil
		}
	}
	return nil
}

// lookAtCall sets the phase of a step or of an item without a decision. It reports whether its input was called.
func (s *State) lookAtCall(ctx context.Context, log file, locks string, st *StepState, item int) (bool, error) {
	input := s.InputID(st, item)
	if s.Started.Team != "" {
		return s.lookAtTeam(ctx, log, st, item)
	}
	intent, ok, err := log.Last(ctx, event.Query{Input: input, Types: []event.Type{event.Requested}})
	if err != nil {
		return false, err
	}
	if !ok {
		called, _, err := intents.Names(log.Path(), string(input))
		if called && !s.Alive { // the log lost the intent; while a driver lives, it may still be writing the intent
			s.setPhase(st, item, Unknown)
		}
		if err == nil && !called {
			err = s.lookAtRefusal(ctx, log, st, item)
		}
		return called, err
	}
	end, ok, err := log.Last(ctx, event.Query{Run: intent.Run, Types: []event.Type{event.Responded,
		event.ProviderError, event.OutcomeUnknown}})
	if err != nil {
		return false, err
	}
	st.unit(item).Run = intent.Run
	switch {
	case ok && end.Type == event.OutcomeUnknown:
		s.setPhase(st, item, Unknown)
	case ok: // the answer is on the log, but the driver died before its decision
	default:
		alive, err := filelock.Held(filelock.Run(locks, string(intent.Run)))
		if err != nil {
			return false, err
		}
		p := Unknown
		if alive {
			p = Running
		}
		s.setPhase(st, item, p)
	}
	return true, nil
}

// lookAtTeam sets the phase of a step or an item without a decision. A worker of the team makes its call. The call is
// therefore on the worker's log.
func (s *State) lookAtTeam(ctx context.Context, log event.Reader, st *StepState, item int) (bool, error) {
	u := st.unit(item)
	if u.generation == "" {
		return false, nil
	}
	if err := s.lookAtRefusal(ctx, log, st, item); err != nil {
		return false, err
	}
	p := Running
	switch {
	case u.unknown:
		p = Unknown
	case u.Error != "" && !s.Alive: // a budget has refused the call
		p = Waiting
	}
	s.setPhase(st, item, p)
	return true, nil
}

// lookAtRefusal sets the error of a step, or of an item of it, if a budget has refused its call.
func (s *State) lookAtRefusal(ctx context.Context, log event.Reader, st *StepState, item int) error {
	q := event.Query{Input: s.InputID(st, item), Types: []event.Type{event.BudgetRefused}}
	e, refused, err := log.Last(ctx, q)
	if err != nil || !refused || e.Withheld != "" {
		return err
	}
	f, err := fact.Decode[fact.BudgetReached](e)
	st.unit(item).Error, st.unit(item).Said = f.Why, f.Coded
	return err
}

// OpenQuestion returns the id of a step's open question, or "".
func (s *State) OpenQuestion(ctx context.Context, log event.Reader, st *StepState) (event.InteractionID, error) {
	id, err := s.questionID(ctx, log, st)
	if err != nil {
		return "", err
	}
	_, asked, err := log.Last(ctx, event.Query{Interaction: id, Types: []event.Type{event.InteractionRequested}})
	if err != nil || !asked {
		return "", err
	}
	end, err := interaction.Closed(ctx, log, id)
	if err != nil || end != nil {
		return "", err
	}
	return id, nil
}

// Summary is a flow run in a list.
type Summary struct {
	ID, Name string
	Started  time.Time
	Ended    time.Time // zero while the flow run goes on
	Outcome  string    // empty while the flow run goes on
	By       string
}

// List returns the flow runs of a log, the oldest first.
func List(ctx context.Context, log event.Reader) ([]Summary, error) {
	var list []Summary
	places := map[event.RunID]int{}
	for e, err := range log.Events(ctx, event.Query{Interaction: event.Flows, Types: []event.Type{event.FlowStarted,
		event.FlowFinished}}) {
		if err != nil {
			return nil, err
		}
		i, ok := places[e.Run]
		if !ok {
			i = len(list)
			places[e.Run] = i
			list = append(list, Summary{ID: strings.TrimPrefix(string(e.Run), event.FlowPrefix), Started: e.Time})
		}
		if e.Payload == nil { // pruned
			continue
		}
		switch e.Type {
		case event.FlowStarted:
			f, err := fact.Decode[fact.FlowStarted](e)
			if err != nil {
				return nil, err
			}
			list[i].Name, list[i].By = f.Name, f.By
		case event.FlowFinished:
			f, err := fact.Decode[fact.FlowFinished](e)
			if err != nil {
				return nil, err
			}
			list[i].Outcome, list[i].Ended = f.Outcome, e.Time
		}
	}
	return list, nil
}

// FindRun returns the id of the flow run that ref names. ref is the id, or a beginning that only this id has. An empty
// ref means the newest flow run.
func FindRun(ctx context.Context, log event.Reader, ref string) (string, error) {
	if ref != "" {
		q := event.Query{Run: RunID(ref), Types: []event.Type{event.FlowStarted}}
		if _, ok, err := log.Last(ctx, q); ok || err != nil {
			return ref, err
		}
	}
	list, err := List(ctx, log)
	if err != nil {
		return "", err
	}
	found := ""
	for _, s := range list {
		if !strings.HasPrefix(s.ID, ref) {
			continue
		}
		if found != "" && ref != "" {
			return "", errAmbiguous.With(ref, found, s.ID)
		}
		found = s.ID // without a ref, the newest flow run is meant
	}
	if found == "" {
		return "", fmt.Errorf("%w: %s", ErrNoRun, ref)
	}
	return found, nil
}
