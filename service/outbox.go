package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/kernel/record"
	"github.com/perlica/perlica/service/channel"
)

// renderShort returns a short text in a channel's format.
func (b *Bridge) renderShort(name, text string) string { return b.cutText(name, text)[0] }

// cutText returns a text in a channel's format, cut to its limit. The result has at least one part.
func (b *Bridge) cutText(name, text string) []string {
	ch := b.channels[name]
	if ch == nil {
		return []string{text}
	}
	return channel.Cut(text, ch.Limits())
}

// maxBackoff is the longest wait before a further attempt.
const maxBackoff = 5 * time.Minute

// queueEvent returns the event that queues a message to send. The message gets an id, which is also
// its key.
func queueEvent(input event.InputID, f fact.BridgeQueued) event.Event {
	f.ID = cmp.Or(f.ID, newID())
	return event.NewFact(event.BridgeQueued, "perlica", event.Refs{Input: input, Interaction: f.Question}, f)
}

// Notify queues a text for the contact with this name, or with this channel and id. It records the text and the event
// "sent" in one commit, so that neither is recorded alone. It waits until Run serves.
func (b *Bridge) Notify(ctx context.Context, name, text string, sent event.Event) error {
	select {
	case <-b.serving:
	case <-ctx.Done():
		return fmt.Errorf("%w: the bridge does not serve yet", channel.ErrNotSent)
	}
	c, err := b.records.Named(ctx, name)
	if err != nil {
		return err
	}
	var lines []string
	for line := range strings.Lines(text) {
		lines = append(lines, literal(line))
	}
	return b.commitEvents(ctx, sent, queueEvent("", fact.BridgeQueued{Peer: c.key(), Chat: c.Chat, Kind: outNotice,
		Text: b.renderShort(c.Channel, strings.Join(lines, "\n"))}))
}

func newID() string { return uuid.Must(uuid.NewV7()).String() }

// commitEvents writes events to disk, all or none. It then gives their messages to the inboxes and outboxes. An error
// ends the bridge, because the bridge may not do an act that it cannot record.
func (b *Bridge) commitEvents(ctx context.Context, events ...event.Event) error {
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
			b.queueMessage(q)
		case event.BridgeReceived:
			m := received{input: e.Input}
			if err := e.Decode(&m.BridgeReceived); err != nil {
				return err
			}
			b.inboxOf(m.Peer).addMessage(m)
		}
	}
	return nil
}

// outboxKey names the messages of an outbox. The ends of status messages have a separate outbox
// (aside), so that no other message waits for them.
type outboxKey struct {
	fact.Peer
	aside bool
}

// outbox sends the messages to one contact in order.
type outbox struct {
	b    *Bridge
	wake chan struct{} // capacity 1

	mu    sync.Mutex // guards the fields below
	queue []*queued
}

func (b *Bridge) queueMessage(q *queued) {
	b.mu.Lock()
	key := outboxKey{q.Peer, q.Kind == outEnd}
	ob := b.outboxByPeer[key]
	if ob == nil {
		ob = &outbox{b: b, wake: make(chan struct{}, 1)}
		b.outboxByPeer[key] = ob
		b.outboxWG.Go(ob.sendQueue)
	}
	b.mu.Unlock()
	ob.mu.Lock()
	ob.queue = append(ob.queue, q)
	ob.mu.Unlock()
	select {
	case ob.wake <- struct{}{}:
	default:
	}
}

// unsentNow reports whether a message waits to be sent.
func (b *Bridge) unsentNow() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, ob := range b.outboxByPeer {
		ob.mu.Lock()
		n := len(ob.queue)
		ob.mu.Unlock()
		if n > 0 {
			return true
		}
	}
	return false
}

func (ob *outbox) sendQueue() {
	for {
		ob.mu.Lock()
		var q *queued
		if len(ob.queue) > 0 {
			q = ob.queue[0]
		}
		ob.mu.Unlock()
		if q == nil {
			select {
			case <-ob.wake:
				continue
			case <-ob.b.sending.Done():
				return
			}
		}
		if !ob.b.deliverMessage(ob.b.sending, q) {
			return
		}
		ob.mu.Lock()
		ob.queue = ob.queue[1:]
		ob.mu.Unlock()
	}
}

// deliverMessage sends one message with as many attempts as necessary. It returns false if the
// bridge ends before the result is known.
func (b *Bridge) deliverMessage(ctx context.Context, q *queued) bool {
	ch := b.channels[q.Channel]
	if ch == nil {
		return true // the message waits for a bridge that serves its channel
	}
	// An earlier bridge died after it had begun this attempt, so the result of the attempt is unknown.
	if q.state == "started" {
		if done, ok := b.undecided(ch, q, errors.New("the bridge died while it was being sent")); done || !ok {
			return ok
		}
	}
	for wait := b.opt.Backoff; ctx.Err() == nil; {
		answers := b.answers(q.Channel)
		decided, ok, err := b.stepMessage(ctx, ch, q)
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

// tryOnce attempts one sending and records the attempt. The result "decided" means that nothing remains to be sent;
// otherwise err is the reason of the failure. ok is false if the bridge ends.
func (b *Bridge) tryOnce(ctx context.Context, ch channel.Channel, q *queued) (decided, ok bool, err error) {
	// A contact that was unpaired in the meantime is a stranger. The only message for a stranger is the refusal of a
	// pairing code.
	if _, paired, err := b.records.contact(ctx, q.Channel, q.Contact); err != nil {
		if ctx.Err() == nil {
			b.fail(err)
		}
		return false, false, err
	} else if !paired && q.Kind != outRefusal {
		return true, b.recordDelivery(q, event.SendFailed, fact.Delivery{ID: q.ID,
			Error: "the contact is not paired any more", Final: true}) == nil, nil
	}
	if q.Kind == outEnd {
		if err := b.awaitStatusSent(ctx, q.Target); err != nil {
			return false, false, err
		}
	}
	if q.Kind == outStatus && !b.turnContinues(q) {
		return true, b.recordDelivery(q, event.SendFailed, fact.Delivery{ID: q.ID, Error: "its turn is over",
			Final: true}) == nil, nil
	}
	q.attempts++
	// After a crash between this event and the next one, the result of the attempt is unknown.
	if err := b.recordDelivery(q, event.SendStarted, fact.Delivery{ID: q.ID, Attempt: q.attempts}); err != nil {
		return false, false, err
	}
	arrived := b.markSending(q)
	id, err := b.attemptSend(ctx, ch, q)
	arrived(id, err == nil)
	var rejected *channel.RejectedError
	switch {
	case err == nil:
		q.platform = id
		return true, b.recordDelivery(q, event.BridgeSent, fact.Delivery{ID: q.ID, Platform: id}) == nil, nil
	case errors.As(err, &rejected):
		decided, ok = b.refused(ctx, ch, q, err)
		return decided, ok, err
	case errors.Is(err, channel.ErrNotSent):
		return false, b.recordDelivery(q, event.SendFailed, fact.Delivery{ID: q.ID, Error: err.Error()}) == nil, err
	case ctx.Err() != nil:
		// The bridge is ending. The attempt has no result on record, so the next bridge knows that the message may have
		// arrived.
		return false, false, err
	}
	q.faults++
	if decided, ok = b.undecided(ch, q, err); decided && ok {
		ok = b.sendInstead(ctx, q)
	}
	return decided, ok, err
}

// awaitStatusSent waits for the result of sending a status message after the end of its turn.
func (b *Bridge) awaitStatusSent(ctx context.Context, sign string) error {
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

// turnContinues reports whether the turn of a status message is still running.
func (b *Bridge) turnContinues(q *queued) bool {
	b.mu.Lock()
	ib := b.inboxByPeer[q.Peer]
	b.mu.Unlock()
	if ib == nil { // the turn of an earlier bridge
		return false
	}
	ib.mu.Lock()
	defer ib.mu.Unlock()
	return ib.statusID == q.ID
}

// undecided records that a message may have been sent. The result "done" is true if the bridge gives the message up. It
// gives up an optional message if a repetition or a delay of the later messages would be worse than the loss.
func (b *Bridge) undecided(ch channel.Channel, q *queued, why error) (done, ok bool) {
	f := fact.Delivery{ID: q.ID, Error: why.Error(), Unknown: true}
	if ch.Limits().Dedupes || edits(q.Kind) {
		f.Unknown = false
	} else if once(q.Kind) {
		f.Final = true
	}
	if optional(q) && q.faults >= optionalFaults {
		f.Final = true
		b.warn("a message is given up, and the next messages are sent", "channel", q.Channel, "error", f.Error)
	}
	q.repeated = q.repeated || f.Unknown && !f.Final
	return f.Final, b.recordDelivery(q, event.SendFailed, f) == nil
}

func (b *Bridge) recordDelivery(q *queued, t event.Type, f fact.Delivery) error {
	_, err := b.log().Append(context.Background(), event.NewFact(t, "perlica",
		event.Refs{Input: q.input, Interaction: q.Question}, f))
	if err != nil {
		b.fail(err)
	}
	return err
}

// attemptSend sends or edits a message.
func (b *Bridge) attemptSend(ctx context.Context, ch channel.Channel, q *queued) (id string, err error) {
	if reactor, ok := ch.(channel.Reactor); ok && q.React != "" {
		// If the reaction was refused or has failed, the message text is sent instead. Sending both
		// does no harm.
		if err := reactor.React(ctx, q.ReplyTo, q.React); err == nil || ctx.Err() != nil ||
			errors.Is(err, channel.ErrNotSent) {
			return "", err
		}
	}
	m := channel.Outbound{Chat: q.Chat, Text: q.Text, ReplyTo: q.ReplyTo, Key: q.ID, Silent: once(q.Kind)}
	for _, button := range q.Buttons {
		m.Buttons = append(m.Buttons, channel.Button(button))
	}
	if q.repeated && !edits(q.Kind) {
		m.Text = b.sentencesFor(q.Peer).Repeated + "\n" + m.Text
	}
	if q.plain {
		m = unadorned(m, ch.Limits().Format)
	}
	if edits(q.Kind) {
		return "", b.editMessage(ctx, ch, q, m)
	}
	if q.File != "" {
		m.File, err = b.writeFile(ctx, q)
		if err != nil {
			return "", errors.Join(channel.ErrNotSent, err)
		}
		defer func() { _ = os.Remove(m.File.Path) }() // a further attempt writes the file again
	}
	return ch.Send(ctx, m)
}

// editMessage changes or deletes a sent message.
func (b *Bridge) editMessage(ctx context.Context, ch channel.Channel, q *queued, m channel.Outbound) error {
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

// writeFile writes the content of a message's file to a temporary file. The event of the message has no copy of it,
// because the log has the content already.
func (b *Bridge) writeFile(ctx context.Context, q *queued) (*channel.File, error) {
	data, name, mime, err := b.content(ctx, q)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(b.opt.Files, q.ID+filepath.Ext(name))
	if err := os.WriteFile(path, data, 0o600); err != nil {
		return nil, err
	}
	return &channel.File{Name: name, Path: path, MIME: mime}, nil
}

// content returns the content of a message's file from the record: a whole question, a whole answer, a file in an
// answer, or a picture of a tool. The last two have the name and the type that their content confirms.
func (b *Bridge) content(ctx context.Context, q *queued) (data []byte, name, mime string, err error) {
	if q.Kind == outCard {
		a, err := b.findQuestion(ctx, q.Question)
		text := cardText(b.sentencesFor(q.Peer), a.Question, channel.Limits{})
		whole := channel.Cut(text, channel.Limits{Format: channel.Plain})
		return []byte(whole[0] + "\n"), q.File, "text/plain; charset=utf-8", err
	}
	res, _, err := b.opt.Runner.Recorded(ctx, q.input)
	if err != nil || q.Part == 0 && q.Picture == 0 {
		return []byte(res.Text), q.File, "text/markdown", err
	}
	blocks := record.Content(ctx, b.opt.Runner.Log(), res.Run)
	if q.Picture > 0 {
		blocks = record.Pictures(ctx, b.opt.Runner.Log(), res.Run)
	}
	i := 0
	for block, err := range blocks {
		if err != nil {
			return nil, "", "", err
		}
		if i++; i == max(q.Part, q.Picture) && block.Embedded() {
			block = block.Checked()
			name = strings.TrimSuffix(q.File, filepath.Ext(q.File)) + block.Extension()
			return block.Data, name, block.MIME, nil
		}
	}
	return nil, "", "", &channel.RejectedError{Why: "it is no longer on record"}
}
