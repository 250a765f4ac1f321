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

// fault is the reason why a channel cannot be polled.
type fault struct {
	text  string
	since time.Time
}

// InputID returns the id of a message's input. The same message always has the same id.
func InputID(channel, message string) event.InputID {
	id := channel + ":" + message
	if len(id) <= 120 && strings.IndexFunc(id, func(r rune) bool { return r <= ' ' || r > '~' }) < 0 {
		return event.InputID(id)
	}
	sum := sha256.Sum256([]byte(id))
	return event.InputID(channel + ":sha256:" + hex.EncodeToString(sum[:]))
}

// pace lengthens the pauses between polls that return quickly without moving the cursor. Without a pause such polls
// would follow each other endlessly. A repeated message moves the cursor, so it causes no pause.
type pace struct {
	least, wait time.Duration
}

// longestPause is the longest pause that pace makes. A message may wait this long.
const longestPause = 5 * time.Second

// nextPause returns the pause after a poll with this duration and these cursors.
func (p *pace) nextPause(took time.Duration, cursor, next string) time.Duration {
	if next != cursor || took >= p.least {
		p.wait = 0
		return 0
	}
	p.wait = max(p.least, min(2*p.wait, longestPause))
	return p.wait
}

// pollChannel receives messages from a channel until ctx ends.
func (b *Bridge) pollChannel(ctx context.Context, ch channel.Channel) {
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
			pause := pace.nextPause(time.Since(began), cursor, next)
			b.channelRestored(ctx, ch.Name())
			wait = b.opt.Backoff
			if err = b.recordMessages(ctx, ch, messages, cursor, next); err != nil {
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
		b.channelFailed(ctx, ch.Name(), err)
		var more bool
		if wait, more = b.backOff(ctx, wait, answers, err); !more {
			return
		}
	}
}

// channelFailed records once that a channel cannot be polled.
func (b *Bridge) channelFailed(ctx context.Context, name string, err error) {
	b.mu.Lock()
	_, known := b.faults[name]
	b.faults[name] = fault{err.Error(), b.opt.Now()}
	b.mu.Unlock()
	if !known {
		b.warn("the channel cannot be read", "channel", name, "error", err.Error())
		// an error ends the bridge
		_ = b.commitEvents(ctx, event.NewFact(event.ChannelFailed, "perlica", event.Refs{},
			fact.ChannelState{Channel: name, Error: err.Error()}))
	}
}

func (b *Bridge) channelRestored(ctx context.Context, name string) {
	b.mu.Lock()
	_, ill := b.faults[name]
	delete(b.faults, name)
	b.mu.Unlock()
	if ill {
		b.answered(name)
		b.info("the channel can be read again", "channel", name)
		// an error ends the bridge
		_ = b.commitEvents(ctx, event.NewFact(event.ChannelRestored, "perlica", event.Refs{},
			fact.ChannelState{Channel: name}))
	}
}

// recordMessages records the received messages and then the cursor. A message that is not on record
// when the bridge dies is fetched again.
func (b *Bridge) recordMessages(ctx context.Context, ch channel.Channel, messages []channel.Inbound, cursor,
	next string) error {
	if b.projects != nil {
		return b.projects.receivePolled(ctx, ch, messages, cursor, next)
	}
	for i, m := range messages {
		var events []event.Event
		if !m.Own {
			var err error
			if events, err = b.judgeMessage(ctx, ch, m); err != nil {
				return err
			}
		}
		if i == len(messages)-1 && next != cursor {
			events = append(events, event.NewFact(event.CursorMoved, "perlica", event.Refs{},
				fact.CursorMoved{Channel: ch.Name(), Cursor: next}))
		}
		if err := b.commitEvents(ctx, events...); err != nil {
			return err
		}
	}
	if len(messages) == 0 && next != cursor {
		return b.commitEvents(ctx, event.NewFact(event.CursorMoved, "perlica", event.Refs{},
			fact.CursorMoved{Channel: ch.Name(), Cursor: next}))
	}
	return nil
}

// judgeMessage makes the events of one message.
func (b *Bridge) judgeMessage(ctx context.Context, ch channel.Channel, m channel.Inbound) ([]event.Event, error) {
	name := ch.Name()
	// contact also brings the view up to date, so the checks below see all earlier messages.
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
	if !paired || m.Unproven {
		return b.stranger(ctx, name, m)
	}
	// A contact waits for a reply and the platform works, so the outboxes stop waiting.
	b.answered(name)
	f := fact.BridgeReceived{Peer: c.key(), Chat: m.Chat, Name: m.Name, Message: m.ID, Text: m.Text, Sent: m.Sent,
		Digest: b.digest(m)}
	addFiles(&f, m.Files)
	say := b.sentencesFor(c.key())
	if age := b.opt.Now().Sub(m.Sent); !m.Sent.IsZero() && age > b.settings().MaxAge {
		f.Kind = kindRefused
		f.Word = fmt.Sprintf(say.TooOld, say.Span(age.Round(time.Minute)), say.Span(b.settings().MaxAge))
	} else if m.Unread != "" {
		f.Kind, f.Word = kindRefused, fmt.Sprintf(say.NotRead, cmp.Or(say.Unread[m.Unread], m.Unread))
	} else if isStart(m.Text) {
		f.Kind, f.Word = kindRefused, say.Paired
	} else if err := b.classifyMessage(ctx, ch, c, m, &f); err != nil {
		return nil, err
	}
	var more []event.Event
	switch {
	case f.Kind == kindBack:
		more, err = b.takenBack(ctx, c, m, &f)
	case f.Kind == kindSend:
		more, err = b.confirmed(ctx, c, m, &f)
	case f.Kind == kindInput, f.Kind == kindCommand && !isImmediate(m.Text):
		n, _ := b.asksIn(c.key(), m.Chat)
		f.Held = f.Kind == kindInput && n > 0
		more, err = b.waitingEvents(ctx, c, m, input, f)
	}
	if err != nil {
		return nil, err
	}
	b.info("message", "from", c.Label(), "kind", string(f.Kind), "id", m.ID)
	events := []event.Event{event.NewFact(event.BridgeReceived, "user", event.Refs{Input: input, Interaction: f.Question},
		f)}
	if events = append(events, more...); f.Kind == kindBack || f.Kind == kindSend {
		events = append(events, event.NewFact(event.BridgeFinished, "perlica", event.Refs{Input: input},
			fact.BridgeFinished{How: endDone}))
	}
	return events, nil
}

// addFiles adds the files of a message. A file without a path is still on the platform.
func addFiles(f *fact.BridgeReceived, files []channel.File) {
	for _, file := range files {
		if file.Path != "" {
			f.Files = append(f.Files, file.Path)
			continue
		}
		f.Remote = append(f.Remote, fact.RemoteFile{ID: file.Remote, Name: file.Name, MIME: file.MIME, Size: file.Size})
	}
}

// isStart reports whether a text comes from Telegram's button for the first message to a bot. It
// may contain the code of a followed link.
func isStart(text string) bool {
	word, _, _ := strings.Cut(strings.TrimSpace(text), " ")
	return word == "/start"
}

// repeated refuses a message if its id is on record with another digest. It tells the sender if the
// sender waits for a reply. A pruned record has no digest and counts as equal, with a warning.
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

// digest returns the digest of a message's content, so that a repeated message can be recognised. The content is the
// text, the data of the pressed button, and the files. For a file that is still on the platform, its name and its size
// are used. The digest is empty if a file cannot be read.
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
