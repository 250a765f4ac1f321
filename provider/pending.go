package provider

import (
	"github.com/perlica/perlica/eventlog/message"

	"context"
	"encoding/json"
	"time"

	"github.com/coder/acp-go-sdk"
)

// pendingCall is a request of Perlica's to the agent, with the wait for its response.
type pendingCall struct {
	conn    *Conn
	method  string
	id      string
	out     *sending
	arrived chan struct{} // closed after answer or fault is set
	answer  Message
	fault   *Error // the reason why the response cannot be read; nil if it can
}

// requestLine returns the line of a request. Params of type json.RawMessage are used unchanged.
func requestLine(id, method string, params any) ([]byte, error) {
	raw, ok := params.(json.RawMessage)
	if !ok {
		var err error
		if raw, err = json.Marshal(params); err != nil {
			return nil, err
		}
	}
	line := make([]byte, 0, len(raw)+len(method)+64)
	line = append(line, `{"jsonrpc":"2.0","id":`...)
	line = append(line, id...)
	line = append(line, `,"method":"`...)
	line = append(line, method...)
	line = append(line, `","params":`...)
	line = append(line, raw...)
	return append(line, '}'), nil
}

// waitResponse waits for the response. A session/prompt has no timeout, and waitResponse waits for it even when ctx is
// done.
func (p *pendingCall) waitResponse(ctx context.Context) (Message, error) {
	c := p.conn
	defer func() {
		c.mu.Lock()
		delete(c.calls, IDKey(p.id))
		c.mu.Unlock()
	}()
	if err := p.out.waitSent(c); err != nil {
		return p.responseOr(err)
	}
	var timeout <-chan time.Time
	done := ctx.Done()
	switch p.method {
	case acp.AgentMethodSessionPrompt:
		done = nil
	case acp.AgentMethodAuthenticate: // no time limit, because a person logs in
	default:
		t := time.NewTimer(c.timeout(p.method))
		defer t.Stop()
		timeout = t.C
	}
	select {
	case <-p.arrived:
		return p.checkAnswer()
	case <-c.gone:
		return p.responseOr(c.failure())
	case <-timeout:
		c.mu.Lock()
		other := c.nonMessage
		c.mu.Unlock()
		why := errNoAnswer.With(c.timeout(p.method))
		if other != "" {
			why = errNoMessage.With(why, other)
		}
		return Message{}, c.completeError(p.method, p.id, (&Error{Type: TypeTimeout, cause: ErrTimeout}).Saying(why))
	case <-done:
		err := context.Cause(ctx)
		return Message{}, c.completeError(p.method, p.id, (&Error{Type: TypeStopped, cause: err}).Saying(message.Of(err)))
	}
}

// checkAnswer returns the response or its error. arrived must be closed.
func (p *pendingCall) checkAnswer() (Message, error) {
	if p.fault != nil {
		return Message{}, p.conn.completeError(p.method, p.id, p.fault)
	}
	return p.conn.checkResponse(p.answer, p.method, p.id)
}

// responseOr returns the response if it arrived before the agent ended or stopped reading its input. Otherwise it
// returns err.
func (p *pendingCall) responseOr(err error) (Message, error) {
	select {
	case <-p.arrived:
		return p.checkAnswer()
	default:
		return Message{}, p.conn.completeError(p.method, p.id, err)
	}
}
