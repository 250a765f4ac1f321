package predictable

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"
)

// request is one incoming message and the response it will get. It belongs to the
// goroutine that plays its script.
type request struct {
	agent  *agent
	id     json.RawMessage // nil: there is nothing to answer
	method string
	params json.RawMessage
	sess   *session // nil: none is concerned, or the client named none that exists
	sid    string   // the session id that updates carry
	turn   *turn    // of a prompt, until it is answered

	result json.RawMessage // the response, unless there is an error
	err    json.RawMessage

	text     string          // of a prompt
	said     strings.Builder // the message text of the answer
	delay    time.Duration   // before each update
	answered bool            // with the first response
}

// turn is the life of a prompt until its answer. Guarded by agent.mu.
type turn struct {
	cancel    func() // of its context
	deaf      bool   // the script ignores session/cancel
	cancelled bool
	caught    bool // @cancelled was reached: the script decides the answer
}

func (r *request) decode(p any) *rpcError {
	if err := json.Unmarshal(r.params, p); err != nil {
		return &rpcError{Code: codeInvalidParams, Message: "Invalid params: " + err.Error()}
	}
	return nil
}

// prompt registers the turn before the next line is read, then plays it.
func (a *agent) prompt(life context.Context, m message) {
	var p struct {
		Prompt []block `json:"prompt"`
	}
	r := &request{agent: a, id: m.ID, method: m.Method, params: m.Params, turn: &turn{}}
	if e := r.decode(&p); e != nil {
		a.refuse(r.id, e)
		return
	}
	steps := a.scenario.next(r.method)
	r.text = promptText(p.Prompt)
	if steps == nil {
		var err error
		if steps, err = parse(promptText(unanswered(p.Prompt)), false, 1); err != nil {
			a.refuse(r.id, &rpcError{Code: codeInvalidParams, Message: err.Error()})
			return
		}
		steps = append(steps, attached(p.Prompt)...)
	}
	if r.sess, r.sid = a.session(m.Params); r.sess == nil {
		a.refuse(r.id, &rpcError{Code: codeNotFound, Message: "no such session"})
		return
	}
	ctx, cancel := context.WithCancelCause(life)
	r.turn.deaf = isDeaf(steps)
	r.turn.cancel = func() { cancel(errCancelled) }
	a.mu.Lock()
	busy := r.sess.turn != nil
	if !busy {
		r.sess.turn = r.turn
	}
	a.mu.Unlock()
	if busy {
		cancel(nil)
		a.refuse(r.id, &rpcError{Code: codeInvalid, Message: "a prompt is already running in this session"})
		return
	}
	r.result = json.RawMessage(`{"stopReason":"end_turn"}`)
	a.start(func() {
		defer cancel(nil)
		a.playIn(ctx, life, r, steps)
		a.release(r)
	})
}

func isDeaf(steps []step) bool {
	for _, s := range steps {
		if s.deaf {
			return true
		}
	}
	return false
}

// cancel cancels the session's running turn, if there is one.
func (a *agent) cancel(s *session) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if s.turn != nil && !s.turn.deaf {
		s.turn.cancelled = true
		s.turn.cancel()
	}
}

// release lets the session take its next prompt, and says whether the turn was
// cancelled and no one has caught it. From here on it cannot be cancelled.
func (a *agent) release(r *request) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if r.turn == nil || r.sess.turn != r.turn {
		return false
	}
	r.sess.turn = nil
	return r.turn.cancelled && !r.turn.caught
}

// play runs a script that no session/cancel can reach.
func (a *agent) play(life context.Context, r *request, steps []step) {
	a.playIn(life, life, r, steps)
}

// playIn runs a script and answers the request at its end, unless it was answered
// already or no one is left to read the answer.
func (a *agent) playIn(ctx, life context.Context, r *request, steps []step) {
	r.delay = time.Duration(a.delay.Load())
	if r.delay == 0 && isEcho(steps) {
		a.out.hold()                           // an echo leaves with its response
		defer func() { _ = a.out.release() }() // as with the answer
	}
	err := r.run(ctx, life, steps)
	var e *rpcError
	switch {
	case errors.Is(err, errGone):
		return
	case err == nil, errors.Is(err, errCancelled):
	case errors.As(err, &e):
		r.err = encode(e)
	default:
		r.err = encode(&rpcError{Code: codeInternal, Message: err.Error()})
	}
	if !r.answered {
		// A line that cannot be written leaves no one to tell.
		_ = r.answer()
	}
}

func (r *request) run(ctx, life context.Context, steps []step) error {
	for i := 0; i <= len(steps); i++ {
		// The end of input does not stop a script that never waits; a cancel does.
		if errors.Is(interrupted(ctx), errCancelled) {
			next := r.catch(steps[i:])
			if next < 0 {
				return errCancelled
			}
			ctx, i = life, i+next
			continue
		}
		if i == len(steps) || steps[i].name == catch {
			return nil
		}
		if err := steps[i].run(ctx, r); err != nil && !errors.Is(err, errCancelled) {
			return err
		}
	}
	return nil
}

// catch finds the step at which a cancelled script goes on, or returns -1.
func (r *request) catch(steps []step) int {
	for i, s := range steps {
		if s.name != catch {
			continue
		}
		r.agent.mu.Lock()
		r.turn.caught = true
		r.agent.mu.Unlock()
		r.result, r.err = json.RawMessage(`{"stopReason":"cancelled"}`), nil
		return i
	}
	return -1
}

// answer writes the response. The first time it also makes it true: the turn is over
// and stored, capabilities and modes are the ones it states.
func (r *request) answer() error {
	if r.id == nil {
		return nil
	}
	if !r.answered {
		r.answered = true
		r.agent.remember(r)
		if r.agent.release(r) {
			r.result, r.err = json.RawMessage(`{"stopReason":"cancelled"}`), nil
		}
		if r.err == nil {
			r.agent.adopt(r)
		}
	}
	if r.err != nil {
		return r.agent.out.line(response(r.id, nil, r.err))
	}
	return r.agent.out.line(response(r.id, r.result, nil))
}

// adopt makes what a response states the agent's own state.
func (a *agent) adopt(r *request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch r.method {
	case "initialize":
		a.promised = r.result
	case "session/new", "session/load", "session/resume":
		if r.sess != nil {
			a.restate(r.sess, r.result)
		}
	}
}

// update sends a session/update for the request's session.
func (r *request) update(ctx context.Context, update []byte) error {
	return r.updateFor(ctx, r.sid, update)
}

func (r *request) updateFor(ctx context.Context, sid string, update []byte) error {
	if r.delay > 0 {
		if err := pause(ctx, r.delay); err != nil {
			return err
		}
	}
	return r.agent.out.line(updateLine(sid, update))
}

func updateLine(sid string, update []byte) []byte {
	b := append(make([]byte, 0, len(update)+len(sid)+80), updateHead...)
	b = append(appendString(b, sid), `,"update":`...)
	return append(append(b, update...), '}', '}')
}

const updateHead = `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":`

// Update kinds of text.
const (
	messageChunk = "agent_message_chunk"
	thoughtChunk = "agent_thought_chunk"
	userChunk    = "user_message_chunk"
)

// say sends text as one chunk of the answer.
func (r *request) say(ctx context.Context, text string) error {
	r.said.WriteString(text)
	return r.update(ctx, chunk(messageChunk, text))
}

func chunk(kind, text string) []byte {
	b := append(make([]byte, 0, len(text)+90), `{"sessionUpdate":"`...)
	b = append(append(b, kind...), `","content":{"type":"text","text":`...)
	return append(appendString(b, text), '}', '}')
}

// fill replaces $session and $id, so that a script can write lines of its own.
func (r *request) fill(s string) string {
	if !strings.Contains(s, "$") {
		return s
	}
	id := string(r.id)
	if id == "" {
		id = "null"
	}
	return strings.NewReplacer("$session", r.sid, "$id", id).Replace(s)
}
