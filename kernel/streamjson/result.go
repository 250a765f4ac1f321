package streamjson

import (
	"encoding/json"
	"errors"
	"slices"

	"github.com/perlica/perlica/kernel"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/provider"
)

// Who stops a turn: the values of stopped.by.
const (
	ByUser       = "user"
	ByTerminated = "terminated"    // a signal, or the end of the terminal
	ByTimeout    = "timeout"       // --timeout
	ByPipe       = "closed_pipe"   // the reader of standard output went away
	ByOutput     = "output_failed" // standard output could not be written
)

// Result is the object that ends a run's JSON.
type Result struct {
	Type        string             `json:"type"`
	Schema      int                `json:"schema"`
	N           *int               `json:"n,omitempty"` // in stream-json
	RunID       string             `json:"run_id"`
	InputID     string             `json:"input_id"`
	SessionID   string             `json:"session_id"`
	Provider    string             `json:"provider"`
	Text        string             `json:"text"`
	StopReason  string             `json:"stop_reason"`
	Outcome     string             `json:"outcome"`
	Usage       json.RawMessage    `json:"usage"`
	Cost        *fact.Cost         `json:"cost,omitempty"`
	DurationMS  int64              `json:"duration_ms"`
	Permissions fact.Permissions   `json:"permissions"`
	Unasked     []fact.UnaskedTool `json:"unasked_tools"`
	Blocked     int                `json:"blocked_tool_calls"`
	Calls       int                `json:"calls"`
	Replayed    bool               `json:"replayed,omitempty"`
	Pruned      bool               `json:"pruned,omitempty"` // some of the recorded result
	Stopped     *kernel.Stop       `json:"stopped,omitempty"`
	Warnings    []string           `json:"warnings,omitempty"`
	IsError     bool               `json:"is_error"`
	Error       *provider.Error    `json:"error"`
}

// NewResult says what became of a run. err is why it was not accepted, if so, and kind what error
// that is: "usage", provider.TypeRecord, or "perlica" for any other.
func NewResult(res kernel.Result, err error, kind provider.ErrorType) Result {
	r := Result{
		Type: "result", Schema: Schema,
		RunID: string(res.Run), InputID: string(res.Input), SessionID: string(res.Session), Provider: res.Provider,
		Text: res.Text, StopReason: res.StopReason, Outcome: string(res.Outcome), Usage: res.Usage, Cost: res.Cost,
		DurationMS: res.Duration.Milliseconds(), Permissions: res.Permissions, Unasked: res.Unasked,
		Blocked: res.Blocked, Calls: res.Calls, Replayed: res.Replayed, Pruned: res.Pruned, Stopped: res.Stopped, Warnings: res.Warnings,
		IsError: err != nil || Failed(res), Error: res.Err,
	}
	if r.Replayed {
		r.Calls = 0 // by this command; the record says what was called
	}
	if r.Usage == nil {
		r.Usage = json.RawMessage("null")
	}
	if r.Unasked == nil {
		r.Unasked = []fact.UnaskedTool{}
	}
	if err != nil {
		r.Error = &provider.Error{Provider: res.Provider, Message: err.Error(), Type: kind}
		var stopped *kernel.StoppedError
		if errors.As(err, &stopped) {
			r.Error.Type, r.Stopped = provider.TypeStopped, &stopped.Stop
		}
	}
	return r
}

// Failed reports whether a run has no whole answer.
func Failed(res kernel.Result) bool {
	return res.Outcome != kernel.OutcomeResponded || slices.Contains([]string{"refusal", "max_tokens", "max_turn_requests"}, res.StopReason) ||
		res.Stopped != nil && slices.Contains([]string{ByUser, ByTerminated, ByTimeout, ByPipe, ByOutput}, res.Stopped.By)
}
