package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/kernel/language"
	"github.com/perlica/perlica/service/channel"
)

// patientFaults limits the platform's failures at a message that is not optional. After this limit the bridge sends a
// short message instead. The result of the short message shows whether the message or the platform is at fault.
const patientFaults = 6

// stepMessage makes one attempt to send a message. After repeated failures it first sends a short message about them.
// If the short message fails, too, nothing is given up. If it arrives, the original message is tried once more and then
// given up.
func (b *Bridge) stepMessage(ctx context.Context, ch channel.Channel, q *queued) (decided, ok bool, err error) {
	if optional(q) || q.faults < patientFaults {
		return b.tryOnce(ctx, ch, q)
	}
	if q.instead == nil {
		q.instead = &queued{input: q.input, state: "queued", BridgeQueued: b.insteadOf(q)}
		if _, err := b.log().Append(context.WithoutCancel(ctx), queueEvent(q.input, q.instead.BridgeQueued)); err != nil {
			b.fail(err)
			return false, false, err
		}
	}
	if !q.probed {
		if decided, ok, err = b.tryOnce(ctx, ch, q.instead); !decided || !ok {
			return false, ok, err
		}
		q.probed = true
	}
	decided, ok, err = b.tryOnce(ctx, ch, q)
	if decided || !ok || errors.Is(err, channel.ErrNotSent) {
		return decided, ok, err
	}
	b.warn("a message is given up: the platform takes others", "channel", q.Channel, "error", err.Error())
	return true, b.recordDelivery(q, event.SendFailed, fact.Delivery{ID: q.ID, Error: err.Error(), Unknown: true,
		Final: true}) == nil, nil
}

// insteadOf returns a short message that replaces an unsent one. It names the question or the file.
func (b *Bridge) insteadOf(q *queued) fact.BridgeQueued {
	say := b.sentencesFor(q.Peer)
	text := say.UnsentMessage
	switch {
	case q.Kind == outCard && b.isTeamQuestion(q.Question):
		text = fmt.Sprintf(say.UnsentTeamCard, shortID(q.Question))
	case q.Kind == outCard:
		text = fmt.Sprintf(say.UnsentCard, shortID(q.Question))
	case q.File != "":
		text = fmt.Sprintf(say.UnsentFile, q.File)
	case q.Kind == outReply:
		text = say.UnsentAnswer
	}
	return fact.BridgeQueued{ID: newID(), Peer: q.Peer, Chat: q.Chat, Kind: outNotice,
		Text: b.renderShort(q.Channel, text)}
}

// refused ends a message that the platform refuses for good. If it has formatting or buttons, it is
// sent once more without them. Otherwise the contact gets a message instead, if there is something
// to tell.
func (b *Bridge) refused(ctx context.Context, ch channel.Channel, q *queued, err error) (decided, ok bool) {
	limits := ch.Limits()
	if !q.plain && !optional(q) && (len(q.Buttons) > 0 || limits.Format != channel.Plain) {
		q.plain = true
		return false, b.recordDelivery(q, event.SendFailed, fact.Delivery{ID: q.ID, Error: err.Error()}) == nil
	}
	if q.Kind != outEnd { // no warning for an end, because its status message may have been deleted
		b.warn("the platform refuses a message", "channel", q.Channel, "error", err.Error())
	}
	return true, b.recordDelivery(q, event.SendFailed, fact.Delivery{ID: q.ID, Error: err.Error(), Final: true}) == nil &&
		b.sendInstead(ctx, q)
}

// sendInstead sends a replacement for a message that could not be sent and is given up. If that message was to change
// an earlier one, for example to show a question's outcome, its text becomes a new message. For a file, an answer or a
// card, the replacement names the lost part.
func (b *Bridge) sendInstead(ctx context.Context, q *queued) (ok bool) {
	f := b.insteadOf(q)
	switch {
	case q.Kind == outEdit: // the contact does not know the text yet, so it is sent as a new message
		f.Text, f.Question = q.Text, q.Question
	case q.Kind == outCard && !b.lost(q):
		return true
	case q.File == "" && q.Kind != outReply && q.Kind != outCard:
		return true
	}
	return b.commitEvents(ctx, queueEvent(q.input, f)) == nil
}

// lost records that a part of a card cannot be sent. It reports whether this is the card's first
// lost part and the question is still open.
func (b *Bridge) lost(q *queued) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	a := b.openQuestions[q.Question]
	if a == nil || a.cards[q.Peer] == nil {
		return false
	}
	return a.cards[q.Peer].losePart()
}

// unadorned returns a message without formatting and buttons.
func unadorned(m channel.Outbound, f channel.Format) channel.Outbound {
	m.Text, m.Buttons, m.Plain = channel.Unformatted(m.Text, f), nil, true
	for _, l := range language.All() {
		before, _, _ := strings.Cut(l.Sentences().ByButton, "`#%s`")
		after, _, _ := strings.Cut(l.Sentences().ByNumber, "`#%s`")
		m.Text = strings.Replace(m.Text, before, after, 1)
	}
	return m
}

// answers returns a Go channel that is closed when the platform accepts a message, delivers a contact's message, or can
// be read again.
func (b *Bridge) answers(name string) <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.revived[name] == nil {
		b.revived[name] = make(chan struct{})
	}
	return b.revived[name]
}

// answered wakes all messages that wait for a platform, because the platform has just worked.
func (b *Bridge) answered(name string) {
	for _, o := range b.allBridges() {
		o.reviveChannel(name)
	}
}

func (b *Bridge) reviveChannel(name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.revived[name] != nil {
		close(b.revived[name])
		delete(b.revived, name)
	}
}

// backOff waits before a further attempt. It waits as long as the platform demands. Without a demand it waits until
// the platform works for another message or the time is over. The result "next" is the next duration of a wait. ok
// is false if ctx ends.
func (b *Bridge) backOff(ctx context.Context, wait time.Duration, answers <-chan struct{},
	err error) (next time.Duration, ok bool) {
	var limit *channel.RateLimitError
	if errors.As(err, &limit) {
		wait = max(wait, limit.After)
		return min(2*wait, maxBackoff), channel.Wait(ctx, wait)
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return min(2*wait, maxBackoff), true
	case <-answers:
		return cmp.Or(b.opt.Backoff, wait), true
	case <-ctx.Done():
		return wait, false
	}
}
