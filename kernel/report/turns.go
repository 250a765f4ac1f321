package report

import (
	"context"
	"time"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/store"
	"github.com/perlica/perlica/kernel"
	"github.com/perlica/perlica/kernel/fact"
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
	var turns []Turn
	at := map[event.RunID]int{}
	q.Types = []event.Type{event.MessageReceived, event.Responded, event.ProviderError, event.OutcomeUnknown}
	for e, err := range log.Events(ctx, q) {
		if err != nil {
			return nil, err
		}
		if _, ok := at[e.Run]; !ok {
			if q.After > 0 && e.Type != event.MessageReceived {
				continue // an older turn, whose end recovery wrote late
			}
			at[e.Run] = len(turns)
			turns = append(turns, Turn{Run: e.Run, Input: e.Input, At: e.Time})
		}
		if err := turns[at[e.Run]].apply(e); err != nil {
			return nil, err
		}
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

func (t *Turn) apply(e event.Event) error {
	t.Pruned = t.Pruned || e.Payload == nil
	if e.Type == event.MessageReceived {
		if e.Payload == nil {
			return nil // that there was a turn is known all the same
		}
		m, err := fact.Decode[fact.MessageReceived](e)
		t.Sender, t.Source, t.Text = m.Sender, m.Source, m.Text
		return err
	}
	var res kernel.Result
	err := res.Apply(e)
	t.Outcome, t.Answer, t.StopReason, t.DurationMS = res.Outcome, res.Text, res.StopReason, res.Duration.Milliseconds()
	if res.Err != nil {
		t.Error = res.Err.Error()
	}
	return err
}
