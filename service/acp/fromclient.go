package acp

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/coder/acp-go-sdk"

	"github.com/perlica/perlica/provider/jsonrpc"
)

// fromClient acts upon a line of the client, and sends it on unless it is one of the exceptions.
func (r *relay) fromClient(line []byte) {
	m := jsonrpc.Parse(line)
	if jsonrpc.Divided(line) {
		r.refuse(r.home, line, cmp.Or(m.ID, "null"), codeParse, "some programs end a line at a carriage return: this one may have it at its end only")
		return
	}
	switch m.Kind {
	case jsonrpc.Request:
		r.clientRequest(m)
	case jsonrpc.Notification:
		r.clientNotification(m)
	case jsonrpc.Response:
		r.clientResponse(m)
	default:
		if len(strings.TrimSpace(string(line))) > 0 {
			r.refuse(r.home, line, "null", codeParse, "this line is no JSON-RPC message")
		}
	}
}

// target is what most requests name.
type target struct {
	Session string `json:"sessionId"`
	Dir     string `json:"cwd"`
}

func (r *relay) clientRequest(m jsonrpc.Message) {
	var to target
	_ = json.Unmarshal(m.Params, &to) // what has another form names nothing
	s := r.session(to.Session)
	at := r.home
	if s != nil {
		at = s.at
	}
	r.mu.Lock()
	_, twin := r.requests[m.ID]
	r.mu.Unlock()
	if twin || strings.HasPrefix(m.ID, `"`+r.prefix()) {
		r.refuse(at, m.Line, m.ID, codeInvalid, "another request with this id is open, or the id is of Perlica's own")
		return
	}
	q := &request{method: m.Method, at: at}
	switch m.Method {
	case acp.AgentMethodInitialize:
		r.initialize(m, q)
		return
	case acp.AgentMethodSessionNew, acp.AgentMethodSessionLoad, acp.AgentMethodSessionResume, "session/fork":
		r.openSession(m, q, to)
		return
	case acp.AgentMethodSessionPrompt:
		r.prompt(m, s)
		return
	case acp.AgentMethodSessionClose, "session/delete":
		if s != nil && s.parent == nil {
			q.closes = s
		}
		r.stop(s, nil)
	case acp.AgentMethodSessionSetMode, acp.AgentMethodSessionSetConfigOption:
		if s != nil {
			<-s.ready // the answer to Perlica's own choice comes first
			s.chosen(m)
		}
	default:
		if why := blocked(m); why != "" {
			r.refuse(at, m.Line, m.ID, codeMethod, why)
			return
		}
	}
	r.carry(m, q)
}

// blocked returns why a request does not go on, or "".
func blocked(m jsonrpc.Message) string {
	if slices.Contains(steered, m.Method) {
		return m.Method + " would be an input without a record: send it as a session/prompt"
	}
	if strings.HasPrefix(m.Method, "_"+metaPrefix) {
		return "there is no such method: " + m.Method
	}
	var v struct {
		Prompt []json.RawMessage `json:"prompt"`
	}
	if json.Unmarshal(m.Params, &v) == nil && v.Prompt != nil {
		return m.Method + " carries a prompt, and only a session/prompt is an input"
	}
	return ""
}

// carry sends a request on.
func (r *relay) carry(m jsonrpc.Message, q *request) {
	r.mu.Lock()
	r.requests[m.ID] = q
	r.mu.Unlock()
	_ = r.conn.Carry(m.Line) // if the agent has gone, serve answers
}

// initialize sends the client's introduction on, without what Perlica does not let it offer.
func (r *relay) initialize(m jsonrpc.Message, q *request) {
	var v struct {
		Client struct{ Name, Version string } `json:"clientInfo"`
	}
	_ = json.Unmarshal(m.Params, &v) // it may be absent
	r.mu.Lock()
	r.client = strings.TrimSpace(v.Client.Name + " " + v.Client.Version)
	r.mu.Unlock()
	line, err := initializeLine(m.Line, r.opt.Local)
	if err == nil && string(line) != string(m.Line) {
		r.record(r.home, false, m.Line)
		m.Line = line
	}
	r.carry(m, q)
}

func (r *relay) clientNotification(m jsonrpc.Message) {
	var v struct {
		Session string          `json:"sessionId"`
		Request json.RawMessage `json:"requestId"`
	}
	_ = json.Unmarshal(m.Params, &v) // what has another form names nothing
	switch m.Method {
	case acp.AgentMethodSessionCancel:
		if s := r.session(v.Session); s != nil && r.stop(s, m.Line) {
			return
		}
	case "$/cancel_request":
		r.mu.Lock()
		q := r.requests[string(v.Request)]
		r.mu.Unlock()
		if q != nil && q.prompt != nil {
			q.prompt.halt(m.Line)
			return
		}
	}
	_ = r.conn.Carry(m.Line) // as in carry
}

// stop stops the turns of a session, and reports whether there were any. line is how the client asks
// the agent to cancel; nil: in no words of its own.
func (r *relay) stop(s *session, line []byte) (stopped bool) {
	if s == nil {
		return false
	}
	for _, p := range s.open() {
		stopped = true
		p.halt(line)
	}
	return stopped
}

// clientResponse takes an answer to a request of the agent.
func (r *relay) clientResponse(m jsonrpc.Message) {
	r.mu.Lock()
	q := r.asked[m.ID]
	permission := q != nil && q.method == acp.ClientMethodSessionRequestPermission
	late := permission && (q.over || q.replied || q.question == nil)
	var with request // what it is now: an answer from elsewhere may leave at this moment
	if q != nil {
		q.over = true
		with = *q
	}
	r.mu.Unlock()
	switch {
	case late:
		r.record(q.at, false, m.Line)
	case permission:
		r.answer(&with, m)
	default:
		_ = r.conn.Carry(m.Line) // as in carry
	}
}

// chosen takes in that the client chooses a mode.
func (s *session) chosen(m jsonrpc.Message) {
	var v struct {
		ModeID, ConfigID string
		Value            any
	}
	_ = json.Unmarshal(m.Params, &v) // what has another form chooses nothing
	if value, ok := v.Value.(string); ok && v.ConfigID != "" && v.ConfigID == s.modeOption {
		v.ModeID = value
	}
	if v.ModeID != "" {
		s.at.ChosenMode(v.ModeID)
	}
}
