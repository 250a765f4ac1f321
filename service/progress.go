package service

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/perlica/perlica/kernel"
	"github.com/perlica/perlica/kernel/fact/bridge"
	"github.com/perlica/perlica/service/channel"
)

// How often a platform is told that the agent works.
const (
	typingEvery = 4 * time.Second
	statusEvery = 3 * time.Second
)

// status shows that a turn goes on: a typing sign, and, where messages can be edited and
// tools run, one message that is edited in place. Nothing of it is promised.
type status struct {
	d      *desk
	m      received
	cancel context.CancelFunc
	wg     sync.WaitGroup
	dirty  chan struct{} // capacity 1

	id string // of the queued message; empty: there is none; keep's own

	mu    sync.Mutex // guards what follows
	tools int
	title string
	seen  map[string]bool
}

func newStatus(d *desk, m received) *status {
	ctx, cancel := context.WithCancel(d.b.hard)
	s := &status{d: d, m: m, cancel: cancel, dirty: make(chan struct{}, 1), seen: map[string]bool{}}
	ch := d.b.channels[d.key.Channel]
	if t, ok := ch.(channel.Typist); ok {
		s.wg.Go(func() {
			for ok := true; ok; ok = channel.Wait(ctx, typingEvery) {
				once, done := context.WithTimeout(ctx, typingEvery)
				_ = t.Typing(once, m.Chat) // only a sign
				done()
			}
		})
	}
	if e, ok := ch.(channel.Editor); ok {
		s.wg.Go(func() { s.keep(ctx, e) })
	}
	return s
}

// keep makes the message once the turn has gone on for a while, and edits it now and then.
func (s *status) keep(ctx context.Context, e channel.Editor) {
	for channel.Wait(ctx, statusEvery) {
		select {
		case <-s.dirty:
			if s.id == "" {
				s.make()
			} else {
				s.edit(ctx, e, "⏳ "+s.text())
			}
		default:
		}
	}
	over, done := context.WithTimeout(context.WithoutCancel(ctx), statusEvery)
	defer done()
	s.edit(over, e, "✓ "+s.text())
}

func (s *status) make() {
	b := s.d.b
	s.id = newID()
	_ = b.commit(b.hard, queueEvent(s.m.input, bridge.Queued{ // it ends the bridge
		ID: s.id, Peer: s.d.key, Chat: s.m.Chat, Kind: outStatus, Text: b.render(s.d.key.Channel, "⏳ "+s.text()),
	}))
}

func (s *status) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tools == 1 {
		return "1 tool call: " + s.title
	}
	return fmt.Sprintf("%d tool calls, the last: %s", s.tools, s.title)
}

func (s *status) edit(ctx context.Context, e channel.Editor, text string) {
	if s.id == "" {
		return
	}
	q, err := s.d.b.records.byID(ctx, s.id)
	if err != nil || q == nil || q.platform == "" {
		return
	}
	_ = e.Edit(ctx, q.platform, channel.Outbound{Chat: s.m.Chat, Text: s.d.b.render(s.d.key.Channel, text), Key: s.id}) // only a sign
}

// tool takes note of a tool call.
func (s *status) tool(id, title string) {
	s.mu.Lock()
	if title != "" && !s.seen[id] {
		s.seen[id] = true
		s.tools++
		s.title = title
	}
	s.mu.Unlock()
	select {
	case s.dirty <- struct{}{}:
	default:
	}
}

func (s *status) end() {
	s.cancel()
	s.wg.Wait()
}

// progress takes note of what the agent does.
func (d *desk) progress(n kernel.Notice) {
	u, ok := n.(kernel.Updated)
	if !ok || u.Tool == nil {
		return
	}
	d.mu.Lock()
	s := d.status
	d.mu.Unlock()
	if s != nil {
		s.tool(string(u.Tool.ID), u.Tool.Title)
	}
}
