package report

import (
	"context"
	"slices"
	"time"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/kernel"
	"github.com/perlica/perlica/kernel/fact"
)

// Run is a run as a list has it.
type Run struct {
	Run        event.RunID     `json:"run_id"`
	Session    event.SessionID `json:"session_id"`
	Input      event.InputID   `json:"input_id"`
	At         time.Time       `json:"at"`
	By         string          `json:"by"`
	Source     string          `json:"source"`
	Provider   string          `json:"provider"`
	Called     bool            `json:"called"`  // the call is on record; an input that was refused has none
	Outcome    kernel.Outcome  `json:"outcome"` // empty: none yet
	StopReason string          `json:"stop_reason,omitempty"`
	DurationMS int64           `json:"duration_ms,omitempty"` // absent: not known
	Asked      int             `json:"asked"`
	Allowed    int             `json:"allowed"`
	Denied     int             `json:"denied"`
	Tools      int             `json:"tools"`
	Cost       *fact.Cost      `json:"cost,omitempty"`
	Text       string          `json:"text"`
	Pruned     bool            `json:"pruned,omitempty"`
	Damage     string          `json:"damage,omitempty"` // the row of the first damaged event
}

// RunsQuery says which runs a list has.
type RunsQuery struct {
	Since, Before time.Time // when the input came; zero: no limit
	Session       event.SessionID
	Provider      string // empty: all
	Newest        int    // at most as many, the newest; negative: all
}

// ReadRuns returns the runs that q selects, oldest first. more reports that there are older ones.
func ReadRuns(ctx context.Context, log event.Reader, q RunsQuery) (list []Run, more bool, err error) {
	inputs := event.Query{Types: []event.Type{event.MessageReceived}, Session: q.Session, Since: q.Since, Before: q.Before, Newest: true}
	for e, err := range log.Events(ctx, inputs) {
		if err != nil {
			return nil, false, err
		}
		run, err := readRun(ctx, log, e.Run)
		if err != nil {
			return nil, false, err
		}
		if q.Provider != "" && run.Provider != q.Provider {
			continue
		}
		if more = len(list) == q.Newest; more {
			break
		}
		list = append(list, run)
	}
	slices.Reverse(list)
	return list, more, nil
}

// readRun reads the facts of a run.
func readRun(ctx context.Context, log event.Reader, id event.RunID) (Run, error) {
	rec := kernel.Record{Result: kernel.Result{Run: id}}
	run := Run{Run: id}
	used := usedIn(ctx, log)
	for e, err := range log.Events(ctx, event.Query{Run: id, Class: event.Fact}) {
		if err != nil {
			return run, err
		}
		_ = rec.Apply(e) // what cannot be read is known by its type
		run.Called = run.Called || e.Type == event.Requested
		if !e.Type.Outcome() {
			continue
		}
		// The outcomes have the field in common.
		if f, err := fact.Decode[fact.Responded](e); err == nil {
			run.Tools = len(f.Tools)
		}
		o := StepOutcome{Result: rec.Result}
		if err := used(e, &o); err != nil {
			return run, err
		}
		run.Cost = o.Cost
	}
	asked := rec.Counted()
	run.Session, run.Input, run.At, run.By, run.Source = rec.Session, rec.Input, rec.At, rec.Received.Sender, rec.Received.Source
	run.Provider, run.Outcome, run.StopReason, run.DurationMS = rec.Provider, rec.Outcome, rec.StopReason, rec.Duration.Milliseconds()
	run.Asked, run.Allowed, run.Denied = asked.Asked, asked.Allowed, asked.Denied
	run.Text, run.Pruned, run.Damage = rec.Received.Text, rec.Pruned, rec.Damage
	return run, nil
}
