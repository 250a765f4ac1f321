package report

import (
	"cmp"
	"context"
	"slices"
	"sort"
	"time"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/store"
	"github.com/perlica/perlica/kernel/language"
	"github.com/perlica/perlica/kernel/record"
	"github.com/perlica/perlica/provider"
)

// TurnSummary is an input of a session and its result.
type TurnSummary struct {
	Run    event.RunID   `json:"run_id"`
	Input  event.InputID `json:"input_id"`
	At     time.Time     `json:"at"`
	Sender string        `json:"sender"`
	Source string        `json:"source"`
	Text   string        `json:"text"`
	// Outcome is empty if the turn has no outcome.
	Outcome record.Outcome `json:"outcome"`
	// Answer is the agent's answer, or the part that arrived before an error.
	Answer     string `json:"answer"`
	StopReason string `json:"stop_reason,omitempty"`
	Error      string `json:"error,omitempty"`
	// DurationMS is 0 if the duration is unknown.
	DurationMS int64 `json:"duration_ms,omitempty"`
	// Pruned means that payloads were pruned, so that fields may be empty.
	Pruned bool `json:"pruned,omitempty"`
	// Damage is the line of text that a list shows for the first damaged event.
	Damage string `json:"damage,omitempty"`

	// Seq is the number of the input's event.
	Seq event.Seq `json:"-"`
	err *provider.Error
}

// ReadTurns returns the newest n turns of a session, oldest first. If "before" is not zero, it returns only turns with
// an input that precedes the event with this Seq. A negative n means all turns.
func ReadTurns(ctx context.Context, log event.Reader, s event.SessionID, before event.Seq,
	n int) ([]TurnSummary, error) {
	if n < 0 && before == 0 {
		return readTurns(ctx, log, event.Query{Session: s})
	}
	if n == 0 || before == 1 {
		return nil, nil
	}
	q := event.Query{Session: s, Types: []event.Type{event.MessageReceived}, Newest: true, Limit: max(n, 0),
		Until: max(before-1, 0)}
	var first event.Seq
	var runs []event.RunID
	for e, err := range log.Events(ctx, q) {
		if err != nil {
			return nil, err
		}
		first, runs = e.Seq, append(runs, e.Run)
	}
	if first == 0 {
		return nil, nil
	}
	if before == 0 {
		return readTurns(ctx, log, event.Query{Session: s, After: first - 1})
	}
	var turns []TurnSummary
	for _, run := range slices.Backward(runs) { // one query for each run: its end may follow the event "before"
		turn, err := readTurns(ctx, log, event.Query{Run: run})
		if err != nil {
			return nil, err
		}
		turns = append(turns, turn...)
	}
	return turns, nil
}

func readTurns(ctx context.Context, log event.Reader, q event.Query) ([]TurnSummary, error) {
	var runs []*record.Record
	at := map[event.RunID]*record.Record{}
	q.Types = []event.Type{event.MessageReceived, event.Responded, event.ProviderError, event.OutcomeUnknown}
	for e, err := range log.Events(ctx, q) {
		if err != nil {
			return nil, err
		}
		if at[e.Run] == nil {
			if q.After > 0 && e.Type != event.MessageReceived {
				continue // the late end of an older turn
			}
			at[e.Run] = &record.Record{Result: record.Result{Run: e.Run}}
			runs = append(runs, at[e.Run])
		}
		if err := at[e.Run].Apply(e); err != nil {
			return nil, err
		}
	}
	var turns []TurnSummary
	for _, r := range runs {
		t := TurnSummary{
			Seq: r.First, Run: r.Run, Input: r.Input, At: r.At, Sender: r.Received.Sender, Source: r.Received.Source,
			Text: r.Received.Text, Pruned: r.Pruned, Damage: r.Damage,
			Outcome: r.Outcome, Answer: r.Text, StopReason: r.StopReason, DurationMS: r.Duration.Milliseconds(),
		}
		if r.Err != nil {
			t.Error, t.err = r.Err.Error(), r.Err
		}
		turns = append(turns, t)
	}
	return turns, nil
}

// Ending returns a text about the end of a turn without a normal answer. For a normal answer it returns "".
func (t TurnSummary) Ending(say *language.Sentences) string {
	switch t.Outcome {
	case "":
		return say.Say(noOutcome)
	case record.OutcomeProviderError:
		return fill(say, turnFailed, failure(say, t.err))
	case record.OutcomeUnknown:
		return fill(say, turnUnknown, failure(say, t.err))
	}
	if t.StopReason == "end_turn" || t.Pruned || t.Damage != "" {
		return ""
	}
	return say.Word(t.StopReason)
}

// OpenRun is a run without an outcome, or a run with an unknown outcome that no person has judged.
type OpenRun struct {
	Run      event.RunID     `json:"run_id"`
	Session  event.SessionID `json:"session_id"`
	Input    event.InputID   `json:"input_id"`
	At       time.Time       `json:"at"`
	Provider string          `json:"provider"`
	// Text is the text of the input.
	Text  string `json:"text"`
	Alive bool   `json:"alive"`
	// Outcome is empty if the run has no outcome.
	Outcome record.Outcome `json:"outcome"`
	// Sent means that the prompt was recorded. It is recorded just before it is sent.
	Sent bool `json:"prompt_logged"`
	// Lines is the number of the agent's lines after the prompt.
	Lines int `json:"lines"`
	// Answered means that one of these lines is a response.
	Answered bool `json:"answered"`
	// Arrived is the text of the agent's messages so far.
	Arrived string `json:"arrived"`
	// Questions has the titles of the run's questions.
	Questions []string `json:"questions"`
	// Known is a sentence that says how far the run came.
	Known  string `json:"known"`
	Pruned bool   `json:"pruned,omitempty"`
	// Damage is the line of text that a list shows for the first damaged event.
	Damage string `json:"damage,omitempty"`

	first event.Seq
}

// OpenRuns returns the runs that wait for an outcome or for a person's judgement, oldest first. locks is the folder in
// which processes hold the locks of their runs. OpenRuns changes nothing.
func OpenRuns(ctx context.Context, log *store.Reader, locks string) ([]OpenRun, error) {
	unfinished, err := record.ListUnfinished(ctx, log, locks)
	if err != nil {
		return nil, err
	}
	var list []OpenRun
	for _, u := range unfinished {
		list = append(list, OpenRun{Run: u.Run, Alive: u.Alive})
	}
	resolved := map[event.RunID]bool{}
	for e, err := range log.Events(ctx, event.Query{Types: []event.Type{event.RunResolved}}) {
		if err != nil {
			return nil, err
		}
		resolved[e.Run] = true
	}
	for e, err := range log.Events(ctx, event.Query{Types: []event.Type{event.OutcomeUnknown}}) {
		if err != nil {
			return nil, err
		}
		if !resolved[e.Run] {
			list = append(list, OpenRun{Run: e.Run, Outcome: record.OutcomeUnknown})
		}
	}
	for i := range list {
		if err := list[i].readFacts(ctx, log); err != nil {
			return nil, err
		}
	}
	sort.SliceStable(list, func(i, j int) bool { return list[i].first < list[j].first })
	return list, nil
}

func (o *OpenRun) readFacts(ctx context.Context, log event.Reader) error {
	r, err := record.Read(ctx, log, o.Run, event.Query{})
	if err != nil {
		return err
	}
	o.first, o.At, o.Session, o.Input, o.Provider, o.Text = r.First, r.At, r.Session, r.Input, r.Provider, r.Received.Text
	o.Sent, o.Lines, o.Answered, o.Pruned, o.Damage = r.Sent, r.Lines, r.Answered, r.Withheld, r.Damage
	o.Arrived, o.Known = cmp.Or(r.Text, r.Said.Text()), r.Known
	if r.Err != nil {
		o.Known = r.Err.Error() + "; " + r.Known
	}
	o.Known = cmp.Or(o.Known, r.Progress().Text)
	o.Questions = []string{}
	for _, q := range r.Questions {
		o.Questions = append(o.Questions, q.Title)
	}
	return nil
}
