package acp

import (
	"cmp"
	"encoding/json"
	"strings"

	"github.com/perlica/perlica/provider"
	"github.com/perlica/perlica/provider/exception"
)

// fromClient handles a line of the client. It sends the line to the agent unless an exception
// applies.
func (r *relay) fromClient(line []byte) {
	m := provider.ParseMessage(line)
	if provider.Divided(line) {
		r.refuseRequest(r.home, line, cmp.Or(m.ID, "null"), codeParse,
			"some programs end a line at a carriage return: this one may have it at its end only")
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
			r.refuseRequest(r.home, line, "null", codeParse, "this line is no JSON-RPC message")
		}
	}
}

// target holds the common members of most requests.
type target struct {
	Session string `json:"sessionId"`
	Dir     string `json:"cwd"`
}

func (r *relay) clientRequest(m provider.Message) {
	var to target
	// An error is ignored, because a request of another form names no session and no directory.
	_ = json.Unmarshal(m.Params, &to)
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
		r.refuseRequest(at, m.Line, m.ID, codeInternal, foreign.Error())
		return
	}
	if twin || r.isOwn(m.Key) {
		r.refuseRequest(at, m.Line, m.ID, codeInvalid, "another request with this id is open, or the id is of Perlica's own")
		return
	}
	exempt := exception.Of(exception.Client, m.Method)
	if code, why := r.outside(m, exempt); why != "" {
		r.refuseRequest(at, m.Line, m.ID, code, why)
		return
	}
	q := &request{id: m.ID, method: m.Method, at: at}
	switch exempt.Does {
	case exception.Initializes:
		r.initialize(m, q)
		return
	case exception.Opens:
		r.openSession(m, q, to)
		return
	case exception.Prompts:
		r.prompt(m, s)
		return
	case exception.Closes:
		if s != nil && s.parent == nil {
			q.closes = s
		}
		r.addRequest(m, q)
		r.stopSession(s, &stopLine{line: m.Line})
		return
	case exception.Chooses:
		if s != nil && s.parent == nil {
			r.addRequest(m, q)
			s.carryChoice(m)
			return
		}
	default:
		if why := blocked(m); why != "" {
			r.refuseRequest(at, m.Line, m.ID, codeMethod, why)
			return
		}
	}
	r.carryRequest(m, q)
}

// blocked returns the reason why a request must not pass, or "".
func blocked(m provider.Message) string {
	switch exception.Of(exception.Client, m.Method).Does {
	case exception.Steers:
		return m.Method + " would be an input without a record: send it as a session/prompt"
	case exception.Reserved:
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

// carryRequest sends a request to the agent.
func (r *relay) carryRequest(m provider.Message, q *request) {
	r.addRequest(m, q)
	// If the agent has ended, Serve answers the request with an error.
	_ = r.conn.Carry(m.Line)
}

// addRequest registers a request that waits for its answer.
func (r *relay) addRequest(m provider.Message, q *request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.requests[m.Key] = q
}

// initialize sends the client's initialize request to the agent without the withheld capabilities.
func (r *relay) initialize(m provider.Message, q *request) {
	var v struct {
		Client struct{ Name, Version string } `json:"clientInfo"`
	}
	// An error is ignored, because the client's name is optional.
	_ = json.Unmarshal(m.Params, &v)
	r.mu.Lock()
	r.client = cmp.Or(r.opt.Visitor, strings.TrimSpace(v.Client.Name+" "+v.Client.Version))
	r.mu.Unlock()
	line, err := initializeLine(m.Line, r.withheld())
	if err == nil && r.opt.Agent.Model {
		line, err = withHTTP(line)
	}
	if err == nil && string(line) != string(m.Line) {
		r.recordLine(r.home, false, m.Line)
		m.Line = line
	}
	r.carryRequest(m, q)
}

// withheld lists the client's capabilities that are hidden from the agent.
func (r *relay) withheld() (names []string) {
	if !r.opt.Local {
		names = append(names, "fs", "terminal")
	}
	if r.opt.Visitor != "" {
		// The client must not log in, because a login would happen on this machine.
		names = append(names, "auth")
		if r.opt.Answers == AnswersNone {
			names = append(names, "elicitation")
		}
	}
	return names
}

func (r *relay) clientNotification(m provider.Message) {
	switch exception.Of(exception.Client, m.Method).Does {
	case exception.Cancels:
		var v target
		// An error is ignored, because a notification of another form names no session.
		_ = json.Unmarshal(m.Params, &v)
		r.stopSession(r.session(v.Session), &stopLine{line: m.Line, cancels: true})
		return
	case exception.Withdraws:
		key := canceled(m.Line)
		r.mu.Lock()
		q := r.requests[key]
		r.mu.Unlock()
		switch {
		case r.isOwn(key):
			// The id belongs to a request of Perlica, which the client cannot cancel. The line is only recorded.
			r.recordLine(r.home, false, m.Line)
			return
		case q != nil && q.prompt != nil && q.prompt.haltTurn(&stopLine{line: m.Line, cancels: true, prompt: q.prompt}):
			return
		}
	}
	// A client on another machine may send only the notifications above. Any other line is only recorded.
	if r.opt.Visitor != "" {
		r.recordLine(r.home, false, m.Line)
		return
	}
	// An error means that the agent has ended. Serve reports it.
	_ = r.conn.Carry(m.Line)
}

// carryChoice sends the client's choice of a mode or an option. The choice waits until Perlica has chosen its own mode,
// and until the client's earlier waiting lines have passed.
func (s *session) carryChoice(m provider.Message) {
	before, gone := s.last, make(chan struct{})
	s.last = gone
	send := func() {
		defer close(gone)
		s.chosen(m)
		// An error means that the agent has ended. Serve reports it.
		_ = s.r.conn.Carry(m.Line)
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

// chosen records that the client chooses a mode.
func (s *session) chosen(m provider.Message) {
	var v struct {
		ModeID, ConfigID string
		Value            any
	}
	// An error is ignored, because a request of another form chooses no mode.
	_ = json.Unmarshal(m.Params, &v)
	if value, ok := v.Value.(string); ok && v.ConfigID != "" && v.ConfigID == s.modeOption {
		v.ModeID = value
	}
	if v.ModeID != "" {
		s.at.ChosenMode(v.ModeID)
	}
}
