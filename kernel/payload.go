package kernel

import (
	"encoding/json"

	"github.com/coder/acp-go-sdk"

	"github.com/perlica/perlica/eventlog"
	"github.com/perlica/perlica/provider"
)

// The payloads of the facts that a run leaves. They are read back by recovery, by the
// views and by whoever asks for a recorded result.

type messageReceived struct {
	Text        string   `json:"text"`
	Attachments []string `json:"attachments,omitempty"`
	Source      string   `json:"source"`
	Sender      string   `json:"sender"`
	Dir         string   `json:"dir"`
	Provider    string   `json:"provider"`
}

type sessionStarted struct {
	Strategy     string                `json:"strategy"`
	Agent        *acp.Implementation   `json:"agent,omitempty"`
	Capabilities acp.AgentCapabilities `json:"capabilities"`
	Mode         string                `json:"mode,omitempty"`
	Options      map[string]string     `json:"options,omitempty"` // config options that were set
}

type sessionClosed struct {
	Requested bool   `json:"requested"` // whether the agent offers session/close
	Error     string `json:"error,omitempty"`
}

type requested struct {
	Provider  string   `json:"provider"`
	Agent     []string `json:"agent"` // the command line
	Digest    string   `json:"prompt_sha256"`
	Bytes     int      `json:"prompt_bytes"`
	CallIndex int      `json:"llm_call_index"`
}

type responded struct {
	Provider   string          `json:"provider"`
	Text       string          `json:"text"`
	StopReason string          `json:"stop_reason"`
	Usage      json.RawMessage `json:"usage,omitempty"`
	Cost       *acp.Cost       `json:"cost,omitempty"`
	DurationMS int64           `json:"duration_ms"`
	FirstMS    int64           `json:"first_update_ms"`
	Tools      []ToolSeen      `json:"tool_calls"`
}

// failed is the payload of llm.provider_error and, with what is known, of
// llm.outcome_unknown.
type failed struct {
	*provider.Error
	DurationMS int64      `json:"duration_ms"`
	Text       string     `json:"text,omitempty"` // what had arrived
	Tools      []ToolSeen `json:"tool_calls,omitempty"`
	NoticedBy  string     `json:"noticed_by,omitempty"` // "run": seen live; "recovery": by a later start
	Known      string     `json:"known,omitempty"`
}

// ToolSeen is a tool call as the agent reported it.
type ToolSeen struct {
	ID     string `json:"id"`
	Title  string `json:"title"`
	Kind   string `json:"kind"`
	Status string `json:"status"`
}

// UnaskedTool is an execute, edit, delete or move that ran although nobody was asked.
type UnaskedTool struct {
	ToolSeen
	Why string `json:"why"`
}

// Permissions counts the questions of a run.
type Permissions struct {
	Asked      int `json:"asked"`
	Allowed    int `json:"allowed"`
	Denied     int `json:"denied"`
	Unanswered int `json:"unanswered"`
}

// enforced closes the record of a run.
type enforced struct {
	Calls       int         `json:"calls"`
	Blocked     int         `json:"blocked_tool_calls"`
	LinesLost   int64       `json:"debug_lines_lost"`
	Permissions Permissions `json:"permissions"`
	Unasked     int         `json:"unasked_tools"`
}

type toolBlocked struct {
	Method    string          `json:"method"`
	RequestID string          `json:"request_id"`
	Reason    string          `json:"reason"`
	Params    json.RawMessage `json:"params,omitempty"`
}

type toolResult struct {
	OK        bool   `json:"ok"`
	Method    string `json:"method"`
	RequestID string `json:"request_id"`
	Reason    string `json:"reason"`
}

// reasonBlocked is why Perlica does nothing for an agent.
const reasonBlocked = "single_call_mode_local_tool_dispatch_disabled"

type oversizedLine struct {
	Length int64  `json:"length"`
	SHA256 string `json:"sha256"`
	Head   []byte `json:"head"` // the first 64 KiB
}

type requestTimeout struct {
	Method string `json:"method"`
	After  string `json:"after"`
}

type replySent struct {
	RequestID string `json:"request_id"`
	Outcome   string `json:"outcome"` // selected, cancelled
	Option    string `json:"option,omitempty"`
	Kind      string `json:"kind,omitempty"` // of the option
	By        string `json:"by"`
	Error     string `json:"error,omitempty"` // of acp.reply.failed
}

type policyDecided struct {
	Title  string `json:"title"`
	Effect string `json:"effect"`
	By     string `json:"by"` // rule, mode, standing, tier
	Rule   any    `json:"rule,omitempty"`
	Why    string `json:"why"`
	Option string `json:"option,omitempty"`
}

type truncated struct {
	Kept     int `json:"kept_turns"`
	Dropped  int `json:"dropped_turns"`
	Budget   int `json:"budget_tokens"`
	Estimate int `json:"estimated_tokens"`
}

// decodePayload is Decode for facts that this package wrote itself.
func decodePayload[T any](e eventlog.Event) (v T, err error) {
	err = e.Decode(&v)
	return v, err
}
