package acp

import (
	"bytes"
	"encoding/json"

	"github.com/coder/acp-go-sdk"

	"github.com/perlica/perlica/kernel"
	"github.com/perlica/perlica/provider"
)

// Pass takes a line of the agent, and sends it on unless it is one of the exceptions.
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
	case f.Kind == provider.Notification && f.Method == cancelRequest && !r.withdrawn(f.Line):
		return
	case f.Kind == provider.Notification && f.Method == acp.ClientMethodSessionUpdate:
		r.saidMode(f)
		r.named(f)
	}
	r.out.add(f.Line, at.Durable())
}

// agentResponse takes the agent's answer to a request of the client.
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
	case q.prompt != nil: // it goes on when the outcome is on disk
		held := r.out.hold(f.Line, nil)
		r.mu.Lock()
		first, answered := q.prompt.held == nil, r.requests[f.Key] != q
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
		m := provider.ParseMessage(f.Line)
		if _, err := provider.Version(m.Result); err != nil {
			r.mu.Lock()
			r.foreign = err
			r.mu.Unlock()
			r.opt.Log("%v", err)
			r.say(at, errorLine(q.id, codeInternal, err.Error()))
			return
		}
		r.mu.Lock()
		_ = json.Unmarshal(m.Result, &r.agent) // what has another form is left out
		r.mu.Unlock()
		if line := initializedLine(f.Line); string(line) != string(f.Line) {
			r.record(at, true, line)
			f.Line = line
		}
	case q.closes != nil && provider.ParseMessage(f.Line).Error == nil:
		held := r.out.hold(f.Line, at.Durable())
		r.turns.Go(func() {
			r.freed(q.closes, q.method)
			r.out.release(held, f.Line) // another may go on with the session now
		})
		return
	case q.open != nil:
		if q.loaded != nil {
			q.loaded()
		}
		held := r.out.hold(f.Line, at.Durable()) // before what Perlica says of the session
		r.opened(q, provider.ParseMessage(f.Line))
		r.out.release(held, f.Line) // the session takes prompts now
		return
	}
	r.out.add(f.Line, at.Durable())
}

// agentRequest reports whether a request of the agent goes on at once.
func (r *relay) agentRequest(f provider.Frame) bool {
	if f.Method == acp.ClientMethodSessionRequestPermission {
		r.mu.Lock()
		defer r.mu.Unlock()
		if q := r.asked[f.Key]; q != nil && q.line == nil && !q.replied {
			q.line, q.session = f.Line, r.find(f.Session)
		}
		return false
	}
	return !provider.IsLocal(f.Method) && !r.declined(f)
}

// cancelRequest is the notification by which a peer cancels a request of its own.
const cancelRequest = "$/cancel_request"

// canceled is the key of the request that a $/cancel_request names, or "".
func canceled(line []byte) string {
	var v struct {
		Request json.RawMessage `json:"requestId"`
	}
	_ = json.Unmarshal(provider.ParseMessage(line).Params, &v) // what has another form names nothing
	return provider.IDKey(string(v.Request))
}

// withdrawn takes in that the agent cancels a request, and reports whether the client has it. A question
// ends everywhere, and the agent has its answer; what is said to it is late.
func (r *relay) withdrawn(line []byte) bool {
	key := canceled(line)
	r.mu.Lock()
	q := r.asked[key]
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

// saidMode takes in that the agent says its mode itself.
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
	if q := c.r.asked[provider.IDKey(p.ID)]; q != nil {
		q.permission = p
	}
	c.r.mu.Unlock()
	c.Attached.RequestPermission(p)
}
