package main

import (
	"encoding/json"

	"github.com/perlica/perlica/kernel"
	"github.com/perlica/perlica/provider"
)

// emit prints a notice as one line of stream-json.
func (p *printer) emit(n kernel.Notice) {
	kind, fields := streamFields(n)
	p.n++
	fields["schema"], fields["n"], fields["type"] = schemaVersion, p.n, kind
	p.json(fields)
}

// streamFields is what a notice becomes in stream-json. The types are a promise to
// scripts; what has no type of its own is an update, as the agent wrote it.
func streamFields(n kernel.Notice) (kind string, fields map[string]any) {
	switch n := n.(type) {
	case kernel.Started:
		return "run.started", map[string]any{
			"run_id": n.Run, "input_id": n.Input, "session_id": n.Session, "provider": n.Provider, "agent": n.Agent, "mode": n.Mode,
		}
	case kernel.Updated:
		return updateFields(n)
	case kernel.Asked:
		return "question", map[string]any{
			"id": n.ID, "title": n.Title, "options": n.Options, "subject": n.Subject, "why": n.Why, "word": n.Word, "expires": n.Expires,
		}
	case kernel.Closed:
		f := map[string]any{"id": n.Question.ID, "answer": n.Answer}
		if n.Reason != "" {
			f["reason"] = n.Reason
		}
		return "answer", f
	case kernel.Decided:
		return "answer", map[string]any{"title": n.Title, "effect": n.Effect, "by": n.By, "why": n.Why}
	case kernel.Blocked:
		return "blocked", map[string]any{"method": n.Method}
	case kernel.Warned:
		return "warning", map[string]any{"subtype": n.Subtype, "detail": n.Detail}
	}
	return "update", map[string]any{}
}

func updateFields(n kernel.Updated) (kind string, fields map[string]any) {
	switch n.Kind {
	case provider.AgentMessageChunk:
		if n.Text != "" {
			return "text", map[string]any{"text": n.Text}
		}
	case provider.AgentThoughtChunk:
		return "thought", map[string]any{"text": n.Text}
	case provider.ToolCallStarted, provider.ToolCallUpdated:
		return "tool", map[string]any{"update": json.RawMessage(n.Raw)}
	case provider.PlanChanged:
		return "plan", map[string]any{"entries": n.Plan}
	case provider.UsageChanged:
		return "usage", map[string]any{"usage": n.Usage}
	}
	return "update", map[string]any{"update": json.RawMessage(n.Raw)}
}
