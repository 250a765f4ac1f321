package acp

import (
	"bytes"
	"encoding/json"

	"github.com/coder/acp-go-sdk"

	"github.com/perlica/perlica/kernel"
	"github.com/perlica/perlica/provider"
	"github.com/perlica/perlica/provider/jsonrpc"
)

// Pass takes a line of the agent, and sends it on unless it is one of the exceptions.
func (r *relay) Pass(f jsonrpc.Frame) {
	r.mu.Lock()
	at := r.place(f.Session)
	r.mu.Unlock()
	switch {
	case f.Kind == jsonrpc.Response:
		r.agentResponse(f)
		return
	case f.Kind == jsonrpc.Request && !r.agentRequest(f):
		return
	case f.Kind == jsonrpc.Notification && f.Method == "$/cancel_request" && !r.withClient(f.Line):
		return
	case f.Kind == jsonrpc.Notification && f.Method == acp.ClientMethodSessionUpdate:
		r.saidMode(f)
	}
	r.out.add(f.Line, at.Durable())
}

// agentResponse takes the agent's answer to a request of the client.
func (r *relay) agentResponse(f jsonrpc.Frame) {
	r.mu.Lock()
	q := r.requests[f.ID]
	if q != nil && q.prompt == nil {
		delete(r.requests, f.ID)
	}
	r.mu.Unlock()
	at := r.home
	if q != nil {
		at = q.at
	}
	switch {
	case q == nil:
	case q.prompt != nil: // it goes on when the outcome is on disk
		held := r.out.hold(f.Line, nil)
		r.mu.Lock()
		first, answered := q.prompt.held == nil, r.requests[f.ID] != q
		if first && !answered {
			q.prompt.held = held
		}
		r.mu.Unlock()
		switch {
		case answered: // by Perlica, while this waited for its place
			r.out.release(held, nil)
		case !first:
			r.out.release(held, f.Line)
		}
		return
	case q.method == acp.AgentMethodInitialize:
		m := jsonrpc.Parse(f.Line)
		r.mu.Lock()
		_ = json.Unmarshal(m.Result, &r.agent) // what has another form is left out
		r.mu.Unlock()
		if line := initializedLine(f.Line); string(line) != string(f.Line) {
			r.record(at, true, line)
			f.Line = line
		}
	case q.closes != nil && jsonrpc.Parse(f.Line).Error == nil:
		held := r.out.hold(f.Line, at.Durable())
		r.turns.Go(func() {
			r.closed(q.closes, q.method)
			r.out.release(held, f.Line) // another may go on with the session now
		})
		return
	case q.open != nil:
		held := r.out.hold(f.Line, at.Durable()) // before what Perlica says of the session
		r.opened(q, jsonrpc.Parse(f.Line))
		r.out.release(held, f.Line) // the session takes prompts now
		return
	}
	r.out.add(f.Line, at.Durable())
}

// agentRequest reports whether a request of the agent goes on at once.
func (r *relay) agentRequest(f jsonrpc.Frame) bool {
	if f.Method == acp.ClientMethodSessionRequestPermission {
		r.mu.Lock()
		defer r.mu.Unlock()
		if q := r.asked[f.ID]; q != nil {
			q.line, q.session = f.Line, r.find(f.Session)
		}
		return false
	}
	return !provider.IsLocal(f.Method)
}

// withClient reports whether the request that is withdrawn is one that the client has.
func (r *relay) withClient(line []byte) bool {
	var v struct {
		Request json.RawMessage `json:"requestId"`
	}
	if json.Unmarshal(jsonrpc.Parse(line).Params, &v) != nil {
		return true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	q := r.asked[string(v.Request)]
	if q == nil || q.method != acp.ClientMethodSessionRequestPermission {
		return q == nil || !provider.IsLocal(q.method)
	}
	told := q.question != nil
	q.over = true
	return told
}

// saidMode takes in that the agent says its mode itself.
func (r *relay) saidMode(f jsonrpc.Frame) {
	if !bytes.Contains(f.Line, []byte(modeChanged)) && !bytes.Contains(f.Line, []byte(optionsChanged)) {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if s := r.sessions[f.Session]; s != nil {
		s.said = true
	}
}

// Client returns who acts upon the updates and questions of a session.
func (r *relay) Client(session string) provider.Client {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s := r.find(session); s != nil {
		return client{s.at, r}
	}
	return nil
}

// client is Perlica's part in a session.
type client struct {
	*kernel.Attached
	r *relay
}

// RequestPermission keeps the request at hand: the client's answer to it is passed on as it was
// written.
func (c client) RequestPermission(p *provider.PermissionRequest) {
	c.r.mu.Lock()
	if q := c.r.asked[p.ID]; q != nil {
		q.permission = p
	}
	c.r.mu.Unlock()
	c.Attached.RequestPermission(p)
}
