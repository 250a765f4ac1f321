package acp

import (
	"errors"

	"github.com/coder/acp-go-sdk"

	"github.com/perlica/perlica/kernel"
	"github.com/perlica/perlica/provider"
)

// recorder records each line in the log of its session's project.
type recorder struct{ r *relay }

// Sent records a line to the agent. After the line of a prompt, the client's later lines may pass.
func (c recorder) Sent(f provider.Frame) error {
	at, p, dropped := c.r.sending(f)
	err := at.Sent(f)
	if p != nil {
		p.leave()
	}
	if dropped != nil {
		c.r.recordLine(at, false, dropped)
	}
	return err
}

// sending returns the recorder of a line to the agent. p is the prompt that the line sends, or nil. dropped is the
// client's answer that the line replaces, or nil.
func (r *relay) sending(f provider.Frame) (at *kernel.Attached, p *prompt, dropped []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	at = r.home
	if r.sessions[f.Session] != nil || r.opening[f.Session] != nil {
		at = r.place(f.Session)
	}
	switch f.Kind {
	case provider.Request:
		q := r.requests[f.Key]
		if q == nil { // a request of Perlica
			q = &request{id: f.ID}
			r.requests[f.Key] = q
		}
		if q.at == nil {
			q.at = at
		}
		return q.at, q.prompt, nil
	case provider.Response:
		if q := r.agentRequests[f.Key]; q != nil {
			at = q.at
			if string(q.said) != string(f.Line) {
				dropped = q.said
			}
			r.replied(f.Key, q)
		}
	}
	return at, nil, dropped
}

// Received records a line of the agent.
func (c recorder) Received(f provider.Frame) error { return c.r.receiving(f).Received(f) }

func (r *relay) receiving(f provider.Frame) *kernel.Attached {
	r.mu.Lock()
	defer r.mu.Unlock()
	at := r.place(f.Session)
	switch f.Kind {
	case provider.Request:
		// An agent must not use the id of an open question again. Perlica refuses both questions. Only the first one is
		// registered, because the client knows it and must be told its end.
		if !r.twin(f) {
			r.agentRequests[f.Key] = &agentRequest{method: f.Method, at: at,
				judged: f.Method == acp.ClientMethodSessionRequestPermission}
		}
	case provider.Response:
		if q := r.requests[f.Key]; q != nil {
			if at = q.at; q.own() {
				delete(r.requests, f.Key)
			}
		}
	}
	return at
}

// place returns the recorder of a session's lines. The caller holds mu.
func (r *relay) place(session string) *kernel.Attached {
	if s := r.findSession(session); s != nil {
		return s.at
	}
	if at := r.opening[session]; at != nil {
		return at
	}
	return r.home
}

// passive handles events that belong to no session.
type passive struct{ r *relay }

func (p passive) Update(provider.Update)                        {}
func (p passive) RequestPermission(*provider.PermissionRequest) {}
func (p passive) RefusedPermission(provider.ToolCall)           {}
func (p passive) Blocked(b provider.BlockedRequest)             { p.r.home.Blocked(b) }
func (p passive) SendHTTP() error {
	return errors.New(
		"the request belongs to no session")
}
func (p passive) Warning(w provider.Warning) { p.r.opt.Log("%s: %s", w.Subtype, w.Detail) }

// Drained lets the turns show pending updates.
func (p passive) Drained() {
	for _, s := range p.r.allSessions() {
		if s.parent == nil {
			s.at.Drained()
		}
	}
}
