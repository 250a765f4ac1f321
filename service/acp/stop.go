package acp

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/coder/acp-go-sdk"

	"github.com/perlica/perlica/kernel"
)

// stopLine is a line by which the client stops turns. It goes on once, when the stop is on disk.
type stopLine struct {
	line    []byte
	cancels bool    // it asks the agent to cancel; else it closes the session
	prompt  *prompt // the only one that it names; nil: all of a session
	sent    sync.Once
}

func (l *stopLine) send(r *relay) {
	l.sent.Do(func() { _ = r.conn.Carry(l.line) }) // as in carry
}

// stop stops the turns of a session. The first that is not over sends the line on.
func (r *relay) stop(s *session, l *stopLine) {
	var open []*prompt
	if s != nil {
		open = s.unanswered()
	}
	taken := false
	for _, p := range open {
		if taken {
			p.halt(nil)
		} else {
			taken = p.halt(l)
		}
	}
	if !taken {
		l.send(r)
	}
}

// lastGrace is how long an agent may take to cancel its turns when the client has left. Then it is ended,
// and what became of them is not known.
const lastGrace = 5 * time.Second

// stopAll stops all turns, and waits for the agent's answers.
func (r *relay) stopAll() {
	r.mu.Lock()
	sessions := slices.Collect(maps.Values(r.sessions))
	r.mu.Unlock()
	for _, s := range sessions {
		for _, p := range s.unanswered() {
			p.halt(nil)
		}
	}
	answered := make(chan struct{})
	go func() {
		r.turns.Wait()
		close(answered)
	}()
	late := time.NewTimer(lastGrace)
	defer late.Stop()
	select {
	case <-answered:
	case <-late.C:
	case <-r.conn.Gone():
	case <-r.ctx.Done():
	}
}

// halt stops the turn, and reports whether it is not over yet. The line, if there is one, then goes on
// behind the record of the stop.
func (p *prompt) halt(l *stopLine) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.over:
		return false
	case l == nil:
	case p.recorded:
		l.send(p.s.r)
	default:
		p.stops = append(p.stops, l)
	}
	if !p.halted {
		p.halted = true
		p.stop <- kernel.Stop{By: "client", Why: "the client cancelled the turn"}
	}
	return true
}

// cancelAgent asks the agent to cancel the turn, in the client's words if it has any. The stop is on disk.
func (p *prompt) cancelAgent() (err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.recorded = true
	cancels := false
	for _, l := range p.stops {
		cancels = cancels || l.cancels
	}
	if !cancels {
		err = p.s.r.conn.Carry(notificationLine(acp.AgentMethodSessionCancel, map[string]string{"sessionId": p.s.id}))
	}
	for _, l := range p.stops {
		l.send(p.s.r)
	}
	p.stops = nil
	return err
}

// endStops sends on what has stopped a turn that had no agent to be asked, or no more: it waited, or it
// was answered. That is on disk first.
func (p *prompt) endStops(res kernel.Result) {
	p.mu.Lock()
	p.over = true
	stops := p.stops
	p.stops = nil
	p.mu.Unlock()
	if len(stops) == 0 {
		return
	}
	r, at := p.s.r, p.s.at
	if res.Stopped == nil {
		for _, l := range stops {
			r.record(at, false, l.line)
		}
		if err := at.Durable()(); err != nil {
			r.fail(err)
			return
		}
	}
	for _, l := range stops {
		if l.prompt == nil || res.Calls > 0 { // else the agent knows nothing of it
			l.send(r)
		}
	}
}
