package acp

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/kernel"
	"github.com/perlica/perlica/provider"
)

// prompt is a session/prompt of the client, from when it came until it is answered.
type prompt struct {
	s     *session
	id    string // of the request
	line  []byte
	input kernel.Input
	stop  chan kernel.Stop // capacity 1
	left  chan struct{}    // closed when the prompt is on its way, or cannot be
	leave func()           // closes it
	done  chan struct{}    // closed when it is answered
	held  *outLine         // the agent's answer, on its way to the client; guarded by relay.mu
	after <-chan struct{}  // closed when what the client has sent to the session before has gone on

	mu       sync.Mutex  // guards what follows
	halted   bool        // it was stopped
	stops    []*stopLine // the client's lines that did so, and go on behind the record of it
	recorded bool        // the stop is on disk, and the agent was asked to cancel
	over     bool        // it takes no more of these
}

// prompt begins a turn. It returns when the prompt is on its way, or waits for another.
func (r *relay) prompt(m provider.Message, s *session) {
	var v promptParams
	err := json.Unmarshal(m.Params, &v)
	var id string
	if err == nil {
		id, err = v.inputID()
	}
	at := r.home
	if s != nil {
		at = s.at
	}
	switch {
	case err != nil:
		r.refuse(at, m.Line, m.ID, codeParams, "this session/prompt cannot be read: "+err.Error())
		return
	case s == nil || s.parent != nil:
		r.refuse(at, m.Line, m.ID, codeParams, fmt.Sprintf("the session %q was not opened here: open it with session/new or session/load", v.Session))
		return
	}
	r.mu.Lock()
	p := &prompt{
		s: s, id: m.ID, line: m.Line, stop: make(chan kernel.Stop, 1), left: make(chan struct{}), done: make(chan struct{}),
		input: kernel.Input{
			ID:   event.InputID(cmp.Or(id, "acp:"+r.id+":"+s.id+":"+m.Key)),
			Text: v.text(), Prompt: provider.Prompt(v.Prompt), Source: "acp", Sender: r.client,
		},
	}
	p.leave = sync.OnceFunc(func() { close(p.left) })
	var before <-chan struct{}
	if n := len(s.prompts); n > 0 {
		before = s.prompts[n-1].done
	}
	s.prompts = append(s.prompts, p)
	r.requests[m.Key] = &request{id: m.ID, method: m.Method, at: s.at, prompt: p}
	r.mu.Unlock()
	p.after = s.last
	r.turns.Go(func() { p.run(before) })
	if before != nil {
		return
	}
	s.last = p.left
	if closed(s.ready) && closed(p.after) {
		<-p.left // the client's next line goes behind it
	}
}

// run answers the prompt, behind the one before it.
func (p *prompt) run(before <-chan struct{}) {
	s, r := p.s, p.s.r
	defer p.leave()
	var res kernel.Result
	err := p.wait(before)
	if err == nil {
		t := s.place.Turn
		t.Input, t.Stop, t.Show = p.input, p.stop, p.show
		res, err = s.at.Prompt(r.ctx, t, kernel.Carried{Line: p.line, Cancel: p.cancelAgent})
	}
	p.endStops(res)
	r.mu.Lock()
	held := p.held
	delete(r.requests, provider.IDKey(p.id))
	for i, other := range s.prompts {
		if other == p {
			s.prompts = append(s.prompts[:i:i], s.prompts[i+1:]...)
		}
	}
	r.mu.Unlock()
	if held != nil && err == nil && !res.Replayed {
		r.out.release(held, held.text)
	} else {
		if held != nil {
			r.out.release(held, nil)
		}
		p.answer(res, err)
	}
	close(p.done)
}

// wait waits for the session, for what was sent to it before, and for the prompt before this one.
func (p *prompt) wait(before <-chan struct{}) error {
	for _, c := range []<-chan struct{}{p.s.ready, p.after, before} {
		if c == nil {
			continue
		}
		select {
		case <-c:
		case s := <-p.stop:
			return &kernel.StoppedError{Stop: s}
		case <-p.s.r.ctx.Done():
			return p.s.r.ctx.Err()
		}
	}
	select {
	case s := <-p.stop:
		return &kernel.StoppedError{Stop: s}
	default:
		return p.s.err
	}
}

// answer answers the prompt where the agent's own answer does not go on.
func (p *prompt) answer(res kernel.Result, err error) {
	s, r := p.s, p.s.r
	var stopped *kernel.StoppedError
	switch {
	case errors.As(err, &stopped), err == nil && !res.Replayed && res.Stopped != nil && res.Calls == 0:
		r.record(s.at, false, p.line)
		r.say(s.at, resultLine(p.id, map[string]string{"stopReason": "cancelled"}))
	case err != nil:
		r.refuse(s.at, p.line, p.id, codeInternal, err.Error()+sentence(res))
	case res.Replayed && res.Outcome == kernel.OutcomeResponded:
		r.record(s.at, false, p.line)
		if res.Text != "" {
			r.say(s.at, saysLine(s.id, res.Text, false))
		}
		r.say(s.at, resultLine(p.id, map[string]any{
			"stopReason": cmp.Or(res.StopReason, "end_turn"), "_meta": map[string]any{metaPrefix + "replayed": true},
		}))
	case res.Err != nil:
		r.say(s.at, errorLine(p.id, codeInternal, res.Err.Error()+sentence(res)))
	default:
		r.say(s.at, errorLine(p.id, codeInternal, "the turn ended: "+string(res.Outcome)+sentence(res)))
	}
}

// sentence says what is known of the call.
func sentence(res kernel.Result) string {
	switch {
	case res.Replayed:
		return "; this input was called before: this is what is on record, and no call was made"
	case res.Outcome == kernel.OutcomeUnknown:
		return "; the prompt may have reached the agent, and it will not be sent again"
	case res.Calls == 0:
		return "; nothing was sent to the agent"
	}
	return ""
}
