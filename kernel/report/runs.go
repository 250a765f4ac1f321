package report

import (
	"context"
	"slices"
	"time"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/kernel/record"
)

// Run is a row in a list of runs.
type Run struct {
	Run      event.RunID     `json:"run_id"`
	Session  event.SessionID `json:"session_id"`
	Input    event.InputID   `json:"input_id"`
	At       time.Time       `json:"at"`
	By       string          `json:"by"`
	Source   string          `json:"source"`
	Provider string          `json:"provider"`
	// Called means that a call was recorded. A refused input has no call.
	Called bool `json:"called"`
	// Outcome is empty if the run has no outcome.
	Outcome    record.Outcome `json:"outcome"`
	StopReason string         `json:"stop_reason,omitempty"`
	// DurationMS is 0 if the duration is unknown.
	DurationMS int64      `json:"duration_ms,omitempty"`
	Asked      int        `json:"asked"`
	Allowed    int        `json:"allowed"`
	Denied     int        `json:"denied"`
	Tools      int        `json:"tools"`
	Cost       *fact.Cost `json:"cost,omitempty"`
	Text       string     `json:"text"`
	Pruned     bool       `json:"pruned,omitempty"`
	// Damage is the line of text that a list shows for the first damaged event.
	Damage string `json:"damage,omitempty"`
}

// RunsQuery selects the runs of a list.
type RunsQuery struct {
	// Since and Before limit the time of the input. Zero means no limit.
	Since, Before time.Time
	Session       event.SessionID
	Provider      string // empty means all providers
	// Newest is the maximum number of runs, counted from the newest. Negative means all.
	Newest int
}

// ReadRuns returns the runs that q selects, oldest first. The result "more" means that older runs exist.
func ReadRuns(ctx context.Context, log event.Reader, q RunsQuery) (list []Run, more bool, err error) {
	inputs := event.Query{Types: []event.Type{event.MessageReceived}, Session: q.Session, Since: q.Since, Before: q.Before,
		Newest: true}
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

// readRun returns the row of a run from its facts.
func readRun(ctx context.Context, log event.Reader, id event.RunID) (Run, error) {
	rec := record.Record{Result: record.Result{Run: id}}
	run := Run{Run: id}
	used := usedIn(ctx, log)
	for e, err := range log.Events(ctx, event.Query{Run: id, Class: event.Fact}) {
		if err != nil {
			return run, err
		}
		_ = rec.Apply(e) // if a fact is unreadable, Apply uses its type
		if !e.Type.Outcome() {
			continue
		}
		// Responded is enough, because the payloads of all outcomes have the field Tools.
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
	run.Session, run.Input, run.At, run.By, run.Source = rec.Session, rec.Input, rec.At, rec.Received.Sender,
		rec.Received.Source
	run.Provider, run.Outcome, run.StopReason, run.DurationMS = rec.Provider, rec.Outcome, rec.StopReason,
		rec.Duration.Milliseconds()
	run.Asked, run.Allowed, run.Denied = asked.Asked, asked.Allowed, asked.Denied
	run.Text, run.Pruned, run.Damage = rec.Received.Text, rec.Pruned, rec.Damage
	return run, nil
}
