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
	"github.com/perlica/perlica/kernel/record"
)

// Overview is a schedule with its next time and its last one.
type Overview struct {
	Schedule
	Paused bool
	// Next is the next planned time, and Due is the same time with its delay. Both are zero if no time follows.
	Next, Due time.Time
	// Last is the newest planned time that was called or missed. The zero time means that no time has passed.
	Last time.Time
	// Outcome is the outcome of the call at the time Last, and OutcomeWords has words for it. A missed time has the
	// value of fact.ScheduleMissed.Why. A flow run has the value of flow.State.Outcome.
	Outcome string
	Reason  *message.Text // the error of a refused input or of a stopped flow run, or nil
	Run     event.RunID   // the run of the call at the time Last, if there is one
	FlowRun string        // the id of the flow run of the time Last, if there is one
}

// These are outcomes of planned times without a result.
const (
	notCalled = "not_called" // the process died before the call, or is about to call
	running   = "running"    // the call has no outcome yet
)

// intents is a log in a file, which finds the intent of an input.
type intents interface {
	event.Reader
	Path() string
	Intent(ctx context.Context, id event.InputID) (event.Event, bool, error)
}

// Looker reads the overviews of schedules from a log.
type Looker struct {
	Log   intents
	Locks string // the folder of the context's locks
}

// Look returns overviews of schedules at the time now.
func (l Looker) Look(ctx context.Context, list []Schedule, now time.Time) ([]Overview, error) {
	ids := make([]string, len(list))
	for i, s := range list {
		ids[i] = s.ID
	}
	states, err := readStates(ctx, l.Log, ids...)
	if err != nil {
		return nil, err
	}
	all := make([]Overview, len(list))
	for i, s := range list {
		st := states.Of(s.ID)
		all[i] = Overview{Schedule: s, Paused: st.Paused}
		all[i].Next, all[i].Due, _ = s.Next(st, now)
	}
	return all, l.addLast(ctx, all)
}

// addLast adds the newest planned time and its outcome to each overview.
func (l Looker) addLast(ctx context.Context, all []Overview) error {
	missing := map[string]*Overview{}
	for i := range all {
		missing[all[i].ID] = &all[i]
	}
	newest := event.Query{Types: []event.Type{event.SchedulePlanned, event.ScheduleMissed}, Newest: true}
	for e, err := range l.Log.Events(ctx, newest) {
		if err != nil || len(missing) == 0 {
			return err
		}
		if e.Type == event.SchedulePlanned {
			err = l.addCall(ctx, missing, e)
		} else {
			var p fact.ScheduleMissed
			if p, err = fact.Decode[fact.ScheduleMissed](e); err == nil && missing[p.Schedule] != nil {
				o := missing[p.Schedule]
				o.Last, o.Outcome = p.Last, p.Why
				delete(missing, p.Schedule)
				if p.Why == fact.MissedStopped { // a person may have continued the flow run since then
					err = l.addFlow(ctx, o, e.Input)
				}
				if p.Error != "" && o.Outcome == p.Why {
					o.Reason = &message.Text{Text: p.Error, Coded: p.Coded}
				}
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// addCall adds the outcome of a planned input to the overview of its schedule.
func (l Looker) addCall(ctx context.Context, missing map[string]*Overview, e event.Event) error {
	p, err := fact.Decode[fact.SchedulePlanned](e)
	o := missing[p.Schedule]
	if err != nil || o == nil {
		return err
	}
	delete(missing, p.Schedule)
	o.Last, o.Outcome = p.Time, notCalled
	if p.Flow != "" {
		return l.addFlow(ctx, o, e.Input)
	}
	intent, called, err := l.Log.Intent(ctx, e.Input)
	if lost := (*eventlog.LostIntentError)(nil); errors.As(err, &lost) {
		o.Outcome = string(record.OutcomeUnknown)
		return nil
	}
	if err != nil || !called {
		return err
	}
	res, err := record.ReadResult(ctx, l.Log, intent.Run)
	o.Run, o.Outcome = intent.Run, string(res.Outcome)
	if o.Outcome == "" {
		o.Outcome = running
	}
	return err
}

// addFlow adds the flow run with this id to an overview, if the flow run has begun.
func (l Looker) addFlow(ctx context.Context, o *Overview, id event.InputID) error {
	s, err := flow.Look(ctx, l.Log, l.Locks, string(id))
	if errors.Is(err, flow.ErrNoRun) {
		return nil
	}
	if err == nil {
		o.FlowRun, o.Outcome = s.ID, s.Outcome()
	}
	return err
}
