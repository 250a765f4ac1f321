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

// asksIn returns how many questions what is typed in a chat may be meant for, of whichever project: those that
// have a card there, and those of the contact's own run. own is how many of them were put to the contact.
func (b *Bridge) asksIn(who fact.Peer, chat string) (n, own int) {
	for _, o := range b.family() {
		more, mine := o.asksHere(who, chat)
		n, own = n+more, own+mine
	}
	return n, own
}

func (b *Bridge) asksHere(who fact.Peer, chat string) (n, own int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, a := range b.asked {
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

// hint says why a message was taken for none of the answers, and what becomes of it.
func (b *Bridge) hint(who fact.Peer, chat string, input event.InputID) string {
	say := b.say(who)
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

// lineUp makes the events of a message that goes into its line: what its sender is told, and that it waits.
func (b *Bridge) lineUp(c Contact, m channel.Inbound, input event.InputID, f fact.BridgeReceived) (events []event.Event) {
	d, limits, say := b.deskOf(c.key()), b.channels[c.Channel].Limits(), b.say(c.key())
	told := fact.BridgeQueued{ID: "ack:" + string(input), Peer: c.key(), Chat: m.Chat, Kind: outAck, ReplyTo: m.ID}
	text := b.set().Ack
	if f.Kind != kindInput {
		text = ""
	} else if text == AutoAck {
		text, told.React = say.Ack, say.ReactionAck
	}
	if place := d.place(); place != "" && !f.Held {
		if text == "" {
			told.Kind = outNotice
		}
		told.React = ""
		text = strings.TrimLeft(text+"\n\n"+place+say.TakeBack, "\n")
		if limits.Buttons {
			told.Buttons = []fact.Button{backButton(say, input)}
		}
		if f.Kind == kindInput && len(f.Remote) == 0 {
			events = append(events, b.queued(d, c, input, f))
		}
	}
	if told.Text = b.render(c.Channel, text); text != "" {
		events = append(events, queueEvent(input, told))
	}
	if f.Held {
		told = fact.BridgeQueued{ID: "held:" + string(input), Peer: c.key(), Chat: m.Chat, Kind: outNotice, ReplyTo: m.ID}
		told.Text = b.render(c.Channel, b.hint(c.key(), m.Chat, input))
		if limits.Buttons {
			told.Buttons = []fact.Button{sendButton(say, input), backButton(say, input)}
		}
		events = append(events, queueEvent(input, told))
	}
	return events
}

// queued is the event that an input waits for its turn in the session of its contact, which other front ends
// see. Behind a command it is not known in which one that will be.
func (b *Bridge) queued(d *desk, c Contact, input event.InputID, f fact.BridgeReceived) event.Event {
	session := c.Session
	if conv := d.opened(); conv != nil {
		session = conv.Session()
	}
	if d.changes() {
		session = ""
	}
	return queue.Queued(session, input, fact.MessageQueued{Text: f.Text, Attachments: f.Files, Source: c.Channel, Sender: c.Label()})
}

// inQueue is the last event that says whether an input waits in its session's queue; ok is false if it never
// did.
func (b *Bridge) inQueue(ctx context.Context, input event.InputID) (e event.Event, ok bool, err error) {
	return b.log().Last(ctx, event.Query{Input: input, Types: []event.Type{event.MessageQueued, event.MessageWithdrawn}})
}

// leaveQueue are the events that an input waits in no session's queue any more, where it did.
func (b *Bridge) leaveQueue(ctx context.Context, input event.InputID, by, where string) ([]event.Event, error) {
	e, ok, err := b.inQueue(ctx, input)
	if err != nil || !ok || e.Type == event.MessageWithdrawn {
		return nil, err
	}
	return []event.Event{queue.Withdrawn(e.Session, input, fact.MessageWithdrawn{By: by, Where: where})}, nil
}

// back makes the events of a message that takes another one back; f is refused if that does not wait any more.
func (b *Bridge) back(ctx context.Context, c Contact, m channel.Inbound, f *fact.BridgeReceived) ([]event.Event, error) {
	target, ok := b.deskOf(c.key()).takeBack(f.About)
	if !ok {
		f.Kind, f.About, f.Word = kindRefused, "", b.say(c.key()).NotWaiting
		return nil, nil
	}
	events, err := b.leaveQueue(ctx, target.input, c.Label(), c.Channel)
	if err != nil {
		return nil, err
	}
	events = append(events, event.NewFact(event.BridgeFinished, "perlica", event.Refs{Input: target.input}, fact.BridgeFinished{How: endBack}))
	told, err := b.settled(ctx, c, m, target, b.say(c.key()).TakenBack)
	return append(events, told...), err
}

// confirmed makes the events of a message that has one that was held wait for its turn.
func (b *Bridge) confirmed(ctx context.Context, c Contact, m channel.Inbound, f *fact.BridgeReceived) ([]event.Event, error) {
	d, say := b.deskOf(c.key()), b.say(c.key())
	for _, target := range d.inLine() {
		if target.input != f.About {
			continue
		}
		text, events := say.GoesOn, []event.Event(nil)
		if place := d.place(); place != "" {
			text = place + say.TakeBack
			if len(target.Remote) == 0 {
				events = append(events, b.queued(d, c, target.input, target.BridgeReceived))
			}
		}
		told, err := b.settled(ctx, c, m, target, text)
		return append(events, told...), err
	}
	f.Kind, f.About, f.Word = kindRefused, "", b.say(c.key()).NotWaiting
	return nil, nil
}

// settled says what was decided of a message that waits: in place of what was said of it below which there
// were buttons, and else in a message of its own.
func (b *Bridge) settled(ctx context.Context, c Contact, m channel.Inbound, target received, text string) (events []event.Event, err error) {
	f := fact.BridgeQueued{Peer: c.key(), Chat: target.Chat, Kind: outEdit, Text: b.render(c.Channel, text)}
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
