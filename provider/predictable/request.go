package predictable

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/perlica/perlica/provider/agentside"
)

// request is one incoming message and its response. After its creation, only the goroutine that runs its script uses
// it.
type request struct {
	agent  *agent
	id     json.RawMessage // nil for a notification
	method string
	params json.RawMessage
	sess   *session // the session that params name; nil if params name no existing session
	sid    string   // the session id in updates
	turn   *turn    // the turn of a prompt, until it is answered

	result json.RawMessage // the result of the response, unless err is set
	err    json.RawMessage

	text     string          // the text of a prompt
	said     strings.Builder // the message text of the answer
	delay    time.Duration   // the delay before each update
	answered bool            // the first response was sent
}

// turn is the state of a prompt from its arrival to its response. Its fields are guarded by agent.mu.
type turn struct {
	cancel    func() // cancels the context of the turn
	deaf      bool   // the script ignores session/cancel
	cancelled bool
	caught    bool // @cancelled was reached: the script determines the answer
}

func (r *request) decodeParams(p any) *agentside.Error {
	if err := json.Unmarshal(r.params, p); err != nil {
		return &agentside.Error{Code: agentside.CodeInvalidParams, Message: "Invalid params: " + err.Error()}
	}
	return nil
}

// handlePrompt registers the turn of a prompt and starts its script. The reading goroutine calls it before it reads the
// next line.
func (a *agent) handlePrompt(serving context.Context, m agentside.Message) {
	var p struct {
		Prompt []block `json:"prompt"`
	}
	r := &request{agent: a, id: m.ID, method: m.Method, params: m.Params, turn: &turn{}}
	if e := r.decodeParams(&p); e != nil {
		a.conn.Refuse(r.id, e)
		return
	}
	steps := a.scenario.nextScript(r.method)
	r.text = promptText(p.Prompt)
	if steps == nil {
		var err error
		if steps, err = parse(promptText(unanswered(p.Prompt)), false, 1); err != nil {
			a.conn.Refuse(r.id, &agentside.Error{Code: agentside.CodeInvalidParams, Message: err.Error()})
			return
		}
		steps = append(steps, attached(p.Prompt)...)
	}
	if r.sess, r.sid = a.session(m.Params); r.sess == nil {
		a.conn.Refuse(r.id, &agentside.Error{Code: agentside.CodeNotFound, Message: "no such session"})
		return
	}
	ctx, cancel := context.WithCancelCause(serving)
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
		a.conn.Refuse(r.id, &agentside.Error{
			Code: agentside.CodeInvalid, Message: "a prompt is already running in this session",
		})
		return
	}
	r.result = json.RawMessage(`{"stopReason":"end_turn"}`)
	a.startScript(func() {
		defer cancel(nil)
		a.playScriptIn(ctx, serving, r, steps)
		a.releaseTurn(r)
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

// cancelSession cancels the session's running turn, if it has one and the turn does not ignore cancels.
func (a *agent) cancelSession(s *session) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if s.turn != nil && !s.turn.deaf {
		s.turn.cancelled = true
		s.turn.cancel()
	}
}

// releaseTurn ends the turn of the request, so that the session accepts the next prompt and a cancel has no effect on
// this turn. It reports whether the turn was cancelled and its script had no step @cancelled.
func (a *agent) releaseTurn(r *request) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if r.turn == nil || r.sess.turn != r.turn {
		return false
	}
	r.sess.turn = nil
	return r.turn.cancelled && !r.turn.caught
}

// playScript runs the script of a request that session/cancel cannot interrupt.
func (a *agent) playScript(serving context.Context, r *request, steps []step) {
	a.playScriptIn(serving, serving, r, steps)
}

// playScriptIn runs the steps of a script. Then it sends the response, unless a step has sent the response or the
// script ended with errGone. ctx ends at a cancel, and serving ends with Serve.
func (a *agent) playScriptIn(ctx, serving context.Context, r *request, steps []step) {
	r.delay = time.Duration(a.delay.Load())
	if r.delay == 0 && isEcho(steps) {
		a.out.holdLines()                           // so the echo and its response are one Write
		defer func() { _ = a.out.releaseLines() }() // no one could read a report about a failed write
	}
	err := r.runSteps(ctx, serving, steps)
	var e *agentside.Error
	switch {
	case errors.Is(err, errGone):
		return
	case err == nil, errors.Is(err, errCancelled):
	case errors.As(err, &e):
		r.err = agentside.Encode(e)
	default:
		r.err = agentside.Encode(&agentside.Error{Code: agentside.CodeInternal, Message: err.Error()})
	}
	if !r.answered {
		// No one could read a report about a failed write.
		_ = r.sendAnswer()
	}
}

func (r *request) runSteps(ctx, serving context.Context, steps []step) error {
	for i := 0; i <= len(steps); i++ {
		// A cancel stops any script here. The end of the input stops only a step that waits.
		if errors.Is(interrupted(ctx), errCancelled) {
			next := r.findCatch(steps[i:])
			if next < 0 {
				return errCancelled
			}
			ctx, i = serving, i+next
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

// findCatch returns the index of the step @cancelled, at which a cancelled script continues, or -1. If it finds the
// step, it makes "cancelled" the stop reason.
func (r *request) findCatch(steps []step) int {
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

// sendAnswer writes the response of a request. The first call also ends and stores the turn, and copies capabilities
// and modes from the response into the state of the agent.
func (r *request) sendAnswer() error {
	if r.id == nil {
		return nil
	}
	if !r.answered {
		r.answered = true
		r.agent.rememberTurn(r)
		if r.agent.releaseTurn(r) {
			r.result, r.err = json.RawMessage(`{"stopReason":"cancelled"}`), nil
		}
		if r.err == nil {
			r.agent.adoptResponse(r)
		}
	}
	if r.err != nil {
		return r.agent.conn.Send(agentside.Message{ID: r.id, Error: r.err})
	}
	return r.agent.conn.Send(agentside.Message{ID: r.id, Result: r.result})
}

// adoptResponse copies the capabilities, or the modes and options, of a response into the state of the agent.
func (a *agent) adoptResponse(r *request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch r.method {
	case "initialize":
		a.promised = r.result
	case "session/new", "session/load", "session/resume":
		if r.sess != nil {
			a.applyState(r.sess, r.result)
		}
	}
}

// updateSession sends a session/update for the session of the request, after the delay of the request.
func (r *request) updateSession(ctx context.Context, update []byte) error {
	return r.updateOther(ctx, r.sid, update)
}

func (r *request) updateOther(ctx context.Context, sid string, update []byte) error {
	if r.delay > 0 {
		if err := pause(ctx, r.delay); err != nil {
			return err
		}
	}
	return r.agent.conn.WriteLine(updateLine(sid, update))
}

func updateLine(sid string, update []byte) []byte {
	b := append(make([]byte, 0, len(update)+len(sid)+80), updateHead...)
	b = append(agentside.AppendString(b, sid), `,"update":`...)
	return append(append(b, update...), '}', '}')
}

const updateHead = `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":`

// These are the kinds of session updates with a text.
const (
	messageChunk = "agent_message_chunk"
	thoughtChunk = "agent_thought_chunk"
	userChunk    = "user_message_chunk"
)

// sayChunk sends a text as one message chunk.
func (r *request) sayChunk(ctx context.Context, text string) error {
	r.said.WriteString(text)
	return r.updateSession(ctx, chunk(messageChunk, text))
}

func chunk(kind, text string) []byte {
	b := append(make([]byte, 0, len(text)+90), `{"sessionUpdate":"`...)
	b = append(append(b, kind...), `","content":{"type":"text","text":`...)
	return append(agentside.AppendString(b, text), '}', '}')
}

// fillIDs replaces $session and $id by the ids of the session and the request, so that a script can write complete
// lines.
func (r *request) fillIDs(s string) string {
	if !strings.Contains(s, "$") {
		return s
	}
	id := string(r.id)
	if id == "" {
		id = "null"
	}
	return strings.NewReplacer("$session", r.sid, "$id", id).Replace(s)
}
