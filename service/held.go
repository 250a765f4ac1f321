package service

import (
	"context"
	"fmt"
	"strings"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/kernel/queue"
	"github.com/perlica/perlica/service/channel"
)

// asksIn counts the questions that a text in a chat may answer, over all projects. These are the questions with a card
// in the chat, and the questions of the contact's own run. The result "own" counts the questions that were sent to the
// contact.
func (b *Bridge) asksIn(who fact.Peer, chat string) (n, own int) {
	for _, o := range b.allBridges() {
		more, mine := o.asksHere(who, chat)
		n, own = n+more, own+mine
	}
	return n, own
}

func (b *Bridge) asksHere(who fact.Peer, chat string) (n, own int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, a := range b.openQuestions {
		c := a.cards[who]
		if a.owner == who || c != nil && c.chat == chat {
			n++
		}
		if c != nil && (a.owner == who || c.chat == chat) {
			own++
		}
	}
	return n, own
}

// hint tells the sender why a message did not count as an answer, and how to send the message or take it back.
func (b *Bridge) hint(who fact.Peer, chat string, input event.InputID) string {
	say := b.sentencesFor(who)
	held := fmt.Sprintf(say.Held, word(input))
	switch n, own := b.asksIn(who, chat); {
	case own == 0:
		return fmt.Sprintf(say.HeldNotYours, held)
	case n == 1:
		return fmt.Sprintf(say.HeldOne, held)
	default:
		return fmt.Sprintf(say.HeldSeveral, n, held)
	}
}

// waitingEvents makes the events of a message that goes into its inbox: the acknowledgement and the
// wait.
func (b *Bridge) waitingEvents(ctx context.Context, c Contact, m channel.Inbound, input event.InputID,
	f fact.BridgeReceived) (events []event.Event, err error) {
	ib, limits, say := b.inboxOf(c.key()), b.channels[c.Channel].Limits(), b.sentencesFor(c.key())
	told := fact.BridgeQueued{ID: "ack:" + string(input), Peer: c.key(), Chat: m.Chat, Kind: outAck, ReplyTo: m.ID}
	text := b.settings().Ack
	if f.Kind != kindInput {
		text = ""
	} else if text == AutoAck {
		text, told.React = say.Ack, say.ReactionAck
	}
	if place := ib.place(); place != "" && !f.Held {
		if text == "" {
			told.Kind = outNotice
		}
		told.React = ""
		text = strings.TrimLeft(text+"\n\n"+place+say.TakeBack, "\n")
		if limits.Buttons {
			told.Buttons = []fact.Button{backButton(say, input)}
		}
		if f.Kind == kindInput && len(f.Remote) == 0 {
			wait, err := b.queued(ctx, ib, c, input, f)
			if err != nil {
				return nil, err
			}
			events = append(events, wait)
		}
	}
	if told.Text = b.renderShort(c.Channel, text); text != "" {
		events = append(events, queueEvent(input, told))
	}
	if f.Held {
		told = fact.BridgeQueued{ID: "held:" + string(input), Peer: c.key(), Chat: m.Chat, Kind: outNotice, ReplyTo: m.ID}
		told.Text = b.renderShort(c.Channel, b.hint(c.key(), m.Chat, input))
		if limits.Buttons {
			told.Buttons = []fact.Button{sendButton(say, input), backButton(say, input)}
		}
		events = append(events, queueEvent(input, told))
	}
	return events, nil
}

// queued returns the event that records the wait of an input in its chat's session. Other front ends see this event.
// If a waiting command may change the session, the event names no session.
func (b *Bridge) queued(ctx context.Context, ib *inbox, c Contact, input event.InputID,
	f fact.BridgeReceived) (event.Event, error) {
	session, err := b.records.session(ctx, c.key(), f.Chat)
	if err != nil {
		return event.Event{}, err
	}
	if conv := ib.opened(f.Chat); conv != nil {
		session = conv.Session()
	}
	if ib.changes() {
		session = ""
	}
	return queue.Queued(session, input, fact.MessageQueued{Text: f.Text, Attachments: f.Files, Source: c.Channel,
		Sender: c.Label()}), nil
}

// inQueue returns the last event about an input's wait in its session's queue. ok is false if the
// input never waited.
func (b *Bridge) inQueue(ctx context.Context, input event.InputID) (e event.Event, ok bool, err error) {
	return b.log().Last(ctx, event.Query{Input: input, Types: []event.Type{event.MessageQueued, event.MessageWithdrawn}})
}

// leaveQueue returns the events that end an input's wait in a session's queue.
func (b *Bridge) leaveQueue(ctx context.Context, input event.InputID, by, where string) ([]event.Event, error) {
	e, ok, err := b.inQueue(ctx, input)
	if err != nil || !ok || e.Type == event.MessageWithdrawn {
		return nil, err
	}
	return []event.Event{queue.Withdrawn(e.Session, input, fact.MessageWithdrawn{By: by, Where: where})}, nil
}

// takenBack makes the events for the message m, which takes an earlier message back. If the earlier message no longer
// waits, takenBack makes f a refusal.
func (b *Bridge) takenBack(ctx context.Context, c Contact, m channel.Inbound,
	f *fact.BridgeReceived) ([]event.Event, error) {
	target, ok := b.inboxOf(c.key()).takeBack(f.About)
	if !ok {
		f.Kind, f.About, f.Word = kindRefused, "", b.sentencesFor(c.key()).NotWaiting
		return nil, nil
	}
	events, err := b.leaveQueue(ctx, target.input, c.Label(), c.Channel)
	if err != nil {
		return nil, err
	}
	events = append(events, event.NewFact(event.BridgeFinished, "perlica", event.Refs{Input: target.input},
		fact.BridgeFinished{How: endBack}))
	told, err := b.settled(ctx, c, m, target, b.sentencesFor(c.key()).TakenBack)
	return append(events, told...), err
}

// confirmed makes the events of a message that releases a held message.
func (b *Bridge) confirmed(ctx context.Context, c Contact, m channel.Inbound,
	f *fact.BridgeReceived) ([]event.Event, error) {
	ib, say := b.inboxOf(c.key()), b.sentencesFor(c.key())
	for _, target := range ib.inLine() {
		if target.input != f.About {
			continue
		}
		text, events := say.GoesOn, []event.Event(nil)
		if place := ib.place(); place != "" {
			text = place + say.TakeBack
			if len(target.Remote) == 0 {
				wait, err := b.queued(ctx, ib, c, target.input, target.BridgeReceived)
				if err != nil {
					return nil, err
				}
				events = append(events, wait)
			}
		}
		told, err := b.settled(ctx, c, m, target, text)
		return append(events, told...), err
	}
	f.Kind, f.About, f.Word = kindRefused, "", b.sentencesFor(c.key()).NotWaiting
	return nil, nil
}

// settled tells the sender the decision about a waiting message. If possible, it replaces the earlier message with the
// buttons; otherwise it sends a new message.
func (b *Bridge) settled(ctx context.Context, c Contact, m channel.Inbound, target received,
	text string) (events []event.Event, err error) {
	f := fact.BridgeQueued{Peer: c.key(), Chat: target.Chat, Kind: outEdit, Text: b.renderShort(c.Channel, text)}
	if _, ok := b.channels[c.Channel].(channel.Editor); ok {
		for _, id := range []string{"held:", "ack:"} {
			q, err := b.records.byID(ctx, id+string(target.input))
			if err != nil {
				return nil, err
			}
			if q != nil && q.platform != "" && len(q.Buttons) > 0 {
				f.Target = q.ID
				events = append(events, queueEvent(target.input, f))
			}
		}
	}
	if len(events) == 0 {
		f.Kind, f.Chat, f.ReplyTo = outNotice, m.Chat, m.ID
		events = append(events, queueEvent(target.input, f))
	}
	return events, nil
}
