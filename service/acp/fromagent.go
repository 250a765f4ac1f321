package acp

import (
	"bytes"
	"encoding/json"

	"github.com/coder/acp-go-sdk"

	"github.com/perlica/perlica/kernel"
	"github.com/perlica/perlica/provider"
	"github.com/perlica/perlica/provider/exception"
)

// Pass handles a line of the agent. It sends the line to the client unless an exception applies.
func (r *relay) Pass(f provider.Frame) {
	r.mu.Lock()
	at := r.place(f.Session)
	r.mu.Unlock()
	switch {
	case f.Kind == provider.Response:
		r.agentResponse(f)
		return
	case f.Kind == provider.Request && !r.agentRequest(f):
		return
	case f.Kind == provider.Notification && f.Method == acp.ClientMethodSessionUpdate:
		r.saidMode(f)
		r.named(f)
	case f.Kind == provider.Notification && exception.Of(exception.Agent, f.Method).Does == exception.Withdraws:
		if !r.withdrawn(f.Line) {
			return
		}
	}
	r.out.addLine(f.Line, at.Durable())
}

// agentResponse handles the agent's answer to a request of the client.
func (r *relay) agentResponse(f provider.Frame) {
	r.mu.Lock()
	q := r.requests[f.Key]
	if q != nil && q.prompt == nil {
		delete(r.requests, f.Key)
	}
	r.mu.Unlock()
	at := r.home
	if q != nil {
		at = q.at
	}
	switch {
	case q == nil:
	case q.prompt != nil:
		// Hold the answer back until the outcome of the turn is on disk.
		held := r.out.holdLine(f.Line, nil)
		r.mu.Lock()
		first, answered := q.prompt.held == nil, r.requests[f.Key] != q
		if first && !answered {
			q.prompt.held = held
		}
		r.mu.Unlock()
		switch {
		case answered:
			// Drop the agent's answer, because Perlica answered the prompt while this line waited for room in the
			// queue.
			r.out.releaseLine(held, nil)
		case !first:
			r.out.releaseLine(held, f.Line)
		}
		return
	case q.method == acp.AgentMethodInitialize:
		m := provider.ParseMessage(f.Line)
		if _, err := provider.Version(m.Result); err != nil {
			r.mu.Lock()
			r.foreign = err
			r.mu.Unlock()
			r.opt.Log("%v", err)
			r.sendOwn(at, errorLine(q.id, codeInternal, err.Error()))
			return
		}
		r.mu.Lock()
		// An error is ignored, because the agent need not describe itself.
		_ = json.Unmarshal(m.Result, &r.agent)
		r.mu.Unlock()
		if line := initializedLine(f.Line); string(line) != string(f.Line) {
			r.recordLine(at, true, line)
			f.Line = line
		}
	case q.closes != nil && provider.ParseMessage(f.Line).Error == nil:
		held := r.out.holdLine(f.Line, at.Durable())
		r.turns.Go(func() {
			r.freed(q.closes, q.method)
			// The client gets the answer now, because the session is free for other processes.
			r.out.releaseLine(held, f.Line)
		})
		return
	case q.open != nil:
		if q.loaded != nil {
			q.loaded()
		}
		// Queue the agent's line first, because it must precede Perlica's own lines about the session.
		held := r.out.holdLine(f.Line, at.Durable())
		r.opened(q, provider.ParseMessage(f.Line))
		// The client gets the answer now, because the session accepts prompts.
		r.out.releaseLine(held, f.Line)
		return
	}
	r.out.addLine(f.Line, at.Durable())
}

// agentRequest reports whether a request of the agent passes at once.
func (r *relay) agentRequest(f provider.Frame) bool {
	exempt := exception.Of(exception.Agent, f.Method)
	switch exempt.Does {
	case exception.Asks:
		r.mu.Lock()
		defer r.mu.Unlock()
		if q := r.agentRequests[f.Key]; q != nil && q.line == nil && !q.replied {
			q.line, q.session = f.Line, r.findSession(f.Session)
		}
		return false
	case exception.Elicits:
		return !r.declined(f)
	}
	return !exempt.OfEditor()
}

// cancelRequest is the notification that cancels a peer's own request.
const cancelRequest = "$/cancel_request"

// canceled returns the key of the request that a $/cancel_request names, or "".
func canceled(line []byte) string {
	var v struct {
		Request json.RawMessage `json:"requestId"`
	}
	// An error is ignored, because a notification of another form names no request.
	_ = json.Unmarshal(provider.ParseMessage(line).Params, &v)
	return provider.IDKey(string(v.Request))
}

// withdrawn handles the agent's cancellation of a request. It reports whether the client has the request. A cancelled
// question ends at every front end, and the agent gets an answer. A later answer of the client is dropped.
func (r *relay) withdrawn(line []byte) bool {
	key := canceled(line)
	r.mu.Lock()
	q := r.agentRequests[key]
	if q == nil || !q.judged {
		r.mu.Unlock()
		return !r.isOwn(key)
	}
	has := q.passed && !q.over
	q.over = q.over || !q.answeredByClient()
	p := q.permission
	r.mu.Unlock()
	if p != nil {
		p.Withdraw()
	}
	return has
}

// saidMode records that the agent has reported its own mode.
func (r *relay) saidMode(f provider.Frame) {
	if !bytes.Contains(f.Line, []byte(modeChanged)) && !bytes.Contains(f.Line, []byte(optionsChanged)) {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if s := r.sessions[f.Session]; s != nil {
		s.said = true
	}
}

// Client returns the client that handles the updates and questions of a session.
func (r *relay) Client(session string) provider.Client {
	if s := r.sessionOfLine(session); s != nil {
		return client{s.at, r}
	}
	return nil
}

// client is Perlica's part in a session.
type client struct {
	*kernel.Attached
	r *relay
}

// RequestPermission stores the request, because the client's answer to it passes unchanged.
func (c client) RequestPermission(p *provider.PermissionRequest) {
	c.r.mu.Lock()
	if q := c.r.agentRequests[provider.IDKey(p.ID)]; q != nil {
		q.permission = p
	}
	c.r.mu.Unlock()
	c.Attached.RequestPermission(p)
}
