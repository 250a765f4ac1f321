package main

import (
	"encoding/json"
	"errors"

	"github.com/perlica/perlica/kernel"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/provider"
)

// schemaVersion is the version of the JSON that run prints. It changes when a field
// changes its meaning or goes, not when one is added.
const schemaVersion = 1

// resultRecord is the object that ends every run's JSON.
type resultRecord struct {
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

// newResultRecord says what became of a run; err is why it was not accepted, if so.
func newResultRecord(res kernel.Result, err error) resultRecord {
	r := resultRecord{
		Type: "result", Schema: schemaVersion,
		RunID: string(res.Run), InputID: string(res.Input), SessionID: string(res.Session), Provider: res.Provider,
		Text: res.Text, StopReason: res.StopReason, Outcome: string(res.Outcome), Usage: res.Usage, Cost: res.Cost,
		DurationMS: res.Duration.Milliseconds(), Permissions: res.Permissions, Unasked: res.Unasked,
		Blocked: res.Blocked, Calls: res.Calls, Replayed: res.Replayed, Pruned: res.Pruned, Stopped: res.Stopped, Warnings: res.Warnings,
		Error: res.Err,
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
		r.Error = &provider.Error{Provider: res.Provider, Message: err.Error(), Type: "perlica"}
		if code := runErrorCode(err); code == 2 {
			r.Error.Type = "usage"
		} else if code == 7 {
			r.Error.Type = provider.TypeRecord
		}
		var stopped *kernel.StoppedError
		if errors.As(err, &stopped) {
			r.Error.Type, r.Stopped = provider.TypeStopped, &stopped.Stop
		}
	}
	code := exitCode(res, false)
	r.IsError = err != nil || code != 0 && code != 5
	return r
}
