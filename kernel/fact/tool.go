package fact

import (
	"encoding/json"

	"github.com/perlica/perlica/eventlog/event"
)

// ToolSeen is a tool call as the agent reported it, in Responded, Failed and UnaskedTool.
type ToolSeen struct {
	ID     string `json:"id"`
	Title  string `json:"title"`
	Kind   string `json:"kind"`
	Status string `json:"status"`
}

// UnaskedTool is the payload of policy.unasked_tool: a tool that may have changed something
// ran without a question, or did something else than was allowed, or the agent changed
// its mode by itself.
type UnaskedTool struct {
	ToolSeen
	Why string `json:"why"`
	// FreedBy is the question that a person answered with the agent's own yes for good, if
	// that is why there was no question.
	FreedBy event.InteractionID `json:"freed_by,omitempty"`
}

// ToolBlocked is the payload of tool.blocked: the agent asked Perlica to do something.
type ToolBlocked struct {
	Method    string          `json:"method"`
	RequestID string          `json:"request_id"`
	Reason    string          `json:"reason"` // ReasonBlocked
	Params    json.RawMessage `json:"params,omitempty"`
}

// ToolResult is the payload of tool.result: what the agent was answered instead.
type ToolResult struct {
	OK        bool   `json:"ok"`
	Method    string `json:"method"`
	RequestID string `json:"request_id"`
	Reason    string `json:"reason"` // ReasonBlocked
}

// ReasonBlocked is why Perlica does nothing for an agent.
const ReasonBlocked = "single_call_mode_local_tool_dispatch_disabled"
