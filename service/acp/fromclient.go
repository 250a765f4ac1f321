package acp

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/coder/acp-go-sdk"

	"github.com/perlica/perlica/provider"
)

// fromClient acts upon a line of the client, and sends it on unless it is one of the exceptions.
func (r *relay) fromClient(line []byte) {
	m := provider.ParseMessage(line)
	if provider.Divided(line) {
		r.refuse(r.home, line, cmp.Or(m.ID, "null"), codeParse, "some programs end a line at a carriage return: this one may have it at its end only")
		return
	}
	switch m.Kind {
	case provider.Request:
		r.clientRequest(m)
	case provider.Notification:
		r.clientNotification(m)
	case provider.Response:
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

func (r *relay) clientRequest(m provider.Message) {
	var to target
	_ = json.Unmarshal(m.Params, &to) // what has another form names nothing
	s := r.session(to.Session)
	at := r.home
	if s != nil {
		at = s.at
	}
	r.mu.Lock()
	_, twin := r.requests[m.Key]
	foreign := r.foreign
	r.mu.Unlock()
	if foreign != nil {
		r.refuse(at, m.Line, m.ID, codeInternal, foreign.Error())
		return
	}
	if twin || r.isOwn(m.Key) {
		r.refuse(at, m.Line, m.ID, codeInvalid, "another request with this id is open, or the id is of Perlica's own")
		return
	}
	if code, why := r.outside(m); why != "" {
		r.refuse(at, m.Line, m.ID, code, why)
		return
	}
	q := &request{id: m.ID, method: m.Method, at: at}
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
		r.open(m, q)
		r.stop(s, &stopLine{line: m.Line})
		return
	case acp.AgentMethodSessionSetMode, acp.AgentMethodSessionSetConfigOption:
		if s != nil && s.parent == nil {
			r.open(m, q)
			s.choice(m)
			return
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
func blocked(m provider.Message) string {
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
func (r *relay) carry(m provider.Message, q *request) {
	r.open(m, q)
	_ = r.conn.Carry(m.Line) // if the agent has gone, serve answers
}

// open takes in that a request waits for its answer.
func (r *relay) open(m provider.Message, q *request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.requests[m.Key] = q
}

// initialize sends the client's introduction on, without what Perlica does not let it offer.
func (r *relay) initialize(m provider.Message, q *request) {
	var v struct {
		Client struct{ Name, Version string } `json:"clientInfo"`
	}
	_ = json.Unmarshal(m.Params, &v) // it may be absent
	r.mu.Lock()
	r.client = cmp.Or(r.opt.Visitor, strings.TrimSpace(v.Client.Name+" "+v.Client.Version))
	r.mu.Unlock()
	line, err := initializeLine(m.Line, r.withheld())
	if err == nil && r.opt.Agent.Model {
		line, err = withHTTP(line)
	}
	if err == nil && string(line) != string(m.Line) {
		r.record(r.home, false, m.Line)
		m.Line = line
	}
	r.carry(m, q)
}

// withheld are the client's capabilities of which the agent does not hear.
func (r *relay) withheld() (names []string) {
	if !r.opt.Local {
		names = append(names, "fs", "terminal")
	}
	if r.opt.Visitor != "" {
		names = append(names, "auth") // a login happens at this machine
		if r.opt.Answers == AnswersNone {
			names = append(names, "elicitation")
		}
	}
	return names
}

func (r *relay) clientNotification(m provider.Message) {
	switch m.Method {
	case acp.AgentMethodSessionCancel:
		var v target
		_ = json.Unmarshal(m.Params, &v) // what has another form names nothing
		r.stop(r.session(v.Session), &stopLine{line: m.Line, cancels: true})
		return
	case cancelRequest:
		key := canceled(m.Line)
		r.mu.Lock()
		q := r.requests[key]
		r.mu.Unlock()
		switch {
		case r.isOwn(key):
			r.record(r.home, false, m.Line) // the client has no part in it
			return
		case q != nil && q.prompt != nil && q.prompt.halt(&stopLine{line: m.Line, cancels: true, prompt: q.prompt}):
			return
		}
	}
	if r.opt.Visitor != "" { // what it may be for is not known
		r.record(r.home, false, m.Line)
		return
	}
	_ = r.conn.Carry(m.Line) // as in carry
}

// choice sends on that the client chooses a mode or an option: behind what Perlica itself chooses, and
// behind what of the client waits for that.
func (s *session) choice(m provider.Message) {
	before, gone := s.last, make(chan struct{})
	s.last = gone
	send := func() {
		defer close(gone)
		s.chosen(m)
		_ = s.r.conn.Carry(m.Line) // as in carry
	}
	if closed(s.ready) && closed(before) {
		send()
		return
	}
	s.r.turns.Go(func() {
		for _, c := range []<-chan struct{}{s.ready, before} {
			select {
			case <-c:
			case <-s.r.ctx.Done():
				return
			}
		}
		send()
	})
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// chosen takes in that the client chooses a mode.
func (s *session) chosen(m provider.Message) {
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
