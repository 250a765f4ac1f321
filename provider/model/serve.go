package model

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"

	"github.com/google/uuid"
)

// metaKey is Perlica's member of _meta.
const metaKey = "perlica.dev"

// Serve speaks ACP until in ends or ctx is cancelled, and then returns nil. Otherwise it returns the error of
// reading. When in ends, it cancels the running prompts and closes their connections. When ctx ends first,
// the goroutine that reads from in stays until its Read returns. The settings must have passed Check.
func Serve(ctx context.Context, in io.Reader, out io.Writer, s Settings) error {
	ctx, leave := context.WithCancel(ctx)
	a := &agent{settings: s, out: &writer{out: out}, sessions: map[string]*session{}, pendingRequests: map[string]chan error{}, gone: ctx.Done()}
	ended := make(chan error, 1)
	go func() { ended <- a.readLines(ctx, in) }()
	var err error
	select {
	case err = <-ended:
	case <-ctx.Done():
	}
	leave()
	a.runs.Wait()
	return err
}

// agent is one connection.
type agent struct {
	settings Settings
	out      *writer
	gone     <-chan struct{} // closed when the client will answer nothing more
	runs     sync.WaitGroup

	mu              sync.Mutex // guards the fields below
	http            bool       // the client wants the exchanges
	sessions        map[string]*session
	pendingRequests map[string]chan error // our waiting requests, by id
	ids             int
	key             string // the key of the settings, or the result of AskKey
}

// withKey returns the settings with their key. A key from AskKey serves all requests of the process.
func (a *agent) withKey(ctx context.Context, s Settings) (Settings, error) {
	a.mu.Lock()
	s.Key = cmp.Or(s.Key, a.key)
	a.mu.Unlock()
	if s.Key == "" && s.AskKey != nil {
		key, err := s.AskKey(ctx)
		if err != nil {
			return s, &failure{message: err.Error() + "; nothing was sent"}
		}
		s.Key = key
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.key = s.Key
	return s, nil
}

// hidden returns the key that must not appear in output.
func (a *agent) hidden() hidden {
	a.mu.Lock()
	defer a.mu.Unlock()
	return hidden(a.key)
}

// session is a conversation. A running prompt owns its history.
type session struct {
	id      string
	history []turn
	cost    float64  // the total so far
	model   string   // the selected model
	system  string   // for the API's system field
	models  []string // the known models; empty before the first list request
	cancel  context.CancelFunc
}

// message is the envelope of a line.
type message struct {
	JSONRPC string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Method  string          `json:"method"`
	Params  json.RawMessage `json:"params"`
	Result  json.RawMessage `json:"result"`
	Error   *rpcError       `json:"error"`
}

// readLines dispatches lines until in ends. The end is not an error.
func (a *agent) readLines(ctx context.Context, in io.Reader) error {
	r := bufio.NewReaderSize(in, 64<<10)
	for {
		line, err := r.ReadBytes('\n')
		if line = bytes.TrimSpace(line); len(line) > 0 {
			a.dispatchLine(ctx, line)
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
	}
}

// dispatchLine handles one line. It finishes its own work before the next line, so that a cancel always finds the
// prompt that came before it.
func (a *agent) dispatchLine(ctx context.Context, line []byte) {
	var m message
	if err := json.Unmarshal(line, &m); err != nil {
		a.refuseRequest([]byte("null"), &rpcError{Code: codeParse, Message: err.Error()})
		return
	}
	switch {
	case m.JSONRPC != "2.0" || m.Method == "" && m.ID == nil:
		a.refuseRequest(m.ID, &rpcError{Code: codeInvalid, Message: "not a message of JSON-RPC 2.0"})
	case m.Method == "":
		a.deliverAnswer(m)
	case m.ID == nil:
		if m.Method == "session/cancel" {
			a.cancelPrompt(m.Params)
		}
	default:
		a.handleRequest(ctx, m)
	}
}

// handleRequest answers a request, or starts a goroutine that answers it.
func (a *agent) handleRequest(ctx context.Context, m message) {
	switch m.Method {
	case "initialize":
		a.initialize(m)
	case "session/new":
		system, err := systemOf(m.Params)
		if err != nil {
			a.refuseRequest(m.ID, &rpcError{Code: codeInvalidParams, Message: err.Error()})
			return
		}
		s := &session{id: uuid.Must(uuid.NewV7()).String(), model: a.settings.Model, models: []string{a.settings.Model}, system: system}
		a.mu.Lock()
		a.sessions[s.id] = s
		answer := object{"sessionId": s.id, "configOptions": s.options()}
		a.mu.Unlock()
		a.out.writeResult(m.ID, answer)
	case "session/set_config_option":
		a.setOption(m)
	case "_perlica.dev/model/list":
		a.listModels(ctx, m)
	case "session/close":
		a.cancelPrompt(m.Params)
		a.mu.Lock()
		delete(a.sessions, sessionID(m.Params))
		a.mu.Unlock()
		a.out.writeResult(m.ID, object{})
	case "session/prompt":
		a.startPrompt(ctx, m)
	default:
		a.refuseRequest(m.ID, &rpcError{Code: codeNoMethod, Message: "Method not found: " + m.Method})
	}
}

func (a *agent) initialize(m message) {
	var p struct {
		ClientCapabilities struct {
			Meta map[string]json.RawMessage `json:"_meta"`
		} `json:"clientCapabilities"`
	}
	var ours struct {
		HTTP bool `json:"http"`
	}
	if json.Unmarshal(m.Params, &p) == nil && json.Unmarshal(p.ClientCapabilities.Meta[metaKey], &ours) == nil {
		a.mu.Lock()
		a.http = ours.HTTP
		a.mu.Unlock()
	}
	a.out.writeResult(m.ID, object{
		"protocolVersion": 1,
		"agentCapabilities": object{
			"promptCapabilities":  object{"image": true, "embeddedContext": true},
			"sessionCapabilities": object{"close": object{}, "systemPrompt": object{}},
		},
		"agentInfo":   object{"name": "perlica-model", "title": a.settings.Model + " (" + string(a.settings.API) + ")", "version": "1"},
		"authMethods": []any{},
	})
}

// systemFields are the members of a body that contain only a system prompt.
var systemFields = []string{"system", "instructions", "systemInstruction"}

// systemOf returns the system text in the parameters of session/new, or "".
func systemOf(params json.RawMessage) (string, error) {
	var p struct {
		SystemPrompt *struct {
			Mode    string  `json:"mode"`
			Content []block `json:"content"`
		} `json:"systemPrompt"`
	}
	if err := json.Unmarshal(params, &p); err != nil || p.SystemPrompt == nil {
		return "", nil // other members are not read here
	}
	texts := []string{}
	for _, b := range p.SystemPrompt.Content {
		if b.Type != "text" {
			return "", errors.New("a systemPrompt is of text alone")
		}
		texts = append(texts, b.Text)
	}
	if p.SystemPrompt.Mode != "append" {
		return "", fmt.Errorf("there is no mode %q of a systemPrompt here: there is append", p.SystemPrompt.Mode)
	}
	return strings.Join(texts, "\n\n"), nil
}

// startPrompt starts a run.
func (a *agent) startPrompt(ctx context.Context, m message) {
	var p struct {
		SessionID string  `json:"sessionId"`
		Prompt    []block `json:"prompt"`
	}
	if err := json.Unmarshal(m.Params, &p); err != nil || len(p.Prompt) == 0 {
		a.refuseRequest(m.ID, &rpcError{Code: codeInvalidParams, Message: "a prompt is a list of content blocks"})
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	a.mu.Lock()
	s := a.sessions[p.SessionID]
	var refused *rpcError
	switch {
	case s == nil:
		refused = &rpcError{Code: codeNotFound, Message: "there is no such session"}
	case s.cancel != nil:
		refused = &rpcError{Code: codeInvalid, Message: "a prompt is under way in this session"}
	default:
		s.cancel = cancel
	}
	a.mu.Unlock()
	if refused != nil {
		cancel()
		a.refuseRequest(m.ID, refused)
		return
	}
	r := &run{agent: a, session: s, id: m.ID, turn: turn{blocks: p.Prompt}}
	a.runs.Go(func() {
		defer cancel()
		end := r.answerPrompt(ctx)
		a.mu.Lock()
		s.cancel = nil
		a.mu.Unlock()
		end() // after this answer the client may send the next prompt
	})
}

func sessionID(params json.RawMessage) string {
	var p struct {
		SessionID string `json:"sessionId"`
	}
	_ = json.Unmarshal(params, &p) // malformed parameters name no session
	return p.SessionID
}

// cancelPrompt cancels the running prompt of a session.
func (a *agent) cancelPrompt(params json.RawMessage) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if s := a.sessions[sessionID(params)]; s != nil && s.cancel != nil {
		s.cancel()
	}
}

func (a *agent) wantsHTTP() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.http
}

// requestClient sends a request to the client and waits for its answer. The error is the client's, or the reason
// why no answer came.
func (a *agent) requestClient(ctx context.Context, method string, params any) error {
	answer := make(chan error, 1)
	a.mu.Lock()
	a.ids++
	id := strconv.Itoa(a.ids)
	a.pendingRequests[id] = answer
	a.mu.Unlock()
	defer func() {
		a.mu.Lock()
		delete(a.pendingRequests, id)
		a.mu.Unlock()
	}()
	if err := a.out.writeLine(object{"jsonrpc": "2.0", "id": json.RawMessage(id), "method": method, "params": params}); err != nil {
		return err
	}
	select {
	case err := <-answer:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// deliverAnswer hands an answer to the request that waits for it.
func (a *agent) deliverAnswer(m message) {
	a.mu.Lock()
	defer a.mu.Unlock()
	answer := a.pendingRequests[string(m.ID)]
	delete(a.pendingRequests, string(m.ID))
	switch {
	case answer == nil: // an invented or a late answer
	case m.Error != nil:
		answer <- errors.New(m.Error.Message)
	default:
		answer <- nil
	}
}

// sendUpdate sends an update of a session.
func (a *agent) sendUpdate(session string, u object) {
	_ = a.out.writeNotification("session/update", object{"sessionId": session, "update": u}) // the reader notices a gone client
}

// sendReceived sends a part of a response to a client that wants it.
func (a *agent) sendReceived(params object) error {
	if !a.wantsHTTP() {
		return nil
	}
	return a.out.writeNotification("_perlica.dev/http/received", params)
}

// reportCost reports the session's cost so far, if there is a price.
func (a *agent) reportCost(s *session, u usage) {
	p := a.settings.Price
	if p == nil {
		return
	}
	cost, known := p.cost(u)
	if !known {
		return
	}
	s.cost += cost
	a.sendUpdate(s.id, object{
		"sessionUpdate": "usage_update", "used": u.input + u.output, "size": 0,
		"cost":  object{"amount": s.cost, "currency": p.Currency},
		"_meta": object{metaKey: object{"estimate": true, "as_of": p.AsOf}},
	})
}

// refuseRequest answers a request with an error.
func (a *agent) refuseRequest(id json.RawMessage, e *rpcError) {
	if id != nil {
		_ = a.out.writeLine(object{"jsonrpc": "2.0", "id": id, "error": e}) // the reader notices that the client is gone
	}
}

// writer writes whole lines. Several goroutines may call its methods.
type writer struct {
	mu  sync.Mutex
	out io.Writer
}

func (w *writer) writeLine(v any) error {
	b := append(encode(v), '\n')
	w.mu.Lock()
	defer w.mu.Unlock()
	_, err := w.out.Write(b)
	return err
}

func (w *writer) writeNotification(method string, params any) error {
	return w.writeLine(object{"jsonrpc": "2.0", "method": method, "params": params})
}

func (w *writer) writeResult(id json.RawMessage, result any) {
	_ = w.writeLine(object{"jsonrpc": "2.0", "id": id, "result": result}) // the reader notices that the client is gone
}

// encode returns the JSON of a value that can be encoded.
func encode(v any) json.RawMessage {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(fmt.Sprintf("a line without JSON: %v", err)) // only values of this package come here
	}
	return bytes.TrimRight(b.Bytes(), "\n")
}
