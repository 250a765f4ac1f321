// Package schedule makes inputs at planned times, each at most once.
//
// The id of an input follows from its schedule and its planned time. So the log ensures at most one call, even after a
// crash or with several processes. The state of a schedule follows from the log alone. Decide is a pure function of a
// schedule, its state and the time. A process that was asleep for some days records one event for all missed times,
// and makes at most one input for each schedule.
//
// The package calls no agent. A Keeper gets a function that answers one input. The Keeper records the planned input
// by an event. It holds the schedule's lock during the call, so that another process sees that the input is running.
package schedule

import (
	"context"
	"errors"
	"time"

	"github.com/perlica/perlica/eventlog"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/message"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/kernel/flow"
)

// types are the types of the events that make the state of a schedule.
var types = []event.Type{event.ScheduleStarted, event.SchedulePlanned, event.ScheduleMissed, event.SchedulePaused,
	event.ScheduleResumed}

// stateSet has the states of schedules at one point of the log.
type stateSet struct {
	byID map[string]State
	// newest is the number of the log's newest event about any schedule.
	newest event.Seq
}

// Of returns the state of the schedule with this id.
func (s stateSet) Of(id string) State { return s.byID[id] }

// readStates reads the states of the schedules with these ids.
func readStates(ctx context.Context, log event.Reader, ids ...string) (stateSet, error) {
	states := stateSet{byID: map[string]State{}}
	missing := map[string]bool{} // the schedules without a state or without their newest plan
	for _, id := range ids {
		missing[id] = true
	}
	plans, refused := map[string]event.Event{}, map[event.InputID]bool{}
	for e, err := range log.Events(ctx, event.Query{Types: types, Newest: true}) {
		if err != nil {
			return states, err
		}
		states.newest = max(states.newest, e.Seq)
		id, st, err := stateAfter(e)
		if err != nil {
			return states, err
		}
		if st.seq == 0 {
			refused[e.Input] = true
			continue
		}
		if _, ok := states.byID[id]; missing[id] && !ok {
			states.byID[id] = st
		}
		if missing[id] && st.planned != "" {
			plans[id] = e
		}
		if st.planned != "" || st.first {
			delete(missing, id)
		}
		if len(missing) == 0 {
			break
		}
	}
	for id, e := range plans {
		if refused[e.Input] {
			continue
		}
		st, err := states.byID[id].afterPlan(ctx, log, e)
		if err != nil {
			return states, err
		}
		states.byID[id] = st
	}
	return states, nil
}

// afterPlan adds the progress of the newest plan of a schedule to its state.
func (st State) afterPlan(ctx context.Context, log event.Reader, e event.Event) (State, error) {
	p, err := fact.Decode[fact.SchedulePlanned](e)
	if err != nil {
		return st, err
	}
	// If the log has no later event about the planned input, no process has begun to answer it. The process that
	// planned the input has died, or is just about to begin.
	q := event.Query{Input: e.Input, After: e.Seq}
	if p.Flow != "" {
		q = event.Query{Run: flow.RunID(string(e.Input)), Types: []event.Type{event.FlowStarted, event.FlowFinished}}
	}
	last, taken, err := log.Last(ctx, q)
	switch {
	case err != nil:
		return st, err
	case !taken && st.planned != "":
		st.From, st.Open = st.From.Add(-1), st.planned
	case last.Type == event.FlowStarted && !st.Paused:
		st.Unfinished = p.Time
	}
	return st, nil
}

// stateAfter returns the schedule of an event and its state after the event. The refusal of a planned input and the
// stop of its flow run do not change the state. stateAfter then returns the zero State.
func stateAfter(e event.Event) (id string, st State, err error) {
	var p struct {
		fact.ScheduleStarted
		Time time.Time `json:"time"`
		Last time.Time `json:"last"`
	}
	if err = e.Decode(&p); err != nil {
		return "", st, err
	}
	st = State{From: p.From, Rule: p.Rule, seq: e.Seq}
	switch e.Type {
	case event.ScheduleStarted:
		st.first = p.Why == fact.StartNew
	case event.SchedulePlanned:
		st.From, st.planned = p.Time, e.Input
	case event.ScheduleMissed:
		st.From = p.Last
		if p.Why == fact.MissedRefused || p.Why == fact.MissedStopped {
			st = State{}
		}
	case event.SchedulePaused:
		st.Paused = true
	}
	return p.Schedule, st, nil
}

// These are the errors of Pause and Resume.
var (
	errPaused    = message.New("schedule.paused", "the schedule is paused already")
	errNotPaused = message.New("schedule.not-paused", "the schedule is not paused")
)

// Pause records that a schedule is paused. A paused schedule makes no inputs and misses no times.
func Pause(ctx context.Context, log *eventlog.Log, s Schedule, by string) error {
	return change(ctx, log, s, func(st State) (event.Event, error) {
		if st.Paused {
			return event.Event{}, errPaused
		}
		return event.NewFact(event.SchedulePaused, "user", event.Refs{}, fact.SchedulePaused{Schedule: s.ID, By: by}), nil
	})
}

// Resume records that a paused schedule goes on. It makes inputs only for its times after now.
func Resume(ctx context.Context, log *eventlog.Log, s Schedule, by string, now time.Time) error {
	return change(ctx, log, s, func(st State) (event.Event, error) {
		if !st.Paused {
			return event.Event{}, errNotPaused
		}
		return event.NewFact(event.ScheduleResumed, "user", event.Refs{}, fact.ScheduleResumed{Schedule: s.ID, By: by,
			From: now.UTC(), Rule: s.Rule()}), nil
	})
}

// change appends the event that the function "next" returns for the present state of a schedule.
func change(ctx context.Context, log *eventlog.Log, s Schedule, next func(State) (event.Event, error)) error {
	for {
		states, err := readStates(ctx, log, s.ID)
		if err != nil {
			return err
		}
		e, err := next(states.Of(s.ID))
		if err != nil {
			return err
		}
		_, err = log.AppendUnless(ctx, event.Query{Types: types, After: states.newest}, e)
		if !errors.As(err, new(*eventlog.ConflictError)) {
			return err
		}
	}
}
