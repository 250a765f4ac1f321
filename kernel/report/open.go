package report

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/store"
	"github.com/perlica/perlica/kernel"
)

// OpenRun is a run that has no outcome, or one that is unknown and not judged yet.
type OpenRun struct {
	Run       event.RunID     `json:"run_id"`
	Session   event.SessionID `json:"session_id"`
	Input     event.InputID   `json:"input_id"`
	At        time.Time       `json:"at"`
	Provider  string          `json:"provider"`
	Text      string          `json:"text"` // of the input
	Alive     bool            `json:"alive"`
	Outcome   kernel.Outcome  `json:"outcome"`       // empty: none yet
	Sent      bool            `json:"prompt_logged"` // the prompt was put on record, just before it was written
	Lines     int             `json:"lines"`         // of the agent, behind the prompt
	Answered  bool            `json:"answered"`      // one of them was an answer to a request
	Arrived   string          `json:"arrived"`       // text of the agent's messages
	Questions []string        `json:"questions"`     // that were asked
	Known     string          `json:"known"`         // in words
	Pruned    bool            `json:"pruned,omitempty"`

	first event.Seq
}

// OpenRuns returns the runs that wait for an end or for a person's judgement, oldest first.
// locks is the folder in which living runs hold their locks. It changes nothing.
func OpenRuns(ctx context.Context, log *store.Reader, locks string) ([]OpenRun, error) {
	unfinished, err := kernel.ListUnfinished(ctx, log, locks)
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
			list = append(list, OpenRun{Run: e.Run, Outcome: kernel.OutcomeUnknown})
		}
	}
	for i := range list {
		if err := list[i].read(ctx, log); err != nil {
			return nil, err
		}
	}
	slices.SortStableFunc(list, func(a, b OpenRun) int { return cmp.Compare(a.first, b.first) })
	return list, nil
}

// read adds what the run left on the log.
func (o *OpenRun) read(ctx context.Context, log *store.Reader) error {
	r, err := kernel.ReadRecord(ctx, log, o.Run, event.Query{})
	if err != nil {
		return err
	}
	o.first, o.At, o.Session, o.Input, o.Provider, o.Text = r.First, r.At, r.Session, r.Input, r.Provider, r.Received.Text
	o.Sent, o.Lines, o.Answered, o.Pruned = r.Sent, r.Lines, r.Answered, r.Withheld
	o.Arrived, o.Known = cmp.Or(r.Text, r.Said.String()), r.Known
	if r.Err != nil {
		o.Known = r.Err.Error() + "; " + r.Known
	}
	o.Known = cmp.Or(o.Known, r.Progress())
	o.Questions = []string{}
	for _, q := range r.Questions {
		o.Questions = append(o.Questions, q.Title)
	}
	return nil
}
