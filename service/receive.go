package service

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/kernel"
	"github.com/perlica/perlica/kernel/fact"
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

// pace is how long a channel is let alone between polls that do not move its cursor and come back sooner than
// those that a platform holds open: otherwise they would follow each other without end. A known message that
// somebody sent again does move the cursor: its sender, and the next one, wait for the next poll.
type pace struct {
	least, wait time.Duration
}

// longestPause is the longest time between two such polls: as long a message may wait.
const longestPause = 5 * time.Second

// pause is the time to wait after a poll that took so long and led from one cursor to another.
func (p *pace) pause(took time.Duration, cursor, next string) time.Duration {
	if next != cursor || took >= p.least {
		p.wait = 0
		return 0
	}
	p.wait = max(p.least, min(2*p.wait, longestPause))
	return p.wait
}

// poll takes messages from a channel until ctx ends.
func (b *Bridge) poll(ctx context.Context, ch channel.Channel) {
	wait, pace := b.opt.Backoff, &pace{least: b.opt.Backoff}
	cursor, err := b.cursor(ctx, ch.Name())
	if err != nil {
		b.fail(err)
		return
	}
	for ctx.Err() == nil {
		answers := b.answers(ch.Name())
		began := time.Now()
		messages, next, err := ch.Poll(ctx, cursor)
		if err == nil {
			pause := pace.pause(time.Since(began), cursor, next)
			b.healthy(ctx, ch.Name())
			wait = b.opt.Backoff
			if err = b.receive(ctx, ch, messages, cursor, next); err != nil {
				if ctx.Err() == nil {
					b.fail(fmt.Errorf("service: receive from %s: %w", ch.Name(), err))
				}
				return
			}
			if cursor = next; pause > 0 && !channel.Wait(ctx, pause) {
				return
			}
			continue
		}
		if ctx.Err() != nil {
			return
		}
		b.ill(ctx, ch.Name(), err)
		var more bool
		if wait, more = b.backOff(ctx, wait, answers, err); !more {
			return
		}
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
		_ = b.commit(ctx, event.NewFact(event.ChannelFailed, "perlica", event.Refs{}, fact.ChannelState{Channel: name, Error: err.Error()})) // it ends the bridge
	}
}

func (b *Bridge) healthy(ctx context.Context, name string) {
	b.mu.Lock()
	_, ill := b.faults[name]
	delete(b.faults, name)
	b.mu.Unlock()
	if ill {
		b.answered(name)
		b.info("the channel can be read again", "channel", name)
		_ = b.commit(ctx, event.NewFact(event.ChannelRestored, "perlica", event.Refs{}, fact.ChannelState{Channel: name})) // likewise
	}
}

// receive puts what came on disk, and the cursor behind it: a message that is not on record
// when the bridge dies is fetched again.
func (b *Bridge) receive(ctx context.Context, ch channel.Channel, messages []channel.Inbound, cursor, next string) error {
	if b.projects != nil {
		return b.projects.receive(ctx, ch, messages, cursor, next)
	}
	for i, m := range messages {
		var events []event.Event
		if !m.Own {
			var err error
			if events, err = b.judge(ctx, ch, m); err != nil {
				return err
			}
		}
		if i == len(messages)-1 && next != cursor {
			events = append(events, event.NewFact(event.CursorMoved, "perlica", event.Refs{}, fact.CursorMoved{Channel: ch.Name(), Cursor: next}))
		}
		if err := b.commit(ctx, events...); err != nil {
			return err
		}
	}
	if len(messages) == 0 && next != cursor {
		return b.commit(ctx, event.NewFact(event.CursorMoved, "perlica", event.Refs{}, fact.CursorMoved{Channel: ch.Name(), Cursor: next}))
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
	b.answered(name) // somebody waits for an answer, and the platform works: no lane sleeps on
	f := fact.BridgeReceived{Peer: c.key(), Chat: m.Chat, Name: m.Name, Message: m.ID, Text: m.Text, Sent: m.Sent, Digest: b.digest(m)}
	for _, file := range m.Files {
		if file.Path != "" {
			f.Files = append(f.Files, file.Path)
			continue
		}
		f.Remote = append(f.Remote, fact.RemoteFile{ID: file.Remote, Name: file.Name, MIME: file.MIME, Size: file.Size})
	}
	say := b.say(c.key())
	if age := b.opt.Now().Sub(m.Sent); !m.Sent.IsZero() && age > b.set().MaxAge {
		f.Kind = kindRefused
		f.Word = fmt.Sprintf(say.TooOld, say.Span(age.Round(time.Minute)), say.Span(b.set().MaxAge))
	} else if m.Unread != "" {
		f.Kind, f.Word = kindRefused, fmt.Sprintf(say.NotRead, cmp.Or(say.Unread[m.Unread], m.Unread))
	} else if isStart(m.Text) {
		f.Kind, f.Word = kindRefused, say.Paired
	} else if err := b.classify(ctx, ch, c, m, &f); err != nil {
		return nil, err
	}
	var more []event.Event
	switch {
	case f.Kind == kindBack:
		more, err = b.back(ctx, c, m, &f)
	case f.Kind == kindSend:
		more, err = b.confirmed(ctx, c, m, &f)
	case f.Kind == kindInput, f.Kind == kindCommand && !isImmediate(m.Text):
		n, _ := b.asksIn(c.key(), m.Chat)
		f.Held = f.Kind == kindInput && n > 0
		more = b.lineUp(c, m, input, f)
	}
	if err != nil {
		return nil, err
	}
	b.info("message", "from", c.Label(), "kind", string(f.Kind), "id", m.ID)
	events := []event.Event{event.NewFact(event.BridgeReceived, "user", event.Refs{Input: input, Interaction: f.Question}, f)}
	if events = append(events, more...); f.Kind == kindBack || f.Kind == kindSend {
		events = append(events, event.NewFact(event.BridgeFinished, "perlica", event.Refs{Input: input}, fact.BridgeFinished{How: endDone}))
	}
	return events, nil
}

// isStart reports whether a text is what Telegram's button for the first message to a bot sends, perhaps with
// the code of the address that was followed.
func isStart(text string) bool {
	word, _, _ := strings.Cut(strings.TrimSpace(text), " ")
	return word == "/start"
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
// data of its button on a line of its own, and its files are; of a file that is still on the platform, its
// name and size on such a line. It is empty where a file cannot be read.
func (b *Bridge) digest(m channel.Inbound) string {
	in := kernel.Input{Text: m.Text}
	if m.Button != "" {
		in.Text += "\n" + m.Button
	}
	for _, f := range m.Files {
		if f.Path != "" {
			in.Attachments = append(in.Attachments, f.Path)
			continue
		}
		in.Text += fmt.Sprintf("\n%s %d", f.Name, f.Size)
	}
	digest, err := b.opt.Runner.Digest(in)
	if err != nil {
		return ""
	}
	return digest
}
