package service

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/kernel"
	"github.com/perlica/perlica/kernel/fact/bridge"
	"github.com/perlica/perlica/service/channel"
)

// fault is why a channel cannot be polled.
type fault struct {
	text  string
	since time.Time
}

// InputID is the id of the input that a message is: the same message has always the same one.
func InputID(channel, message string) event.InputID {
	id := channel + ":" + message
	if len(id) <= 120 && strings.IndexFunc(id, func(r rune) bool { return r <= ' ' || r > '~' }) < 0 {
		return event.InputID(id)
	}
	sum := sha256.Sum256([]byte(id))
	return event.InputID(channel + ":sha256:" + hex.EncodeToString(sum[:]))
}

// poll takes messages from a channel until ctx ends.
func (b *Bridge) poll(ctx context.Context, ch channel.Channel) {
	wait := b.opt.Backoff
	cursor, err := b.records.cursor(ctx, ch.Name())
	if err != nil {
		b.fail(err)
		return
	}
	for ctx.Err() == nil {
		messages, next, err := ch.Poll(ctx, cursor)
		if err == nil {
			b.healthy(ctx, ch.Name())
			wait = b.opt.Backoff
			if err = b.receive(ctx, ch, messages, cursor, next); err != nil {
				if ctx.Err() == nil {
					b.fail(fmt.Errorf("service: receive from %s: %w", ch.Name(), err))
				}
				return
			}
			cursor = next
			continue
		}
		if ctx.Err() != nil {
			return
		}
		b.ill(ctx, ch.Name(), err)
		var limit *channel.RateLimitError
		if errors.As(err, &limit) {
			wait = max(wait, limit.After)
		}
		if !channel.Wait(ctx, wait) {
			return
		}
		wait = min(2*wait, maxBackoff)
	}
}

// ill records that a channel cannot be polled, once.
func (b *Bridge) ill(ctx context.Context, name string, err error) {
	b.mu.Lock()
	_, known := b.faults[name]
	b.faults[name] = fault{err.Error(), b.opt.Now()}
	b.mu.Unlock()
	if !known {
		b.warn("the channel cannot be read", "channel", name, "error", err.Error())
		_ = b.commit(ctx, event.NewFact(event.ChannelFailed, "perlica", event.Refs{}, bridge.Channel{Channel: name, Error: err.Error()})) // it ends the bridge
	}
}

func (b *Bridge) healthy(ctx context.Context, name string) {
	b.mu.Lock()
	_, ill := b.faults[name]
	delete(b.faults, name)
	b.mu.Unlock()
	if ill {
		b.info("the channel can be read again", "channel", name)
		_ = b.commit(ctx, event.NewFact(event.ChannelRestored, "perlica", event.Refs{}, bridge.Channel{Channel: name})) // likewise
	}
}

// receive puts what came on disk, and the cursor behind it: a message that is not on record
// when the bridge dies is fetched again.
func (b *Bridge) receive(ctx context.Context, ch channel.Channel, messages []channel.Inbound, cursor, next string) error {
	for i, m := range messages {
		var events []event.Event
		if !m.Own {
			var err error
			if events, err = b.judge(ctx, ch, m); err != nil {
				return err
			}
		}
		if i == len(messages)-1 && next != cursor {
			events = append(events, event.NewFact(event.CursorMoved, "perlica", event.Refs{}, bridge.Cursor{Channel: ch.Name(), Cursor: next}))
		}
		if err := b.commit(ctx, events...); err != nil {
			return err
		}
	}
	if len(messages) == 0 && next != cursor {
		return b.commit(ctx, event.NewFact(event.CursorMoved, "perlica", event.Refs{}, bridge.Cursor{Channel: ch.Name(), Cursor: next}))
	}
	return nil
}

// judge makes the events of one message.
func (b *Bridge) judge(ctx context.Context, ch channel.Channel, m channel.Inbound) ([]event.Event, error) {
	name := ch.Name()
	// This also brings the view up to date, with all that was committed before.
	c, paired, err := b.records.contact(ctx, name, m.Contact)
	if err != nil {
		return nil, err
	}
	input := InputID(name, m.ID)
	received, sent, recorded, err := b.records.known(ctx, input, name, m.ID)
	if received {
		b.repeated(ch, m, recorded)
	}
	if received || sent || err != nil {
		return nil, err
	}
	if !paired {
		return b.stranger(ctx, name, m)
	}
	f := bridge.Received{Peer: c.key(), Chat: m.Chat, Name: m.Name, Message: m.ID, Text: m.Text, Sent: m.Sent, Digest: b.digest(m)}
	for _, file := range m.Files {
		f.Files = append(f.Files, file.Path)
	}
	if age := b.opt.Now().Sub(m.Sent); !m.Sent.IsZero() && age > b.set().MaxAge {
		f.Kind = kindRefused
		f.Word = fmt.Sprintf("This message is %s old and was not answered: nothing older than %s is. Send it again if it still matters.",
			age.Round(time.Minute), b.set().MaxAge)
	} else if err := b.classify(ctx, ch, c, m, &f); err != nil {
		return nil, err
	}
	b.info("message", "from", c.Label(), "kind", string(f.Kind), "id", m.ID)
	events := []event.Event{event.NewFact(event.BridgeReceived, "user", event.Refs{Input: input, Interaction: f.Question}, f)}
	if f.Kind != kindInput {
		return events, nil
	}
	if ack := b.set().Ack; ack != "" {
		events = append(events, queueEvent(input, bridge.Queued{
			ID: "ack:" + string(input), Peer: c.key(), Chat: m.Chat, Kind: outAck, Text: b.render(name, ack), ReplyTo: m.ID,
		}))
	}
	if n := len(b.openTo(c.key())); n > 0 {
		events = append(events, queueEvent(input, bridge.Queued{
			Peer: c.key(), Chat: m.Chat, Kind: outNotice, Text: b.render(name, hint(n)), ReplyTo: m.ID,
		}))
	}
	return events, nil
}

// repeated refuses a message whose id is on record with another digest, and says so to its sender
// where that waits for an answer. What cannot be compared, because an earlier version recorded it or its
// payload was pruned, is taken for the same with a warning.
func (b *Bridge) repeated(ch channel.Channel, m channel.Inbound, recorded string) {
	given := b.digest(m)
	if given == "" || recorded == given {
		return
	}
	conflict := &channel.ConflictError{ID: m.ID, Recorded: recorded, Given: given}
	what := "a message was not taken"
	if recorded == "" {
		what = "a message was not compared"
	}
	b.warn(what, "channel", ch.Name(), "error", conflict.Error())
	if r, ok := ch.(channel.Refuser); ok {
		r.Refuse(m, conflict)
	}
}

// digest identifies what a message says: the digest of the input that its text, or its text and the
// data of its button on a line of its own, and its files are. It is empty where a file cannot be read.
func (b *Bridge) digest(m channel.Inbound) string {
	in := kernel.Input{Text: m.Text}
	if m.Button != "" {
		in.Text += "\n" + m.Button
	}
	for _, f := range m.Files {
		in.Attachments = append(in.Attachments, f.Path)
	}
	digest, err := b.opt.Runner.Digest(in)
	if err != nil {
		return ""
	}
	return digest
}

// hint says why a message was taken for none of the answers.
func hint(open int) string {
	if open == 1 {
		return "This waits behind the question above; it does not answer it. Answer with an option's number behind the question, or by replying to it."
	}
	return fmt.Sprintf("This waits behind %d open questions; it answers none of them. Answer with `#id` and an option's number, or by replying to the question.", open)
}
