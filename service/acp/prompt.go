package acp

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/kernel"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/kernel/record"
	"github.com/perlica/perlica/provider"
)

// prompt is a session/prompt of the client, from its arrival to its answer.
type prompt struct {
	s     *session
	id    string // the id of the request
	line  []byte
	input kernel.Input
	stop  chan fact.Stop  // capacity 1
	left  chan struct{}   // closed when the prompt was sent or cannot be sent
	leave func()          // closes left
	done  chan struct{}   // closed when the prompt is answered
	held  *outLine        // the agent's answer in the client's queue; guarded by relay.mu
	after <-chan struct{} // closed when the client's earlier lines to the session have passed

	mu       sync.Mutex  // guards the fields below
	halted   bool        // the prompt was stopped
	stops    []*stopLine // the client's lines that stopped the prompt; they pass after the record of the stop
	recorded bool        // the stop is on disk, and the agent was asked to cancel
	over     bool        // no further stop is accepted
}

// prompt begins a turn. It returns when the prompt was sent or waits for another prompt.
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
		r.refuseRequest(at, m.Line, m.ID, codeParams, "this session/prompt cannot be read: "+err.Error())
		return
	case s == nil || s.parent != nil:
		r.refuseRequest(at, m.Line, m.ID, codeParams, fmt.Sprintf(
			"the session %q was not opened here: open it with session/new or session/load", v.Session))
		return
	}
	r.mu.Lock()
	p := &prompt{
		s: s, id: m.ID, line: m.Line, stop: make(chan fact.Stop, 1), left: make(chan struct{}), done: make(chan struct{}),
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
	r.turns.Go(func() { p.runTurn(before) })
	if before != nil {
		return
	}
	s.last = p.left
	if closed(s.ready) && closed(p.after) {
		// Wait until the prompt was sent, because the client's next line must follow it.
		<-p.left
	}
}

// runTurn answers the prompt after the channel "before" is closed, which means that the earlier prompt has ended.
func (p *prompt) runTurn(before <-chan struct{}) {
	s, r := p.s, p.s.r
	defer p.leave()
	var res record.Result
	err := p.awaitTurn(before)
	if err == nil {
		t := s.place.Turn
		t.Input, t.Stop, t.Show = p.input, p.stop, p.showNotice
		res, err = s.at.Prompt(r.ctx, t, kernel.ClientPrompt{Line: p.line, Cancel: p.cancelAgent})
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
		r.out.releaseLine(held, held.text)
	} else {
		if held != nil {
			r.out.releaseLine(held, nil)
		}
		p.answerClient(res, err)
	}
	close(p.done)
}

// awaitTurn waits for the session, for the client's earlier lines, and for the prompt before this
// one.
func (p *prompt) awaitTurn(before <-chan struct{}) error {
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

// answerClient answers the prompt if the agent's own answer does not pass.
func (p *prompt) answerClient(res record.Result, err error) {
	s, r := p.s, p.s.r
	var stopped *kernel.StoppedError
	switch {
	case errors.As(err, &stopped), err == nil && !res.Replayed && res.Stopped != nil && res.Calls == 0:
		r.recordLine(s.at, false, p.line)
		r.sendOwn(s.at, resultLine(p.id, map[string]string{"stopReason": "cancelled"}))
	case err != nil:
		r.refuseRequest(s.at, p.line, p.id, codeInternal, err.Error()+sentence(res))
	case res.Replayed && res.Outcome == record.OutcomeResponded:
		r.recordLine(s.at, false, p.line)
		if res.Text != "" {
			r.sendOwn(s.at, saysLine(s.id, res.Text, false))
		}
		r.sendOwn(s.at, resultLine(p.id, map[string]any{
			"stopReason": cmp.Or(res.StopReason, "end_turn"), "_meta": map[string]any{metaPrefix + "replayed": true},
		}))
	case res.Err != nil:
		r.sendOwn(s.at, errorLine(p.id, codeInternal, res.Err.Error()+sentence(res)))
	default:
		r.sendOwn(s.at, errorLine(p.id, codeInternal, "the turn ended: "+string(res.Outcome)+sentence(res)))
	}
}

// sentence describes the known state of the call.
func sentence(res record.Result) string {
	switch {
	case res.Replayed:
		return "; this input was called before: this is what is on record, and no call was made"
	case res.Outcome == record.OutcomeUnknown:
		return "; the prompt may have reached the agent, and it will not be sent again"
	case res.Calls == 0:
		return "; nothing was sent to the agent"
	}
	return ""
}
