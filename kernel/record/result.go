package record

import (
	"encoding/json"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/provider"
	"time"
)

// Outcome is the end of an intent.
type Outcome string

// The three outcomes.
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
	Text        string           // all messages of the turn, in wire order; each message begins a line
	Content     []provider.Block // the parts of the messages that are not text; Content returns their data
	StopReason  string           // as the agent wrote it
	Usage       json.RawMessage
	OfSession   bool // Usage counts the agent's session so far and not the turn
	Cost        *fact.Cost
	Duration    time.Duration
	Permissions fact.Permissions
	Unasked     []fact.UnaskedTool
	Blocked     int
	Calls       int // made for this input by this run or by the replayed one: 0 or 1
	Err         *provider.Error
	Stopped     *fact.Stop // the reason for a stop of the turn, or nil
	Replayed    bool       // the input was called before, and this is its recorded result
	Pruned      bool       // payloads of the run were removed from the log
	Damage      string     // the row of the first damaged event that was read
	Warnings    []string
}

// Freed counts the tools that ran without a question because a person had said yes for good.
func (r Result) Freed() (n int) {
	for _, u := range r.Unasked {
		if u.FreedBy != "" {
			n++
		}
	}
	return n
}

// Tokens returns the numbers of the usage in the form that agents use. ok is false without such numbers.
func (r Result) Tokens() (in, out int64, ok bool) {
	var u struct {
		In  *int64 `json:"inputTokens"`
		Out *int64 `json:"outputTokens"`
	}
	if json.Unmarshal(r.Usage, &u) != nil || u.In == nil || u.Out == nil {
		return 0, 0, false
	}
	return *u.In, *u.Out, true
}
