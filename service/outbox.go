package service

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/service/channel"
)

// render is a short text in a channel's format.
func (b *Bridge) render(name, text string) string { return b.cut(name, text)[0] }

// cut is a text in a channel's format and within its limit. There is at least one part.
func (b *Bridge) cut(name, text string) []string {
	ch := b.channels[name]
	if ch == nil {
		return []string{text}
	}
	return channel.Cut(text, ch.Limits())
}

// maxBackoff is the longest wait before a further attempt.
const maxBackoff = 5 * time.Minute

// queueEvent is the event that a message is to be sent. It gets an id, which is also its key.
func queueEvent(input event.InputID, f fact.BridgeQueued) event.Event {
	f.ID = cmp.Or(f.ID, newID())
	return event.NewFact(event.BridgeQueued, "perlica", event.Refs{Input: input, Interaction: f.Question}, f)
}

func newID() string { return uuid.Must(uuid.NewV7()).String() }

// commit puts events on disk, all or none, and then hands on what they say is to be sent and
// to be answered. An error ends the bridge: what it cannot record it may not do.
func (b *Bridge) commit(ctx context.Context, events ...event.Event) error {
	if len(events) == 0 {
		return nil
	}
	if _, err := b.log().Append(context.WithoutCancel(ctx), events...); err != nil {
		b.fail(err)
		return err
	}
	for _, e := range events {
		switch e.Type {
		case event.BridgeQueued:
			q := &queued{input: e.Input, state: "queued"}
			if err := e.Decode(&q.BridgeQueued); err != nil {
				return err
			}
			b.send(q)
		case event.BridgeReceived:
			m := received{input: e.Input}
			if err := e.Decode(&m.BridgeReceived); err != nil {
				return err
			}
			b.deskOf(m.Peer).take(m)
		}
	}
	return nil
}

// laneKey is whose messages a lane sends. The ends of signs of progress have one aside: no message waits for them.
type laneKey struct {
	fact.Peer
	aside bool
}

// lane sends the messages to one contact, in order.
type lane struct {
	b    *Bridge
	wake chan struct{} // capacity 1

	mu    sync.Mutex // guards what follows
	queue []*queued
}

func (b *Bridge) send(q *queued) {
	b.mu.Lock()
	key := laneKey{q.Peer, q.Kind == outEnd}
	l := b.lane[key]
	if l == nil {
		l = &lane{b: b, wake: make(chan struct{}, 1)}
		b.lane[key] = l
		b.lanes.Go(l.run)
	}
	b.mu.Unlock()
	l.mu.Lock()
	l.queue = append(l.queue, q)
	l.mu.Unlock()
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// unsentNow reports whether a message waits to be sent.
func (b *Bridge) unsentNow() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, l := range b.lane {
		l.mu.Lock()
		n := len(l.queue)
		l.mu.Unlock()
		if n > 0 {
			return true
		}
	}
	return false
}

func (l *lane) run() {
	for {
		l.mu.Lock()
		var q *queued
		if len(l.queue) > 0 {
			q = l.queue[0]
		}
		l.mu.Unlock()
		if q == nil {
			select {
			case <-l.wake:
				continue
			case <-l.b.sending.Done():
				return
			}
		}
		if !l.b.deliver(l.b.sending, q) {
			return
		}
		l.mu.Lock()
		l.queue = l.queue[1:]
		l.mu.Unlock()
	}
}

// deliver sends one message, however often that takes. It returns false if the bridge ends
// before that is decided.
func (b *Bridge) deliver(ctx context.Context, q *queued) bool {
	ch := b.channels[q.Channel]
	if ch == nil {
		return true // it stays on record for a bridge that serves its channel
	}
	if q.state == "started" { // a crash came between the attempt and its end
		if done, ok := b.undecided(ch, q, errors.New("the bridge died while it was being sent")); done || !ok {
			return ok
		}
	}
	for wait := b.opt.Backoff; ctx.Err() == nil; {
		answers := b.answers(q.Channel)
		decided, ok, err := b.step(ctx, ch, q)
		if decided && ok && err == nil {
			b.answered(q.Channel)
		}
		if decided || !ok {
			return ok
		}
		if ctx.Err() == nil {
			b.warn("a message could not be sent", "channel", q.Channel, "error", err.Error())
		}
		if wait, ok = b.backOff(ctx, wait, answers, err); !ok {
			return false
		}
	}
	return false
}

// try sends a message once and records the attempt. It is decided when there is nothing left to
// send; else err says why it was not sent. ok is false where the bridge ends.
func (b *Bridge) try(ctx context.Context, ch channel.Channel, q *queued) (decided, ok bool, err error) {
	// A contact that was unpaired since is a stranger, to whom nothing is sent but why a code does not count.
	if _, paired, err := b.records.contact(ctx, q.Channel, q.Contact); err != nil {
		if ctx.Err() == nil {
			b.fail(err)
		}
		return false, false, err
	} else if !paired && q.Kind != outRefusal {
		return true, b.record(q, event.SendFailed, fact.Delivery{ID: q.ID, Error: "the contact is not paired any more", Final: true}) == nil, nil
	}
	if q.Kind == outEnd {
		if err := b.landed(ctx, q.Target); err != nil {
			return false, false, err
		}
	}
	if q.Kind == outStatus && !b.goesOn(q) {
		return true, b.record(q, event.SendFailed, fact.Delivery{ID: q.ID, Error: "its turn is over", Final: true}) == nil, nil
	}
	q.attempts++
	// After a crash between this event and the next, whether it was sent is not known.
	if err := b.record(q, event.SendStarted, fact.Delivery{ID: q.ID, Attempt: q.attempts}); err != nil {
		return false, false, err
	}
	lands := b.leaves(q)
	id, err := b.attempt(ctx, ch, q)
	lands(id, err == nil)
	var rejected *channel.RejectedError
	switch {
	case err == nil:
		q.platform = id
		return true, b.record(q, event.BridgeSent, fact.Delivery{ID: q.ID, Platform: id}) == nil, nil
	case errors.As(err, &rejected):
		decided, ok = b.refused(ctx, ch, q, err)
		return decided, ok, err
	case errors.Is(err, channel.ErrNotSent):
		return false, b.record(q, event.SendFailed, fact.Delivery{ID: q.ID, Error: err.Error()}) == nil, err
	case ctx.Err() != nil:
		return false, false, err // the record says that it may have been sent
	}
	q.faults++
	if decided, ok = b.undecided(ch, q, err); decided && ok {
		ok = b.otherwise(ctx, q)
	}
	return decided, ok, err
}

// landed waits until it is known what became of a sign of progress whose turn is over.
func (b *Bridge) landed(ctx context.Context, sign string) error {
	for wait := 100 * time.Millisecond; ; wait = min(2*wait, maxBackoff) {
		q, err := b.records.byID(ctx, sign)
		if err != nil || q == nil || q.state == "sent" || q.state == "failed" {
			if err != nil && ctx.Err() == nil {
				b.fail(err)
			}
			return err
		}
		if !channel.Wait(ctx, wait) {
			return ctx.Err()
		}
	}
}

// goesOn reports whether the turn goes on whose progress a message shows.
func (b *Bridge) goesOn(q *queued) bool {
	b.mu.Lock()
	d := b.desk[q.Peer]
	b.mu.Unlock()
	if d == nil { // it was an earlier bridge's
		return false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.sign == q.ID
}

// undecided records that a message may have been sent. done: it is given up, because it is better
// lost than sent twice, or than in the way of what waits behind it.
func (b *Bridge) undecided(ch channel.Channel, q *queued, why error) (done, ok bool) {
	f := fact.Delivery{ID: q.ID, Error: why.Error(), Unknown: true}
	if ch.Limits().Dedupes || edits(q.Kind) {
		f.Unknown = false
	} else if once(q.Kind) {
		f.Final = true
	}
	if optional(q) && q.faults >= optionalFaults {
		f.Final = true
		b.warn("a message is given up: what waits behind it is sent", "channel", q.Channel, "error", f.Error)
	}
	q.repeated = q.repeated || f.Unknown && !f.Final
	return f.Final, b.record(q, event.SendFailed, f) == nil
}

func (b *Bridge) record(q *queued, t event.Type, f fact.Delivery) error {
	_, err := b.log().Append(context.Background(), event.NewFact(t, "perlica", event.Refs{Input: q.input, Interaction: q.Question}, f))
	if err != nil {
		b.fail(err)
	}
	return err
}

// attempt sends a message, or edits one.
func (b *Bridge) attempt(ctx context.Context, ch channel.Channel, q *queued) (id string, err error) {
	if reactor, ok := ch.(channel.Reactor); ok && q.React != "" {
		// Where it was refused, or the platform has failed at it, there is the word; both do no harm.
		if err := reactor.React(ctx, q.ReplyTo, q.React); err == nil || ctx.Err() != nil || errors.Is(err, channel.ErrNotSent) {
			return "", err
		}
	}
	m := channel.Outbound{Chat: q.Chat, Text: q.Text, ReplyTo: q.ReplyTo, Key: q.ID, Silent: once(q.Kind)}
	for _, button := range q.Buttons {
		m.Buttons = append(m.Buttons, channel.Button(button))
	}
	if q.repeated && !edits(q.Kind) {
		m.Text = b.say(q.Peer).Repeated + "\n" + m.Text
	}
	if q.plain {
		m = unadorned(m, ch.Limits().Format)
	}
	if edits(q.Kind) {
		return "", b.edit(ctx, ch, q, m)
	}
	if q.File != "" {
		m.File, err = b.writeFile(ctx, q)
		if err != nil {
			return "", errors.Join(channel.ErrNotSent, err)
		}
		defer func() { _ = os.Remove(m.File.Path) }() // it is made anew for another attempt
	}
	return ch.Send(ctx, m)
}

// edit changes a message that was sent, or takes it back.
func (b *Bridge) edit(ctx context.Context, ch channel.Channel, q *queued, m channel.Outbound) error {
	target, err := b.records.byID(ctx, q.Target)
	if err == nil && target != nil && target.platform != "" {
		streamer, removes := ch.(channel.Streamer)
		editor, ok := ch.(channel.Editor)
		switch {
		case q.Text == "" && removes:
			return streamer.Remove(ctx, target.platform)
		case q.Text != "" && ok:
			return editor.Edit(ctx, target.platform, m)
		}
	}
	return &channel.RejectedError{Why: "there is nothing to edit"}
}

// writeFile puts what a message brings as a file into one of its own: on the log it is there once.
func (b *Bridge) writeFile(ctx context.Context, q *queued) (*channel.File, error) {
	data, mime, err := b.content(ctx, q)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(b.opt.Files, q.ID+filepath.Ext(q.File))
	if err := os.WriteFile(path, data, 0o600); err != nil {
		return nil, err
	}
	return &channel.File{Name: q.File, Path: path, MIME: mime}, nil
}

// content is a whole question, a whole answer, or a piece of one, from the record.
func (b *Bridge) content(ctx context.Context, q *queued) (data []byte, mime string, err error) {
	if q.Kind == outCard {
		a, err := b.find(ctx, q.Question)
		whole := channel.Cut(cardText(b.say(q.Peer), a.Question, false), channel.Limits{Format: channel.Plain})
		return []byte(whole[0] + "\n"), "text/plain; charset=utf-8", err
	}
	res, _, err := b.opt.Runner.Recorded(ctx, q.input)
	if err == nil && q.Part > 0 {
		return b.part(ctx, res.Run, q.Part)
	}
	return []byte(res.Text), "text/markdown", err
}

// part is a piece of an answer that is no text, from the record.
func (b *Bridge) part(ctx context.Context, run event.RunID, n int) (data []byte, mime string, err error) {
	i := 0
	for block, err := range b.opt.Runner.Content(ctx, run) {
		if err != nil {
			return nil, "", err
		}
		if i++; i == n && block.Embedded() {
			return block.Data, block.MIME, nil
		}
	}
	return nil, "", &channel.RejectedError{Why: "it is no longer on record"}
}
