package report

import (
	"context"
	"time"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/store"
	"github.com/perlica/perlica/kernel"
)

// Turn is an input of a session and what became of it.
type Turn struct {
	Run        event.RunID    `json:"run_id"`
	Input      event.InputID  `json:"input_id"`
	At         time.Time      `json:"at"`
	Sender     string         `json:"sender"`
	Source     string         `json:"source"`
	Text       string         `json:"text"`
	Outcome    kernel.Outcome `json:"outcome"` // empty: none yet
	Answer     string         `json:"answer"`  // all that had arrived, if the outcome is an error
	StopReason string         `json:"stop_reason,omitempty"`
	Error      string         `json:"error,omitempty"`
	DurationMS int64          `json:"duration_ms"`
	Pruned     bool           `json:"pruned,omitempty"` // what is empty is no longer on record
}

// ReadTurns returns the turns of a session, oldest first.
func ReadTurns(ctx context.Context, log *store.Reader, s event.SessionID) ([]Turn, error) {
	return readTurns(ctx, log, event.Query{Session: s})
}

// ReadNewestTurns returns the newest n turns of a session, oldest of them first, without reading
// the others.
func ReadNewestTurns(ctx context.Context, log *store.Reader, s event.SessionID, n int) ([]Turn, error) {
	if n <= 0 {
		return nil, nil
	}
	var first event.Seq
	q := event.Query{Session: s, Types: []event.Type{event.MessageReceived}, Newest: true, Limit: n}
	for e, err := range log.Events(ctx, q) {
		if err != nil {
			return nil, err
		}
		first = e.Seq
	}
	if first == 0 {
		return nil, nil
	}
	return readTurns(ctx, log, event.Query{Session: s, After: first - 1})
}

func readTurns(ctx context.Context, log *store.Reader, q event.Query) ([]Turn, error) {
	var runs []*kernel.Record
	at := map[event.RunID]*kernel.Record{}
	q.Types = []event.Type{event.MessageReceived, event.Responded, event.ProviderError, event.OutcomeUnknown}
	for e, err := range log.Events(ctx, q) {
		if err != nil {
			return nil, err
		}
		if at[e.Run] == nil {
			if q.After > 0 && e.Type != event.MessageReceived {
				continue // an older turn, whose end recovery wrote late
			}
			at[e.Run] = &kernel.Record{Result: kernel.Result{Run: e.Run}}
			runs = append(runs, at[e.Run])
		}
		if err := at[e.Run].Apply(e); err != nil {
			return nil, err
		}
	}
	var turns []Turn
	for _, r := range runs {
		t := Turn{
			Run: r.Run, Input: r.Input, At: r.At, Sender: r.Received.Sender, Source: r.Received.Source, Text: r.Received.Text, Pruned: r.Pruned,
			Outcome: r.Outcome, Answer: r.Text, StopReason: r.StopReason, DurationMS: r.Duration.Milliseconds(),
		}
		if r.Err != nil {
			t.Error = r.Err.Error()
		}
		turns = append(turns, t)
	}
	return turns, nil
}

// Ending says how a turn ended that was not simply answered; it is empty for one that was.
func (t Turn) Ending() string {
	switch t.Outcome {
	case "":
		return "no outcome on record yet"
	case kernel.OutcomeProviderError:
		return "failed: " + t.Error
	case kernel.OutcomeUnknown:
		return "outcome unknown: " + t.Error
	}
	if t.StopReason == "end_turn" || t.Pruned {
		return ""
	}
	return t.StopReason
}
