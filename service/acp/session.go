package acp

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/coder/acp-go-sdk"

	"github.com/perlica/perlica/kernel"
	"github.com/perlica/perlica/kernel/filelock"
	"github.com/perlica/perlica/provider"
)

// session is a session that the client has opened. With a parent it is a session that the agent has
// opened within another one.
type session struct {
	r          *relay
	id         string
	parent     *session
	at         *kernel.Attached
	place      *Place
	modeOption string        // the config option that chooses a mode
	ready      chan struct{} // closed when the mode is chosen or err is set
	err        error         // the reason why the session accepts no prompt
	prompts    []*prompt     // the open prompts in their order; guarded by relay.mu

	// last is closed when the client's waiting lines to this session have passed. A prompt that waits for another
	// prompt is not among these lines. The goroutine of Serve owns last.
	last <-chan struct{}
	said bool // the agent has reported its mode since the session was opened; guarded by relay.mu
}

// opening is a session that the client is opening.
type opening struct {
	session string // the continued or forked session
	how     string // "load" or "resume"
	place   *Place
	setup   kernel.Setup
}

// session returns an open session of the client, or nil.
func (r *relay) session(id string) *session {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.sessions[id]
}

// allSessions returns the sessions of the client and the sessions of the agent.
func (r *relay) allSessions() []*session {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Collect(maps.Values(r.sessions))
}

// sessionOfLine returns the session of an agent's line, or nil.
func (r *relay) sessionOfLine(id string) *session {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.findSession(id)
}

// freed handles the agent's answer that it has closed or deleted a session. Other processes may
// then continue the session.
func (r *relay) freed(s *session, method string) {
	for _, p := range s.unanswered() {
		<-p.done
	}
	<-s.ready
	r.mu.Lock()
	if r.sessions[s.id] == s {
		delete(r.sessions, s.id)
	}
	for id, child := range r.sessions {
		if child.parent == s {
			delete(r.sessions, id)
		}
	}
	r.mu.Unlock()
	if method == acp.AgentMethodSessionClose {
		s.at.ClosedByClient()
	}
	s.at.Close()
}

// findSession returns the session of an agent's line by its id. An unknown id belongs to a child of
// the only session with a running turn. The caller holds mu.
func (r *relay) findSession(id string) *session {
	if r.opening[id] != nil {
		return nil
	}
	if s := r.sessions[id]; s != nil || id == "" {
		return s
	}
	for _, q := range r.requests {
		if q.open != nil && q.open.how == "" {
			// The id may belong to a new session, because the agent has not told its id yet.
			return nil
		}
	}
	return r.child(id, r.running())
}

// running returns the only session with a running turn, or nil. The caller holds mu.
func (r *relay) running() (parent *session) {
	for _, s := range r.sessions {
		if s.parent != nil || len(s.prompts) == 0 {
			continue
		}
		if parent != nil {
			return nil
		}
		parent = s
	}
	return parent
}

// child registers the agent's own session within another one, which may itself be a child. It
// returns nil if the parent is unknown. The caller holds mu.
func (r *relay) child(id string, parent *session) *session {
	if parent == nil {
		return nil
	}
	if parent.parent != nil {
		parent = parent.parent
	}
	child := &session{r: r, id: id, parent: parent, at: parent.at, place: parent.place, ready: parent.ready}
	r.sessions[id] = child
	return child
}

// useless reports whether a session will never accept a prompt.
func (s *session) useless() bool {
	return closed(s.ready) && s.err != nil
}

// openSession sends a request that opens a session in a directory. The session's lines are recorded
// in the directory's project.
func (r *relay) openSession(m provider.Message, q *request, to target) {
	if !filepath.IsAbs(to.Dir) {
		r.refuseRequest(r.home, m.Line, m.ID, codeParams, fmt.Sprintf("cwd is %q: it must be an absolute path", to.Dir))
		return
	}
	place, err := r.opt.Open(r.ctx, to.Dir)
	if err == nil {
		err = r.recoverRuns(place)
	}
	if err != nil {
		code := codeInternal
		if errors.Is(err, fs.ErrNotExist) {
			code = codeParams
		}
		r.refuseRequest(r.home, m.Line, m.ID, code, "the project of "+to.Dir+" cannot be opened: "+err.Error())
		return
	}
	o := &opening{session: to.Session, place: place, setup: place.Setup(to.Dir)}
	q.open, q.at = o, place.Runner.Unattached(to.Session)
	switch m.Method {
	case acp.AgentMethodSessionLoad:
		o.how = "load"
	case acp.AgentMethodSessionResume:
		o.how = "resume"
	}
	if o.how != "" {
		if o.setup.Session, err = place.Runner.SessionOf(r.ctx, to.Session); err != nil {
			r.refuseRequest(q.at, m.Line, m.ID, codeInternal, err.Error())
			return
		}
		// The agent may know a session that is not on the record. A client on another machine must not reach it.
		if r.opt.Visitor != "" && o.setup.Session == "" {
			r.refuseRequest(q.at, m.Line, m.ID, codeParams, "there is no such session on this project's record")
			return
		}
		r.mu.Lock()
		switch s := r.sessions[to.Session]; {
		case s == nil || s.parent != nil || s.useless():
			r.opening[to.Session] = q.at
		case o.how == "load" && len(s.prompts) == 0:
			s.reloadSession(q)
		}
		r.mu.Unlock()
	}
	r.carryRequest(m, q)
}

// reloadSession records that the client loads an open session again. A later prompt waits for the
// agent's answer, because the agent reports earlier turns until then.
func (s *session) reloadSession(q *request) {
	answered, loaded := make(chan struct{}), s.at.Loading()
	q.loaded = sync.OnceFunc(func() {
		loaded()
		close(answered)
	})
	s.last = answered
}

// recoverRuns records the missing outcomes of ended processes in a project.
func (r *relay) recoverRuns(place *Place) error {
	if !place.Runner.Unfinished() || r.recovered[place.Runner] {
		return nil
	}
	ended, err := place.Runner.Recover(r.ctx)
	for _, res := range ended {
		r.opt.Log("run %s ended without an outcome, which is unknown now: it will not be sent again (perlica log open)",
			res.Run)
	}
	r.recovered[place.Runner] = err == nil
	return err
}

// opened handles the answer to a request that opened a session.
func (r *relay) opened(q *request, m provider.Message) {
	o := q.open
	id := o.session
	var v struct {
		Session string `json:"sessionId"`
	}
	if o.how == "" {
		if json.Unmarshal(m.Result, &v) != nil || v.Session == "" {
			return
		}
		id = v.Session
	}
	old := r.session(id)
	if m.Error != nil || old != nil && old.parent == nil && !old.useless() {
		r.mu.Lock()
		delete(r.opening, o.session)
		r.mu.Unlock()
		return
	}
	if old != nil && old.parent == nil {
		old.at.Close()
	}
	opened := r.conn.Adopt(id, m.Result)
	s := &session{r: r, id: id, place: o.place, modeOption: opened.ModeOption, ready: make(chan struct{})}
	s.last = s.ready
	r.mu.Lock()
	agent, by := r.agent, r.client
	r.mu.Unlock()
	var err error
	s.at, err = o.place.Runner.Attach(r.ctx, kernel.Attachment{
		Setup: o.setup, Conn: r.conn, Opened: opened, Agent: agent, Continued: o.how, By: "client, " + by,
		Alone: func() { r.opt.Log("session %s: the agent works without a prompt", id) },
	})
	if err != nil {
		s.at = o.place.Runner.Unattached(id)
		s.err = err
		// The session is busy in another process. The agent has not loaded the turns of that process, so the client
		// must load the session again.
		if errors.Is(err, filelock.ErrBusy) {
			s.err = fmt.Errorf("%w; load or resume the session again when it is free", err)
		}
		close(s.ready)
		r.opt.Log("session %s takes no input: %v", id, err)
	}
	r.mu.Lock()
	delete(r.opening, o.session)
	r.sessions[id] = s
	r.mu.Unlock()
	if err == nil {
		r.turns.Go(func() { s.chooseMode() })
	}
}

// chooseMode puts the agent into its asking mode. It tells the client about the new mode, unless the agent itself tells
// the client.
func (s *session) chooseMode() {
	defer close(s.ready)
	mode, asked, err := s.at.Choose(s.r.ctx)
	if err != nil {
		s.err = fmt.Errorf(
			"the agent could not be put into the mode in which it asks: %w; editor.mode = \"leave\" leaves it as it starts", err)
		s.r.opt.Log("session %s takes no input: %v", s.id, s.err)
		return
	}
	s.r.mu.Lock()
	said := s.said
	s.r.mu.Unlock()
	if !asked || said {
		return
	}
	if s.modeOption == "" {
		s.r.sendOwn(s.at, updateLine(s.id, map[string]any{"sessionUpdate": modeChanged, "currentModeId": mode}))
		return
	}
	s.r.sendOwn(s.at, updateLine(s.id, map[string]any{"sessionUpdate": optionsChanged,
		"configOptions": s.at.Offers().Options}))
}

// unanswered returns the prompts of a session that have no answer yet.
func (s *session) unanswered() []*prompt {
	s.r.mu.Lock()
	defer s.r.mu.Unlock()
	return append([]*prompt(nil), s.prompts...)
}

// notice returns a message of Perlica in a session.
func notice(lines ...string) string { return "[perlica] " + strings.Join(lines, " ") + "\n" }
