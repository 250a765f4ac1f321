package predictable

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// agent is one connection.
type agent struct {
	opt      Options
	scenario *scenario
	out      *lineWriter
	errw     io.Writer
	leave    func()         // ends Serve
	gone     chan struct{}  // closed when the client will answer nothing more
	scripts  sync.WaitGroup // running scripts

	ignoreEOF atomic.Bool
	deafStdin atomic.Bool
	delay     atomic.Int64 // the delay of [start]; a time.Duration
	serial    int          // the number of the last created session; owned by the reader

	mu       sync.Mutex // guards the fields below
	ended    bool       // no further script may start
	sessions map[string]*session
	calls    int // the number of the last created tool call
	lastID   int // the number of the next request to the client
	pending  map[string][]waiter
	promised json.RawMessage // the response to initialize
	authed   bool
}

// waiter receives the response to one of our requests. Its channel has room for the response.
type waiter struct {
	index int
	to    chan<- reply
}

// reply is a response of the client. index identifies the request among those that share a channel.
type reply struct {
	index int
	message
}

func newAgent(sc *scenario, opt Options, out, errw io.Writer) *agent {
	return &agent{
		opt:      opt,
		scenario: sc,
		out:      &lineWriter{out: out, eol: "\n"},
		errw:     &lockedWriter{out: errw},
		gone:     make(chan struct{}),
		sessions: map[string]*session{},
		pending:  map[string][]waiter{},
		promised: initializeResult(opt.State != ""),
	}
}

// readLines dispatches lines until in ends. The end is not an error.
func (a *agent) readLines(serving context.Context, in io.Reader) error {
	r := bufio.NewReaderSize(in, 16<<10)
	var long []byte
	for {
		line, err := readLine(r, &long)
		if len(line) > 0 {
			a.dispatchLine(serving, line)
		}
		if a.deafStdin.Load() {
			<-serving.Done()
			return nil
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
	}
}

// dispatchLine handles one line in wire order. Only scripts run on goroutines, so a cancel always finds the turn
// of the prompt that came before it.
func (a *agent) dispatchLine(serving context.Context, line []byte) {
	var m message
	if err := json.Unmarshal(line, &m); err != nil {
		code := codeParse
		if json.Valid(line) {
			code = codeInvalid
		}
		a.refuseRequest(json.RawMessage("null"), &rpcError{Code: code, Message: err.Error()})
		return
	}
	switch {
	case m.JSONRPC != "2.0":
		a.refuseRequest(m.ID, &rpcError{Code: codeInvalid, Message: `"jsonrpc" is not "2.0"`})
	case m.Method == "" && m.ID != nil:
		a.deliverReply(m)
	case m.Method == "":
		a.refuseRequest(json.RawMessage("null"), &rpcError{Code: codeInvalid, Message: "no method and no id"})
	case m.Method == "session/prompt" && m.ID != nil:
		a.handlePrompt(serving, m)
	case m.ID == nil:
		a.handleNotification(serving, m)
	default:
		a.handleRequest(serving, m)
	}
}

// startScript runs a script on a goroutine that Serve waits for.
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

// refuseRequest answers a request at once with an error. A notification gets no answer.
func (a *agent) refuseRequest(id json.RawMessage, e *rpcError) {
	if id == nil {
		return
	}
	// A failed write cannot be reported.
	_ = a.out.writeLine(response(id, nil, encode(e)))
}

// handleNotification handles a notification. Only session/cancel has an effect without a script. $/cancel_request does
// not cancel a turn.
func (a *agent) handleNotification(serving context.Context, m message) {
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
func (a *agent) handleRequest(serving context.Context, m message) {
	r := &request{agent: a, id: m.ID, method: m.Method, params: m.Params, sid: firstSession}
	if e := a.respondDefault(r); e != nil {
		r.err = encode(e)
	}
	steps := a.scenario.nextScript(m.Method)
	if steps == nil {
		a.playScript(serving, r, []step{})
		return
	}
	a.startScript(func() { a.playScript(serving, r, steps) })
}

// respondDefault gives the request its default response.
func (a *agent) respondDefault(r *request) *rpcError {
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
	return &rpcError{Code: codeNoMethod, Message: "Method not found: " + r.method}
}

// offers holds the capabilities in the response to initialize. A method without its capability gets "method
// not found".
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
	// A malformed response comes from the script. It offers nothing.
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

func (a *agent) authenticate(r *request) *rpcError {
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
	return &rpcError{Code: codeInvalidParams, Message: "no such authentication method: " + p.MethodID}
}

// sendToClient writes a request to the client. The response will be delivered to the channel with index. An empty id
// means the next number, beginning with 0.
func (a *agent) sendToClient(method, params, id string, index int, to chan<- reply) error {
	a.mu.Lock()
	if id == "" {
		id = strconv.Itoa(a.lastID)
		a.lastID++
	}
	a.pending[id] = append(a.pending[id], waiter{index, to})
	a.mu.Unlock()
	o := &object{}
	return a.out.writeLine(o.addString("jsonrpc", "2.0").addRaw("id", id).addString("method", method).addRaw("params", params).endObject())
}

// deliverReply hands a response to the first waiter for its id. A response without a waiter is dropped: the client
// invented it, or the script did not wait.
func (a *agent) deliverReply(m message) {
	a.mu.Lock()
	defer a.mu.Unlock()
	id := string(m.ID)
	waiting := a.pending[id]
	if len(waiting) == 0 {
		return
	}
	waiting[0].to <- reply{waiting[0].index, m}
	if a.pending[id] = waiting[1:]; len(waiting) == 1 {
		delete(a.pending, id)
	}
}

// pause waits, unless the turn is cancelled or the agent ends.
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

// interrupted returns errCancelled or errGone after ctx has ended.
func interrupted(ctx context.Context) error {
	switch {
	case ctx.Err() == nil:
		return nil
	case errors.Is(context.Cause(ctx), errCancelled):
		return errCancelled
	}
	return errGone
}

func encode(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		// Only values of this package come here, and all of them can be encoded.
		panic(err)
	}
	return b
}

func response(id, result, e json.RawMessage) []byte {
	o := &object{}
	return o.addString("jsonrpc", "2.0").addRaw("id", string(id)).addRaw("result", string(result)).addRaw("error", string(e)).endObject()
}
