package record

import (
	"encoding/json"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/provider"
	"time"
)

// Outcome is the kind of a run's outcome.
type Outcome string

// These are the three outcomes.
const (
	OutcomeResponded     Outcome = "responded"
	OutcomeProviderError Outcome = "provider_error"
	OutcomeUnknown       Outcome = "outcome_unknown"
)

// Result is the result of an input.
type Result struct {
	Run      event.RunID
	Input    event.InputID
	Session  event.SessionID
	Provider string

	Outcome     Outcome
	Text        string           // the text of all messages of the turn, in wire order; each message begins on a new line
	Content     []provider.Block // the parts of the messages that are not text; Content returns their data
	StopReason  string           // as the agent wrote it
	Usage       json.RawMessage
	OfSession   bool // true if Usage covers the agent's whole session so far
	Cost        *fact.Cost
	Duration    time.Duration
	Permissions fact.Permissions
	Unasked     []fact.UnaskedTool
	Blocked     int
	Calls       int // the number of calls for this input: 0 or 1
	Err         *provider.Error
	Stopped     *fact.Stop // the stop of the turn, or nil
	Replayed    bool       // true if the input was called before, and this is the recorded result
	Pruned      bool       // true if payloads of the run were pruned
	Damage      string     // the line of text that a list shows for the first damaged event, or ""
	Warnings    []Warned
}

// Freed returns the number of tools that ran without a question after a permanent yes.
func (r Result) Freed() (n int) {
	for _, u := range r.Unasked {
		if u.FreedBy != "" {
			n++
		}
	}
	return n
}

// Tokens returns the numbers of input and output tokens in Usage. See fact.Responded.
func (r Result) Tokens() (in, out int64, ok bool) { return r.Report().Tokens() }

// Report returns the agent's report of its usage.
func (r Result) Report() fact.Responded {
	return fact.Responded{Usage: r.Usage, OfSession: r.OfSession, Cost: r.Cost}
}
