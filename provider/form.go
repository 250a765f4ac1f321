package provider

import (
	"encoding/json"

	"github.com/coder/acp-go-sdk"
)

// Form is the content of an elicitation/create: fields to fill in, or an address to open.
type Form struct {
	Message string
	Schema  json.RawMessage // a restricted JSON Schema, as the agent wrote it; nil for an address
	URL     string
	// Approval means that the form asks for the approval of a tool call. No rule and no mode may approve it.
	Approval bool
}

// ApprovalMark is the member of _meta by which codex-acp marks an elicitation that asks for an approval.
// Perlica accepts the mark from every agent, because it only makes the judgement stricter.
const ApprovalMark = "codex_approval_kind"

// formResult is the result of an elicitation/create.
type formResult struct {
	Action  string                     `json:"action"` // accept, decline or cancel
	Content map[string]json.RawMessage `json:"content,omitempty"`
}

// Fill answers with the values of the fields. It returns when the answer has left.
func (p *PermissionRequest) Fill(content map[string]json.RawMessage) error {
	return p.sendReply("", formResult{"accept", content})
}

// Decline answers that the person does not give the values. It returns when the answer has left.
func (p *PermissionRequest) Decline() error { return p.sendReply("", formResult{Action: "decline"}) }

// requestForm handles an elicitation. It refuses an elicitation that belongs to a request or to nothing,
// because no turn is running in which a person could be asked.
func (c *Conn) requestForm(env Message) {
	var v struct {
		SessionID string                     `json:"sessionId"`
		Tool      acp.ToolCallId             `json:"toolCallId"`
		Mode      string                     `json:"mode"`
		Message   string                     `json:"message"`
		Schema    json.RawMessage            `json:"requestedSchema"`
		URL       string                     `json:"url"`
		Meta      map[string]json.RawMessage `json:"_meta"`
	}
	if err := json.Unmarshal(env.Params, &v); err != nil || v.Mode == "url" && v.URL == "" || v.Mode != "url" &&
		v.Schema == nil {
		c.refuseRequest(env.ID, -32602, "undecodable elicitation")
		c.warnClient("undecodable_request", clip(string(env.Params), 200))
		return
	}
	f := &Form{Message: v.Message}
	if v.Mode == "url" {
		f.URL = v.URL
	} else {
		f.Schema = v.Schema
	}
	tool := ToolCall{ID: v.Tool, Title: v.Message}
	if _, ok := v.Meta[ApprovalMark]; ok {
		f.Approval, tool.Kind, tool.RawInput = true, acp.ToolKindExecute, v.Meta["tool_params"]
	}
	c.putPermission(env, v.SessionID, &PermissionRequest{ID: env.ID, Tool: tool, Form: f})
}
