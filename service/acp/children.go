package acp

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/perlica/perlica/provider"
)

// named registers the agent's own sessions that an update names: announced subagents and sessions
// that tool calls begin.
func (r *relay) named(f provider.Frame) {
	if !bytes.Contains(f.Line, []byte("subagent")) && !bytes.Contains(f.Line, []byte("ThreadId")) {
		return
	}
	var v struct {
		Update struct {
			Kind     string `json:"sessionUpdate"`
			Session  string `json:"sessionId"`         // in ACP's subagent_update
			Subagent string `json:"subagentSessionId"` // in earlier forms of this update
			RawInput struct {
				Thread  string   `json:"agentThreadId"` // in the tool calls of Codex
				Threads []string `json:"receiverThreadIds"`
			} `json:"rawInput"`
		} `json:"update"`
	}
	// An error is ignored, because an update of another form names no session.
	_ = json.Unmarshal(provider.ParseMessage(f.Line).Params, &v)
	u := v.Update
	ids := append(u.RawInput.Threads, u.RawInput.Thread)
	if strings.Contains(u.Kind, "subagent") {
		ids = append(ids, u.Session, u.Subagent)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	parent := r.findSession(f.Session)
	for _, id := range ids {
		if id != "" && r.sessions[id] == nil && r.opening[id] == nil {
			r.child(id, parent)
		}
	}
}
