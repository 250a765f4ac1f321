package predictable

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/perlica/perlica/provider/agentside"
)

// agent serves one client on one connection.
type agent struct {
	opt      Options
	scenario *scenario
	conn     *agentside.Conn // the connection to the client; writes to out
	out      *lineWriter
	errw     io.Writer
	leave    func()         // ends Serve
	gone     chan struct{}  // closed when no more answers of the client can arrive
	scripts  sync.WaitGroup // running scripts

	ignoreEOF atomic.Bool
	deafStdin atomic.Bool
	delay     atomic.Int64 // the @delay of the section [start], a time.Duration
	serial    int          // the number of the last created session; used only by the reading goroutine

	mu       sync.Mutex // guards the fields below
	ended    bool       // no further script may start
	sessions map[string]*session
	calls    int             // the number of the last created tool call
	promised json.RawMessage // the response to initialize, from which offers follow
	authed   bool
}

func newAgent(sc *scenario, opt Options, out, errw io.Writer) *agent {
	lines := &lineWriter{out: out, eol: "\n"}
	return &agent{
		opt:      opt,
		scenario: sc,
		conn:     agentside.New(lines),
		out:      lines,
		errw:     &lockedWriter{out: errw},
		gone:     make(chan struct{}),
		sessions: map[string]*session{},
		promised: initializeResult(opt.State != ""),
	}
}

// deafReader reads the client's lines. After @ignore stdin it blocks until the agent ends.
type deafReader struct {
	in   io.Reader
	deaf *atomic.Bool
	end  <-chan struct{}
}

func (r deafReader) Read(p []byte) (int, error) {
	n, err := r.in.Read(p)
	if r.deaf.Load() {
		<-r.end
	}
	return n, err
}

// handleMessage handles one request or notification. The reading goroutine calls it in wire order and registers each
// turn here, so a cancel always finds the turn of an earlier prompt. Only scripts run on other goroutines.
func (a *agent) handleMessage(serving context.Context, m agentside.Message) {
	switch {
	case m.ID == nil:
		a.handleNotification(serving, m)
	case m.Method == "session/prompt":
		a.handlePrompt(serving, m)
	default:
		a.handleRequest(serving, m)
	}
}

// startScript runs a script on a new goroutine. Serve waits for this goroutine. After endScripts, startScript does
// nothing.
func (a *agent) startScript(f func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.ended {
		a.scripts.Go(f)
	}
}

// endScripts prevents new scripts, ends all waits for the client and waits for the running scripts.
func (a *agent) endScripts() {
	a.mu.Lock()
	a.ended = true
	a.mu.Unlock()
	close(a.gone)
	a.scripts.Wait()
}

// handleNotification handles a notification. If the scenario has no script for the method, only session/cancel has an
// effect. A $/cancel_request does not cancel a turn.
func (a *agent) handleNotification(serving context.Context, m agentside.Message) {
	r := &request{agent: a, method: m.Method, params: m.Params}
	if m.Method == "session/cancel" {
		r.sess, r.sid = a.session(m.Params)
	}
	steps := a.scenario.nextScript(m.Method)
	switch {
	case steps != nil:
		a.startScript(func() { a.playScript(serving, r, steps) })
	case r.sess != nil:
		a.cancelSession(r.sess)
	}
}

// handleRequest handles a request other than a prompt.
func (a *agent) handleRequest(serving context.Context, m agentside.Message) {
	r := &request{agent: a, id: m.ID, method: m.Method, params: m.Params, sid: firstSession}
	if e := a.respondDefault(r); e != nil {
		r.err = agentside.Encode(e)
	}
	steps := a.scenario.nextScript(m.Method)
	if steps == nil {
		a.playScript(serving, r, []step{})
		return
	}
	a.startScript(func() { a.playScript(serving, r, steps) })
}

// respondDefault sets the result of the request to the default response. If it returns an error, that error is the
// response.
func (a *agent) respondDefault(r *request) *agentside.Error {
	switch r.method {
	case "initialize":
		r.result = initializeResult(a.opt.State != "")
		return nil
	case "authenticate":
		return a.authenticate(r)
	case "session/new":
		return a.newSession(r)
	case "session/set_mode":
		return a.setMode(r)
	case "session/set_config_option":
		return a.setConfigOption(r)
	case "session/load", "session/resume":
		if a.offers().has(r.method) {
			return a.continueSession(r)
		}
	case "session/list":
		if a.offers().has(r.method) {
			return a.listSessions(r)
		}
	case "session/delete":
		if a.offers().has(r.method) {
			return a.deleteSession(r)
		}
	case "session/close":
		if a.offers().has(r.method) {
			return a.closeSession(r)
		}
	}
	return &agentside.Error{Code: agentside.CodeNoMethod, Message: "Method not found: " + r.method}
}

// offers are the capabilities in the response to initialize. A request for a method without its capability gets the
// error "method not found".
type offers struct {
	AgentCapabilities struct {
		LoadSession         bool                       `json:"loadSession"`
		SessionCapabilities map[string]json.RawMessage `json:"sessionCapabilities"`
	} `json:"agentCapabilities"`
	AuthMethods []struct {
		ID string `json:"id"`
	} `json:"authMethods"`
}

func (o offers) has(method string) bool {
	if method == "session/load" {
		return o.AgentCapabilities.LoadSession
	}
	v, ok := o.AgentCapabilities.SessionCapabilities[method[len("session/"):]]
	return ok && string(v) != "null"
}

func (a *agent) offers() (o offers) {
	a.mu.Lock()
	defer a.mu.Unlock()
	// A malformed response comes from the script, and has no capabilities.
	_ = json.Unmarshal(a.promised, &o)
	return o
}

func initializeResult(kept bool) json.RawMessage {
	load, more := "false", ""
	if kept {
		load, more = "true", `,"resume":{},"list":{},"delete":{}`
	}
	return json.RawMessage(`{"protocolVersion":1,"agentCapabilities":{"loadSession":` + load +
		`,"promptCapabilities":{"image":true,"audio":true,"embeddedContext":true},` +
		`"mcpCapabilities":{"http":true,"sse":true},"sessionCapabilities":{"close":{}` + more + `}},` +
		`"agentInfo":{"name":"predictable","title":"Perlica's predictable agent","version":"1"},"authMethods":[]}`)
}

func (a *agent) authenticate(r *request) *agentside.Error {
	var p struct {
		MethodID string `json:"methodId"`
	}
	if e := r.decodeParams(&p); e != nil {
		return e
	}
	for _, m := range a.offers().AuthMethods {
		if m.ID == p.MethodID {
			a.mu.Lock()
			a.authed = true
			a.mu.Unlock()
			r.result = json.RawMessage("{}")
			return nil
		}
	}
	return &agentside.Error{Code: agentside.CodeInvalidParams, Message: "no such authentication method: " + p.MethodID}
}

// pause waits for the duration d. It returns early with an error if the turn is cancelled or the agent ends.
func pause(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return interrupted(ctx)
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return interrupted(ctx)
	}
}

// interrupted returns nil before the end of ctx. After the end it returns errCancelled or errGone.
func interrupted(ctx context.Context) error {
	switch {
	case ctx.Err() == nil:
		return nil
	case errors.Is(context.Cause(ctx), errCancelled):
		return errCancelled
	}
	return errGone
}
