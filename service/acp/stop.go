package acp

import (
	"sync"
	"time"

	"github.com/coder/acp-go-sdk"

	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/kernel/record"
)

// stopLine is a line by which the client stops turns. It passes once, after the stop is on disk.
type stopLine struct {
	line    []byte
	cancels bool    // the line asks the agent to cancel; otherwise it closes the session
	prompt  *prompt // the only stopped prompt; nil means all prompts of a session
	sent    sync.Once
}

func (l *stopLine) sendOnce(r *relay) {
	// If the agent has ended, the line is not needed. Serve reports the agent's error.
	l.sent.Do(func() { _ = r.conn.Carry(l.line) })
}

// stopSession stops the turns of a session. The first running turn sends the line.
func (r *relay) stopSession(s *session, l *stopLine) {
	var open []*prompt
	if s != nil {
		open = s.unanswered()
	}
	taken := false
	for _, p := range open {
		if taken {
			p.haltTurn(nil)
		} else {
			taken = p.haltTurn(l)
		}
	}
	if !taken {
		l.sendOnce(r)
	}
}

// lastGrace limits the time in which an agent can cancel its turns after the client has left. Later
// the agent is ended, and the outcome of the turns is unknown.
const lastGrace = 5 * time.Second

// stopAll stops all turns and waits for the agent's answers.
func (r *relay) stopAll() {
	for _, s := range r.allSessions() {
		for _, p := range s.unanswered() {
			p.haltTurn(nil)
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

// haltTurn stops the turn. It reports whether the turn is still running. The turn then sends the
// line after the record of the stop.
func (p *prompt) haltTurn(l *stopLine) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.over:
		return false
	case l == nil:
	case p.recorded:
		l.sendOnce(p.s.r)
	default:
		p.stops = append(p.stops, l)
	}
	if !p.halted {
		p.halted = true
		p.stop <- fact.Stop{By: "client", Why: "the client cancelled the turn"}
	}
	return true
}

// cancelAgent asks the agent to cancel the turn, with the client's own line if there is one. The
// stop is already on disk.
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
		l.sendOnce(p.s.r)
	}
	p.stops = nil
	return err
}

// endStops sends the lines that stopped a turn without a running agent call: the turn waited or was
// already answered. The stop must be on disk first.
func (p *prompt) endStops(res record.Result) {
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
			r.recordLine(at, false, l.line)
		}
		if err := at.Durable()(); err != nil {
			r.failRecord(err)
			return
		}
	}
	for _, l := range stops {
		// A line that names one prompt passes only if the agent has received this prompt.
		if l.prompt == nil || res.Calls > 0 {
			l.sendOnce(r)
		}
	}
}
