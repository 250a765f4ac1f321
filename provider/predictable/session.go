package predictable

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"sort"
	"strconv"
	"strings"

	"github.com/perlica/perlica/provider/agentside"
)

// firstSession is the id of the first session if Options.State is empty. Updates that belong to no session use this id,
// too.
const firstSession = "session-1"

// session is an ACP session. Its fields are guarded by agent.mu, except cwd, which never changes.
type session struct {
	id      string
	cwd     string
	mode    string
	modes   []string
	options []map[string]json.RawMessage // the configOptions of the session, as in the response to session/new
	turns   []past
	turn    *turn // the running turn, or nil
}

// past is one stored turn. It is also the JSON form of a line in a session file.
type past struct {
	CWD   string `json:"cwd,omitempty"` // set only in the first line, which is not a turn
	User  string `json:"user,omitempty"`
	Agent string `json:"agent,omitempty"`
}

const defaultModes = `{"currentModeId":"ask","availableModes":[` +
	`{"id":"ask","name":"Ask","description":"Asks before it claims to act"},` +
	`{"id":"auto","name":"Auto","description":"Claims to act without asking"}]}`

// session returns the session that params name, or nil, and the session id in params.
func (a *agent) session(params json.RawMessage) (*session, string) {
	var p struct {
		SessionID string `json:"sessionId"`
	}
	// Malformed params have no session id.
	_ = json.Unmarshal(params, &p)
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.sessions[p.SessionID], p.SessionID
}

func (a *agent) newSession(r *request) *agentside.Error {
	var p struct {
		CWD        string           `json:"cwd"`
		MCPServers *json.RawMessage `json:"mcpServers"`
	}
	if e := r.decodeParams(&p); e != nil {
		return e
	}
	if p.CWD == "" || p.MCPServers == nil {
		return &agentside.Error{Code: agentside.CodeInvalidParams, Message: "Invalid params: cwd and mcpServers are required"}
	}
	s := &session{cwd: p.CWD}
	if err := a.nameSession(s); err != nil {
		return &agentside.Error{Code: agentside.CodeInternal, Message: err.Error()}
	}
	r.sess, r.sid = s, s.id
	o := &object{}
	r.result = o.addString("sessionId", s.id).addRaw("modes", defaultModes).endObject()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.applyState(s, r.result)
	return nil
}

// nameSession gives the session the first free id and adds it to the agent. If Options.State is set, an id is free only
// if it has no session file, so no earlier process has used it.
func (a *agent) nameSession(s *session) error {
	if a.opt.State != "" {
		if err := os.MkdirAll(a.opt.State, 0o700); err != nil {
			return err
		}
	}
	for {
		a.serial++
		s.id = "session-" + strconv.Itoa(a.serial)
		if a.opt.State == "" {
			break
		}
		f, err := os.OpenFile(a.file(s.id), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if errors.Is(err, os.ErrExist) {
			continue
		}
		if err != nil {
			return err
		}
		_, err = f.Write(append(agentside.Encode(past{CWD: s.cwd}), '\n'))
		if err = errors.Join(err, f.Close()); err != nil {
			return err
		}
		break
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.sessions[s.id] = s
	return nil
}

// file returns the path of the file for a session id, or "" if the session is not stored. It accepts only ids of the
// form session-NUMBER, because an id from a scenario could be any path.
func (a *agent) file(id string) string {
	if a.opt.State == "" || !strings.HasPrefix(id, "session-") ||
		strings.Trim(id[len("session-"):], "0123456789") != "" {
		return ""
	}
	return a.opt.State + string(os.PathSeparator) + id + ".jsonl"
}

// applyState copies the id, the modes and the options in a response into the session. The caller must have locked a.mu.
func (a *agent) applyState(s *session, result json.RawMessage) {
	var p struct {
		SessionID string `json:"sessionId"`
		Modes     struct {
			Current   string `json:"currentModeId"`
			Available []struct {
				ID string `json:"id"`
			} `json:"availableModes"`
		} `json:"modes"`
		ConfigOptions []map[string]json.RawMessage `json:"configOptions"`
	}
	// A malformed result comes from the script and has no modes or options.
	_ = json.Unmarshal(result, &p)
	s.mode, s.modes, s.options = p.Modes.Current, nil, p.ConfigOptions
	for _, m := range p.Modes.Available {
		s.modes = append(s.modes, m.ID)
	}
	if p.SessionID != "" && p.SessionID != s.id {
		delete(a.sessions, s.id)
		s.id = p.SessionID
		a.sessions[s.id] = s
	}
}

// continueSession answers session/load and session/resume. It finds the session in memory or in its file. For
// session/load it also sends the earlier turns as updates.
func (a *agent) continueSession(r *request) *agentside.Error {
	var p struct {
		SessionID string `json:"sessionId"`
		CWD       string `json:"cwd"`
	}
	if e := r.decodeParams(&p); e != nil {
		return e
	}
	if r.sess, r.sid = a.session(r.params); r.sess == nil {
		s, err := a.openSession(p.SessionID)
		if err != nil {
			return &agentside.Error{Code: agentside.CodeNotFound, Message: "no such session: " + p.SessionID}
		}
		r.sess = s
		a.mu.Lock()
		a.sessions[s.id] = s
		a.mu.Unlock()
	}
	r.result = (&object{}).addRaw("modes", defaultModes).endObject()
	if r.method == "session/resume" {
		return nil
	}
	a.mu.Lock()
	turns := r.sess.turns
	a.mu.Unlock()
	for _, t := range turns {
		for _, u := range [][]byte{chunk(userChunk, t.User), chunk(messageChunk, t.Agent)} {
			if err := a.conn.WriteLine(updateLine(r.sid, u)); err != nil {
				return &agentside.Error{Code: agentside.CodeInternal, Message: err.Error()}
			}
		}
	}
	return nil
}

// openSession reads the file of the session with this id.
func (a *agent) openSession(id string) (*session, error) {
	name := a.file(id)
	if name == "" {
		return nil, os.ErrNotExist
	}
	b, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	s := &session{id: id}
	for d := json.NewDecoder(bytes.NewReader(b)); ; {
		var t past
		switch err := d.Decode(&t); {
		case errors.Is(err, io.EOF):
			return s, nil
		case err != nil:
			return nil, err
		case t.CWD != "":
			s.cwd = t.CWD
		default:
			s.turns = append(s.turns, t)
		}
	}
}

// rememberTurn stores the turn of the request in the session and its file. It runs before the response is sent, while
// no other turn of the session can run.
func (a *agent) rememberTurn(r *request) {
	if r.turn == nil {
		return
	}
	t := past{User: r.text, Agent: r.said.String()}
	a.mu.Lock()
	r.sess.turns = append(r.sess.turns, t)
	a.mu.Unlock()
	name := a.file(r.sid)
	if name == "" {
		return
	}
	f, err := os.OpenFile(name, os.O_APPEND|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = f.Write(append(agentside.Encode(t), '\n'))
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		r.err = agentside.Encode(&agentside.Error{Code: agentside.CodeInternal, Message: "session not kept: " + err.Error()})
	}
}

func (a *agent) setMode(r *request) *agentside.Error {
	var p struct {
		ModeID string `json:"modeId"`
	}
	if e := r.decodeParams(&p); e != nil {
		return e
	}
	if r.sess, r.sid = a.session(r.params); r.sess == nil {
		return &agentside.Error{Code: agentside.CodeNotFound, Message: "no such session"}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, m := range r.sess.modes {
		if m == p.ModeID {
			r.sess.mode = m
			r.result = json.RawMessage("{}")
			return nil
		}
	}
	return &agentside.Error{Code: agentside.CodeInvalidParams, Message: "no such mode: " + p.ModeID}
}

// setConfigOption answers session/set_config_option. If the option is "mode", it also sets the mode of the session.
func (a *agent) setConfigOption(r *request) *agentside.Error {
	var p struct {
		ConfigID string          `json:"configId"`
		Value    json.RawMessage `json:"value"`
	}
	if e := r.decodeParams(&p); e != nil {
		return e
	}
	if r.sess, r.sid = a.session(r.params); r.sess == nil {
		return &agentside.Error{Code: agentside.CodeNotFound, Message: "no such session"}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, o := range r.sess.options {
		if string(o["id"]) != quote(p.ConfigID) {
			continue
		}
		o["currentValue"] = p.Value
		if p.ConfigID == "mode" {
			// A value that is not a string does not change the mode.
			_ = json.Unmarshal(p.Value, &r.sess.mode)
		}
		r.result = (&object{}).addRaw("configOptions", string(agentside.Encode(r.sess.options))).endObject()
		return nil
	}
	return &agentside.Error{Code: agentside.CodeInvalidParams, Message: "no such option: " + p.ConfigID}
}

func (a *agent) listSessions(r *request) *agentside.Error {
	found := map[string]string{}
	if entries, err := os.ReadDir(a.opt.State); err == nil {
		for _, e := range entries {
			id := strings.TrimSuffix(e.Name(), ".jsonl")
			if s, err := a.openSession(id); err == nil {
				found[id] = s.cwd
			}
		}
	}
	a.mu.Lock()
	for id, s := range a.sessions {
		found[id] = s.cwd
	}
	a.mu.Unlock()
	var only struct{ CWD string }
	_ = json.Unmarshal(r.params, &only) // malformed params select all sessions
	ids := make([]string, 0, len(found))
	for id, cwd := range found {
		if only.CWD == "" || only.CWD == cwd {
			ids = append(ids, id)
		}
	}
	sort.Strings(ids)
	list := make([]string, len(ids))
	for i, id := range ids {
		list[i] = string((&object{}).addString("sessionId", id).addString("cwd", found[id]).endObject())
	}
	r.result = (&object{}).addRaw("sessions", "["+strings.Join(list, ",")+"]").endObject()
	return nil
}

// closeSession answers session/close. It cancels the running turn and removes the session from memory. The file of the
// session stays.
func (a *agent) closeSession(r *request) *agentside.Error {
	if r.sess, r.sid = a.session(r.params); r.sess == nil {
		return &agentside.Error{Code: agentside.CodeNotFound, Message: "no such session"}
	}
	a.cancelSession(r.sess)
	a.mu.Lock()
	delete(a.sessions, r.sid)
	a.mu.Unlock()
	r.result = json.RawMessage("{}")
	return nil
}

// deleteSession answers session/delete. It cancels the running turn and removes the session with its file. Deleting an
// unknown session succeeds, as the protocol requires.
func (a *agent) deleteSession(r *request) *agentside.Error {
	var p struct {
		SessionID string `json:"sessionId"`
	}
	if e := r.decodeParams(&p); e != nil {
		return e
	}
	if s, _ := a.session(r.params); s != nil {
		a.cancelSession(s)
	}
	a.mu.Lock()
	delete(a.sessions, p.SessionID)
	a.mu.Unlock()
	if name := a.file(p.SessionID); name != "" {
		_ = os.Remove(name) // if this fails, the session is listed again
	}
	r.result = json.RawMessage("{}")
	return nil
}
