package acp

import (
	"encoding/json"
	"errors"
	"slices"

	"github.com/coder/acp-go-sdk"

	"github.com/perlica/perlica/interaction/form"
	"github.com/perlica/perlica/provider"
)

// elicitations are the methods by which an agent has the client fill in a form: ACP's, and its forerunner.
var elicitations = []string{acp.ClientMethodElicitationCreate, "session/elicitation"}

// declined reports whether a request is an elicitation that wants a secret, whose answer would be on record, or that
// asks for approval and that the policy refuses: the agent then has its answer. No rule and no mode accepts one: only
// the client does.
func (r *relay) declined(f provider.Frame) bool {
	if !slices.Contains(elicitations, f.Method) {
		return false
	}
	var v struct {
		Tool    string                     `json:"toolCallId"`
		Message string                     `json:"message"`
		Schema  json.RawMessage            `json:"requestedSchema"`
		Meta    map[string]json.RawMessage `json:"_meta"`
	}
	_ = json.Unmarshal(provider.ParseMessage(f.Line).Params, &v) // what has another form asks for none
	if _, err := form.Read(v.Message, v.Schema); errors.Is(err, form.ErrSecret) {
		r.decline(f)
		return true
	}
	var texts []string
	if _, ok := v.Meta[provider.ApprovalMark]; !ok {
		if v.Schema == nil || !form.Approval(v.Message, v.Schema) {
			return false
		}
		texts = form.Texts(v.Message, v.Schema)
	}
	tool := provider.ToolCall{ID: acp.ToolCallId(v.Tool), Kind: acp.ToolKindExecute, Title: v.Message, RawInput: v.Meta["tool_params"]}
	if tool.ID == "" {
		tool.ID = acp.ToolCallId("perlica:" + f.ID)
	}
	r.mu.Lock()
	s := r.find(f.Session)
	r.mu.Unlock()
	if s != nil && !s.at.Refuses(f.ID, tool, texts) {
		return false
	}
	r.decline(f)
	return true
}

func (r *relay) decline(f provider.Frame) {
	_ = r.conn.Carry(resultLine(f.ID, map[string]string{"action": "decline"})) // as in carry
}
