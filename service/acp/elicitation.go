package acp

import (
	"encoding/json"
	"errors"

	"github.com/coder/acp-go-sdk"

	"github.com/perlica/perlica/interaction/form"
	"github.com/perlica/perlica/provider"
)

// declined reports whether Perlica has declined an elicitation. It declines a form that asks for a
// secret, because the answer would be on record. It also declines a form that asks for an approval
// that the policy refuses. Only the client accepts a form; no rule and no mode does.
func (r *relay) declined(f provider.Frame) bool {
	var v struct {
		Tool    string                     `json:"toolCallId"`
		Message string                     `json:"message"`
		Schema  json.RawMessage            `json:"requestedSchema"`
		Meta    map[string]json.RawMessage `json:"_meta"`
	}
	// An error is ignored, because a request of another form asks for no secret.
	_ = json.Unmarshal(provider.ParseMessage(f.Line).Params, &v)
	if _, err := form.Read(v.Message, v.Schema); errors.Is(err, form.ErrSecret) {
		r.declineForm(f)
		return true
	}
	var texts []string
	if _, ok := v.Meta[provider.ApprovalMark]; !ok {
		if v.Schema == nil || !form.Approval(v.Message, v.Schema) {
			return false
		}
		texts = form.Texts(v.Message, v.Schema)
	}
	tool := provider.ToolCall{ID: acp.ToolCallId(v.Tool), Kind: acp.ToolKindExecute, Title: v.Message,
		RawInput: v.Meta["tool_params"]}
	if tool.ID == "" {
		tool.ID = acp.ToolCallId("perlica:" + f.ID)
	}
	if s := r.sessionOfLine(f.Session); s != nil && !s.at.Refuses(f.ID, tool, texts) {
		return false
	}
	r.declineForm(f)
	return true
}

func (r *relay) declineForm(f provider.Frame) {
	_ = r.conn.Carry(resultLine(f.ID, map[string]string{"action": "decline"})) // an error means that the agent has ended
}
