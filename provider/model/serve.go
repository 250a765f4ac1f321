package model

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/google/uuid"

	"github.com/perlica/perlica/provider/agentside"
)

// metaKey is Perlica's member of _meta.
const metaKey = "perlica.dev"

// Serve speaks ACP until "in" ends or ctx is cancelled, and then returns nil. Otherwise it returns the error of
// reading. When "in" ends, it cancels the running prompts and closes their connections. When ctx ends first, the
// goroutine that reads these lines stays until its Read returns. The settings must have passed Check.
func Serve(ctx context.Context, in io.Reader, out io.Writer, s Settings) error {
	ctx, leave := context.WithCancel(ctx)
	a := &agent{settings: s, conn: agentside.New(out), sessions: map[string]*session{}}
	err := a.conn.Serve(ctx, in, func(m agentside.Message) { a.handleMessage(ctx, m) })
	leave()
	a.runs.Wait()
	return err
}

// agent is one connection.
type agent struct {
	settings Settings
	conn     *agentside.Conn
	runs     sync.WaitGroup

	mu       sync.Mutex // guards the fields below
	http     bool       // the client wants the exchanges
	sessions map[string]*session
	key      string // the key of the settings, or the result of AskKey
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

// handleMessage answers a request, or starts a goroutine that answers it. It finishes its own work before the next
// line, so that a cancel always finds the prompt that came before it.
func (a *agent) handleMessage(ctx context.Context, m agentside.Message) {
	if m.ID == nil {
		if m.Method == "session/cancel" {
			a.cancelPrompt(m.Params)
		}
		return
	}
	switch m.Method {
	case "initialize":
		a.initialize(m)
	case "session/new":
		system, err := systemOf(m.Params)
		if err != nil {
			a.conn.Refuse(m.ID, &agentside.Error{Code: agentside.CodeInvalidParams, Message: err.Error()})
			return
		}
		s := &session{id: uuid.Must(uuid.NewV7()).String(), model: a.settings.Model, models: []string{a.settings.Model},
			system: system}
		a.mu.Lock()
		a.sessions[s.id] = s
		answer := object{"sessionId": s.id, "configOptions": s.options()}
		a.mu.Unlock()
		a.sendResult(m.ID, answer)
	case "session/set_config_option":
		a.setOption(m)
	case "_perlica.dev/model/list":
		a.listModels(ctx, m)
	case "session/close":
		a.cancelPrompt(m.Params)
		a.mu.Lock()
		delete(a.sessions, sessionID(m.Params))
		a.mu.Unlock()
		a.sendResult(m.ID, object{})
	case "session/prompt":
		a.startPrompt(ctx, m)
	default:
		a.conn.Refuse(m.ID, &agentside.Error{Code: agentside.CodeNoMethod, Message: "Method not found: " + m.Method})
	}
}

func (a *agent) initialize(m agentside.Message) {
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
	a.sendResult(m.ID, object{
		"protocolVersion": 1,
		"agentCapabilities": object{
			"promptCapabilities":  object{"image": true, "embeddedContext": true},
			"sessionCapabilities": object{"close": object{}, "systemPrompt": object{}},
		},
		"agentInfo": object{"name": "perlica-model", "title": a.settings.Model + " (" + string(a.settings.API) + ")",
			"version": "1"},
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
func (a *agent) startPrompt(ctx context.Context, m agentside.Message) {
	var p struct {
		SessionID string  `json:"sessionId"`
		Prompt    []block `json:"prompt"`
	}
	if err := json.Unmarshal(m.Params, &p); err != nil || len(p.Prompt) == 0 {
		a.conn.Refuse(m.ID, &agentside.Error{
			Code: agentside.CodeInvalidParams, Message: "a prompt is a list of content blocks",
		})
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	a.mu.Lock()
	s := a.sessions[p.SessionID]
	var refused *agentside.Error
	switch {
	case s == nil:
		refused = &agentside.Error{Code: agentside.CodeNotFound, Message: "there is no such session"}
	case s.cancel != nil:
		refused = &agentside.Error{Code: agentside.CodeInvalid, Message: "a prompt is under way in this session"}
	default:
		s.cancel = cancel
	}
	a.mu.Unlock()
	if refused != nil {
		cancel()
		a.conn.Refuse(m.ID, refused)
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
	_ = json.Unmarshal(params, &p) // after an error, p names no session
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
func (a *agent) requestClient(ctx context.Context, method string, params object) error {
	answer := make(chan agentside.Message, 1)
	err := a.conn.Request(method, agentside.Encode(params), "", func(m agentside.Message) { answer <- m })
	if err != nil {
		return err
	}
	select {
	case m := <-answer:
		if m.Error == nil {
			return nil
		}
		refused := &agentside.Error{}
		_ = json.Unmarshal(m.Error, refused) // if this fails, refused has no message
		return refused
	case <-ctx.Done():
		return ctx.Err()
	}
}

// sendResult answers a request.
func (a *agent) sendResult(id json.RawMessage, result object) {
	_ = a.conn.Send(agentside.Message{ID: id, Result: agentside.Encode(result)}) // Serve ends if the client has gone
}

// sendUpdate sends an update of a session.
func (a *agent) sendUpdate(session string, u object) {
	_ = a.sendNotification("session/update", object{"sessionId": session, "update": u}) // Serve ends with the client
}

func (a *agent) sendNotification(method string, params object) error {
	return a.conn.Send(agentside.Message{Method: method, Params: agentside.Encode(params)})
}

// sendReceived sends a part of a response to a client that wants it.
func (a *agent) sendReceived(params object) error {
	if !a.wantsHTTP() {
		return nil
	}
	return a.sendNotification("_perlica.dev/http/received", params)
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
