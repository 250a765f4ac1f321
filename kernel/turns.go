package kernel

import (
	"context"
	"time"

	"github.com/perlica/perlica/eventlog"
)

// RecordedTurn is an input of a session and what became of it.
type RecordedTurn struct {
	Run        eventlog.RunID   `json:"run_id"`
	Input      eventlog.InputID `json:"input_id"`
	At         time.Time        `json:"at"`
	Sender     string           `json:"sender"`
	Source     string           `json:"source"`
	Text       string           `json:"text"`
	Outcome    Outcome          `json:"outcome"` // empty: none yet
	Answer     string           `json:"answer"`  // all that had arrived, if the outcome is an error
	StopReason string           `json:"stop_reason,omitempty"`
	Error      string           `json:"error,omitempty"`
	DurationMS int64            `json:"duration_ms"`
}

// ReadTurns returns the turns of a session, oldest first.
func ReadTurns(ctx context.Context, log *eventlog.Reader, s eventlog.SessionID) ([]RecordedTurn, error) {
	var turns []RecordedTurn
	at := map[eventlog.RunID]int{}
	types := []eventlog.Type{eventlog.MessageReceived, eventlog.Responded, eventlog.ProviderError, eventlog.OutcomeUnknown}
	for e, err := range log.Events(ctx, eventlog.Query{Session: s, Types: types}) {
		if err != nil {
			return nil, err
		}
		if _, ok := at[e.Run]; !ok {
			at[e.Run] = len(turns)
			turns = append(turns, RecordedTurn{Run: e.Run, Input: e.Input, At: e.Time})
		}
		if err := turns[at[e.Run]].apply(e); err != nil {
			return nil, err
		}
	}
	return turns, nil
}

func (t *RecordedTurn) apply(e eventlog.Event) error {
	if e.Payload == nil {
		return nil // withheld; that there was a turn is known all the same
	}
	if e.Type == eventlog.MessageReceived {
		m, err := decodePayload[messageReceived](e)
		t.Sender, t.Source, t.Text = m.Sender, m.Source, m.Text
		return err
	}
	var res Result
	err := res.apply(e)
	t.Outcome, t.Answer, t.StopReason, t.DurationMS = res.Outcome, res.Text, res.StopReason, res.Duration.Milliseconds()
	if res.Err != nil {
		t.Error = res.Err.Error()
	}
	return err
}
