package fact

import (
	"encoding/json"

	"github.com/perlica/perlica/provider"
)

// MessageReceived is the payload of inbound.message.received: what was asked.
type MessageReceived struct {
	Text        string   `json:"text"`
	Attachments []string `json:"attachments,omitempty"`
	Source      string   `json:"source"`
	Sender      string   `json:"sender"`
	Dir         string   `json:"dir"`
	Provider    string   `json:"provider"`
}

// Truncated is the payload of context.truncated: how much history did not fit, or is gone.
type Truncated struct {
	Kept     int `json:"kept_turns"`
	Dropped  int `json:"dropped_turns"`
	Gone     int `json:"pruned_turns,omitempty"` // their payloads were removed from the log
	Budget   int `json:"budget_tokens"`
	Estimate int `json:"estimated_tokens"`
}

// Requested is the payload of llm.requested, the intent.
type Requested struct {
	Provider  string   `json:"provider"`
	Agent     []string `json:"agent"` // the command line
	Digest    string   `json:"prompt_sha256"`
	Bytes     int      `json:"prompt_bytes"`
	CallIndex int      `json:"llm_call_index"`
	// Strategy is that of the agent session that is prompted; it was not recorded at first.
	Strategy string `json:"strategy,omitempty"`
	// Input is the digest of the input's own text and attachments, by which the same input is
	// distinguished from another one under its id; it was not recorded at first.
	Input string `json:"input_sha256,omitempty"`
}

// Responded is the payload of llm.responded, the outcome of a call that was answered.
type Responded struct {
	Provider   string          `json:"provider"`
	Text       string          `json:"text"`
	StopReason string          `json:"stop_reason"`
	Usage      json.RawMessage `json:"usage,omitempty"`
	Cost       *Cost           `json:"cost,omitempty"`
	DurationMS int64           `json:"duration_ms"`
	FirstMS    int64           `json:"first_update_ms"`
	Tools      []ToolSeen      `json:"tool_calls"`
}

// Cost is what an agent's session has cost so far, as the agent says, in Responded.
type Cost struct {
	Amount   float64 `json:"amount"`
	Currency string  `json:"currency"` // ISO 4217
}

// Failed is the payload of llm.provider_error and, with what is known, of
// llm.outcome_unknown.
type Failed struct {
	*provider.Error
	DurationMS int64      `json:"duration_ms"`
	Text       string     `json:"text,omitempty"` // what had arrived
	Tools      []ToolSeen `json:"tool_calls,omitempty"`
	NoticedBy  string     `json:"noticed_by,omitempty"` // "run": seen live; "recovery": by a later start
	Known      string     `json:"known,omitempty"`
}

// Enforced is the payload of llm.single_call.enforced, which closes the record of a run.
type Enforced struct {
	Calls       int         `json:"calls"`
	Blocked     int         `json:"blocked_tool_calls"`
	LinesLost   int64       `json:"debug_lines_lost"`
	Permissions Permissions `json:"permissions"`
	Unasked     int         `json:"unasked_tools"`
	Freed       int         `json:"freed_tools,omitempty"` // that ran by a yes for good
}

// Permissions counts the questions of a run, in Enforced.
type Permissions struct {
	Asked      int `json:"asked"`
	Allowed    int `json:"allowed"`
	Denied     int `json:"denied"`
	Unanswered int `json:"unanswered"`
}

// Resolved is the payload of run.resolved: a person's judgement whether the prompt of a run
// with an unknown outcome was sent. It changes nothing: the input is never called again.
type Resolved struct {
	Sent bool   `json:"sent"`
	Note string `json:"note"`
	By   string `json:"by"`
}
