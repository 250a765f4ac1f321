package service

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/kernel"
	"github.com/perlica/perlica/kernel/fact"
)

// desk is where the messages of one contact are worked off: what is to be called, in order;
// and, ahead of that, answers and what only looks.
type desk struct {
	b   *Bridge
	key fact.Peer

	wake   chan struct{} // capacity 1: queue changed
	urgent chan struct{} // capacity 1: first changed

	// Used by the worker alone, but for Cancel and Alive of the conversation, under mu.
	mu       sync.Mutex // guards what follows
	queue    []received
	first    []received // ahead of the queue
	pending  *received  // was taken out of the queue, and is not finished
	decided  bool       // the pending one can be taken back no more
	giveUp   func()     // ends the wait of the pending one; nil: it does not wait
	conv     *kernel.Conversation
	opening  sync.Mutex // held while conv is being opened or replaced; taken before mu
	now      *received  // the message under way
	stop     chan kernel.Stop
	status   *status
	sign     string   // the id of the status's message
	asking   int      // questions of the turn under way that wait for a person
	sayings  []string // of the turn under way: what the agent says beside its messages
	lastUsed time.Time
}

// deskOf returns the desk of a contact, and has it work.
func (b *Bridge) deskOf(who fact.Peer) *desk {
	b.mu.Lock()
	defer b.mu.Unlock()
	d := b.desk[who]
	if d == nil {
		d = &desk{b: b, key: who, wake: make(chan struct{}, 1), urgent: make(chan struct{}, 1)}
		b.desk[who] = d
		b.desks.Go(func() { d.work(d.wake, &d.queue) })
		b.desks.Go(func() { d.work(d.urgent, &d.first) })
	}
	return d
}

// take puts a message that is on disk into its line.
func (d *desk) take(m received) {
	line, bell := &d.queue, d.wake
	switch m.Kind {
	case kindBack:
		return // it was taken out already
	case kindSend:
		d.release(m.About)
		return
	}
	if m.Kind == kindAnswer {
		d.b.answering(m.Question, 1)
	}
	if m.Kind == kindAnswer || m.Kind == kindRefused || m.Kind == kindCommand && isImmediate(m.Text) {
		line, bell = &d.first, d.urgent
	}
	d.mu.Lock()
	*line = append(*line, m)
	d.mu.Unlock()
	select {
	case bell <- struct{}{}:
	default:
	}
}

// next takes the first message that is not held out of a line; nil: there is none.
func (d *desk) next(line *[]received) *received {
	d.mu.Lock()
	defer d.mu.Unlock()
	i := slices.IndexFunc(*line, func(m received) bool { return !m.Held })
	if i < 0 {
		return nil
	}
	m := (*line)[i]
	if *line = slices.Delete(*line, i, i+1); line == &d.queue {
		d.pending, d.decided, d.giveUp = &m, m.Kind != kindInput, nil
	}
	return &m
}

// done takes note that the message that was taken out of a line is finished.
func (d *desk) done(line *[]received) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if line == &d.queue {
		d.pending = nil
	}
}

// work does what is in a line until the bridge stops. What is not finished then is taken up
// by the next start.
func (d *desk) work(bell chan struct{}, line *[]received) {
	for d.b.turning.Err() == nil {
		if m := d.next(line); m != nil {
			d.do(*m)
			d.done(line)
			continue
		}
		select {
		case <-bell:
		case <-d.b.turning.Done():
		}
	}
}

// do works off one message.
func (d *desk) do(m received) {
	c, paired, err := d.b.records.contact(d.b.hard, d.key.Channel, d.key.Contact)
	switch {
	case err != nil:
		d.b.fail(err)
	case !paired: // it was taken away in the meantime; no one else gets an answer
		if m.Kind == kindAnswer {
			d.b.answering(m.Question, -1)
		}
		d.finish(m, event.Refs{}, fact.BridgeFinished{How: endRefused, Detail: "the contact is not paired any more"}, "")
	case m.Kind == kindRefused:
		d.finish(m, event.Refs{}, fact.BridgeFinished{How: endRefused}, m.Word)
	case m.Kind == kindAnswer:
		d.answer(c, m)
	case m.Kind == kindCommand:
		d.command(c, m)
	default:
		d.turn(c, m)
	}
}

// mostParts is how many messages an answer makes that is sent as a file, too: what is cut into
// a thousand would hold up all that comes behind it. They are its beginning and its end.
const mostParts = 20

// finish records what became of a message together with what its sender is told.
func (d *desk) finish(m received, refs event.Refs, f fact.BridgeFinished, text string, more ...fact.BridgeQueued) {
	refs.Input = m.input
	events := []event.Event{event.NewFact(event.BridgeFinished, "perlica", refs, f)}
	if m.Kind == kindInput && refs.Run == "" && f.How != endUnknown { // it was not called
		left, err := d.b.leaveQueue(d.b.hard, m.input, "perlica", d.key.Channel)
		if err != nil {
			d.b.fail(err)
			return
		}
		events = append(events, left...)
	}
	kind := outNotice
	if f.How == endAnswered || f.How == endFailed || f.How == endUnknown {
		kind = outReply
	}
	if text != "" {
		if d.b.isElsewhere(d.key) {
			text = d.b.heading() + text
		}
		parts := d.b.cut(d.key.Channel, text)
		if len(parts) > mostParts && slices.ContainsFunc(more, func(q fact.BridgeQueued) bool { return q.Part == 0 }) { // it is in the file as a whole
			parts = append(parts[:mostParts-1], parts[len(parts)-1])
		}
		for i, part := range parts {
			q := fact.BridgeQueued{Peer: d.key, Chat: m.Chat, Kind: kind, Text: part}
			if i == 0 {
				q.ReplyTo = m.Message
			}
			events = append(events, queueEvent(m.input, q))
		}
	}
	for _, q := range more {
		events = append(events, queueEvent(m.input, q))
	}
	if m.sign != nil { // in the same commit: a turn that is over has a sign that ends, whenever we die
		events = append(events, queueEvent(m.input, *m.sign))
	}
	d.b.info("finished", "from", d.key.Channel+":"+d.key.Contact, "how", string(f.How), "id", m.Message)
	_ = d.b.commit(d.b.hard, events...) // it ends the bridge
}

// current is the message under way, or an empty one.
func (d *desk) current() received {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.now == nil {
		return received{}
	}
	return *d.now
}

// stopTurn asks the turn under way to end, and reports whether there is one.
func (d *desk) stopTurn(s kernel.Stop) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.stop == nil {
		return false
	}
	select {
	case d.stop <- s:
	default: // it was asked already
	}
	return true
}

// conversation returns the contact's, opening it if need be. No agent is started by that.
func (d *desk) conversation(ctx context.Context, c Contact) (*kernel.Conversation, error) {
	d.opening.Lock()
	defer d.opening.Unlock()
	d.mu.Lock()
	conv, busy := d.conv, d.now != nil
	d.mu.Unlock()
	if conv == nil {
		return d.open(ctx, c.Session, "")
	}
	// Anyone who was unpaired and paired again in the meantime begins anew. What c says may be older than
	// the conversation.
	c, paired, err := d.b.records.contact(ctx, d.key.Channel, d.key.Contact)
	if err != nil || busy || !paired || c.Session == conv.Session() {
		return conv, err
	}
	anew, err := d.open(ctx, c.Session, "")
	if err != nil {
		return nil, err
	}
	return anew, conv.Close(ctx)
}

// open opens a conversation in a session, or in a new one, and puts on record that the contact
// talks there. The caller holds opening.
func (d *desk) open(ctx context.Context, session event.SessionID, provider string) (*kernel.Conversation, error) {
	setup, err := d.b.opt.Setup(session, provider)
	if err != nil {
		return nil, err
	}
	conv, err := d.b.opt.Runner.Converse(ctx, setup, d.b.set().Idle, "service")
	if err != nil {
		return nil, err
	}
	if id := conv.Session(); id != session || provider != "" {
		fact := event.NewFact(event.ContactSession, "perlica", event.Refs{Session: id}, d.key)
		if err := d.b.commit(ctx, fact); err != nil {
			return nil, errors.Join(err, conv.Close(ctx))
		}
	}
	d.mu.Lock()
	d.conv = conv
	d.mu.Unlock()
	return conv, nil
}

// move goes on in another session, or, if that is empty, in a new one.
func (d *desk) move(ctx context.Context, session event.SessionID, provider string) error {
	d.opening.Lock()
	defer d.opening.Unlock()
	old := d.opened()
	if old != nil && old.Session() == session {
		return nil
	}
	if provider == "" && old != nil {
		provider = old.Provider()
	}
	if _, err := d.open(ctx, session, provider); err != nil {
		return err // it stays where it was
	}
	if old != nil {
		return old.Close(ctx)
	}
	return nil
}

// opened is the conversation that was opened last, or nil.
func (d *desk) opened() *kernel.Conversation {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.conv
}

func (d *desk) close(ctx context.Context) {
	if conv := d.opened(); conv != nil {
		_ = conv.Close(ctx) // what failed is on record
	}
}

// show is sent what happens in a turn.
func (d *desk) show(n kernel.Notice) {
	switch n := n.(type) {
	case kernel.Asked:
		if n.Answerable {
			d.asks()
			d.b.ask(d, n.Question)
		}
	case kernel.Closed:
		d.asked()
		d.b.closeCards(n.Question.ID, n.Answer, n.Reason)
		d.progress(n)
	case kernel.Warned:
		d.b.warn("warning of a run", "detail", n.Detail)
	default:
		d.progress(n)
	}
}

// makeRoom ends the agents that have been idle longest, until there is room for one more.
func (b *Bridge) makeRoom(me *desk) {
	for {
		b.mu.Lock()
		alive := 0
		var oldest *desk
		for _, d := range b.desk {
			d.mu.Lock()
			if d != me && d.asking == 0 && d.conv != nil && d.conv.Alive() {
				alive++
				if d.now == nil && (oldest == nil || d.lastUsed.Before(oldest.lastUsed)) {
					oldest = d
				}
			}
			d.mu.Unlock()
		}
		room := alive < b.settings.Agents
		b.mu.Unlock()
		if room || oldest == nil {
			return
		}
		if !oldest.opened().Rest() {
			return // a turn has come: it is its slot now
		}
	}
}
