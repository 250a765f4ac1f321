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

// patientFaults is how often the platform may fail at a message that is not optional before a short
// one is sent in its place, to find out whether it is the message or the platform that fails.
const patientFaults = 6

// step makes one attempt at a message. Where the platform has failed at it again and again, a short
// message that says so is tried first: while that fails, too, nothing is given up. When it arrives,
// the message is tried once more, and given up if it fails.
func (b *Bridge) step(ctx context.Context, ch channel.Channel, q *queued) (decided, ok bool, err error) {
	if optional(q) || q.faults < patientFaults {
		return b.try(ctx, ch, q)
	}
	if q.instead == nil {
		q.instead = &queued{input: q.input, state: "queued", BridgeQueued: b.instead(q)}
		if _, err := b.log().Append(context.WithoutCancel(ctx), queueEvent(q.input, q.instead.BridgeQueued)); err != nil {
			b.fail(err)
			return false, false, err
		}
	}
	if !q.probed {
		if decided, ok, err = b.try(ctx, ch, q.instead); !decided || !ok {
			return false, ok, err
		}
		q.probed = true
	}
	decided, ok, err = b.try(ctx, ch, q)
	if decided || !ok || errors.Is(err, channel.ErrNotSent) {
		return decided, ok, err
	}
	b.warn("a message is given up: the platform takes others", "channel", q.Channel, "error", err.Error())
	return true, b.record(q, event.SendFailed, fact.Delivery{ID: q.ID, Error: err.Error(), Unknown: true, Final: true}) == nil, nil
}

// instead is a short message that says that another one could not be sent, and where it is.
func (b *Bridge) instead(q *queued) fact.BridgeQueued {
	say := b.say(q.Peer)
	text := say.UnsentMessage
	switch {
	case q.Kind == outCard && b.isThere(q.Question):
		text = fmt.Sprintf(say.UnsentTeamCard, shortID(q.Question))
	case q.Kind == outCard:
		text = fmt.Sprintf(say.UnsentCard, shortID(q.Question))
	case q.File != "":
		text = fmt.Sprintf(say.UnsentFile, q.File)
	case q.Kind == outReply:
		text = say.UnsentAnswer
	}
	return fact.BridgeQueued{ID: newID(), Peer: q.Peer, Chat: q.Chat, Kind: outNotice, Text: b.render(q.Channel, text)}
}

// refused ends a message that the platform refuses for good. One with formatting or buttons comes
// once more without; else the contact is sent a message in its place, if there is something to say.
func (b *Bridge) refused(ctx context.Context, ch channel.Channel, q *queued, err error) (decided, ok bool) {
	limits := ch.Limits()
	if !q.plain && !optional(q) && (len(q.Buttons) > 0 || limits.Format != channel.Plain) {
		q.plain = true
		return false, b.record(q, event.SendFailed, fact.Delivery{ID: q.ID, Error: err.Error()}) == nil
	}
	if q.Kind != outEnd { // it may have been taken away
		b.warn("the platform refuses a message", "channel", q.Channel, "error", err.Error())
	}
	return true, b.record(q, event.SendFailed, fact.Delivery{ID: q.ID, Error: err.Error(), Final: true}) == nil && b.otherwise(ctx, q)
}

// otherwise sends what takes the place of a message that is given up, if anything does: the end of a
// question, or of one of the contact's own messages, as a message of its own, and for an answer, its file or a
// card where it can be had.
func (b *Bridge) otherwise(ctx context.Context, q *queued) (ok bool) {
	f := b.instead(q)
	switch {
	case q.Kind == outEdit: // what it says is news
		f.Text, f.Question = q.Text, q.Question
	case q.Kind == outCard && !b.lost(q):
		return true
	case q.File == "" && q.Kind != outReply && q.Kind != outCard:
		return true
	}
	return b.commit(ctx, queueEvent(q.input, f)) == nil
}

// lost reports whether a part of a card that cannot be sent is the first one, and the question waits.
func (b *Bridge) lost(q *queued) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	a := b.asked[q.Question]
	if a == nil || a.cards[q.Peer] == nil {
		return false
	}
	return a.cards[q.Peer].lose()
}

// unadorned is a message without formatting and without buttons.
func unadorned(m channel.Outbound, f channel.Format) channel.Outbound {
	m.Text, m.Buttons, m.Plain = channel.Unformatted(m.Text, f), nil, true
	for _, l := range language.All() {
		before, _, _ := strings.Cut(l.Sentences().ByButton, "`#%s`")
		after, _, _ := strings.Cut(l.Sentences().ByNumber, "`#%s`")
		m.Text = strings.Replace(m.Text, before, after, 1)
	}
	return m
}

// answers is closed when a channel's platform takes a message, brings a new one of a contact, or can be read again.
func (b *Bridge) answers(name string) <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.revived[name] == nil {
		b.revived[name] = make(chan struct{})
	}
	return b.revived[name]
}

// answered ends all waiting for a channel's platform: it has just worked.
func (b *Bridge) answered(name string) {
	for _, o := range b.family() {
		o.revive(name)
	}
}

func (b *Bridge) revive(name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.revived[name] != nil {
		close(b.revived[name])
		delete(b.revived, name)
	}
}

// backOff waits before a further attempt, as long as the platform wants, else until it answers
// somebody or the time is over. It returns the time to wait behind that attempt; ok is false if ctx
// ends.
func (b *Bridge) backOff(ctx context.Context, wait time.Duration, answers <-chan struct{}, err error) (next time.Duration, ok bool) {
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
