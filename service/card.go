package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/interaction"
	layout "github.com/perlica/perlica/interaction/card"
	"github.com/perlica/perlica/kernel"
	"github.com/perlica/perlica/kernel/command"
	"github.com/perlica/perlica/kernel/fact/bridge"
	"github.com/perlica/perlica/service/access"
	"github.com/perlica/perlica/service/channel"
)

// asked is a question of one of the bridge's runs that waits for an answer.
type asked struct {
	interaction.Question
	owner bridge.Peer           // whose run asks
	cards map[bridge.Peer]*card // does not change
}

// inChat returns a card of the question that was put into a chat, or nil.
func (a *asked) inChat(channel, chat string) *card {
	for who, c := range a.cards {
		if who.Channel == channel && c.chat == chat {
			return c
		}
	}
	return nil
}

// card is a question as it was put to one contact: one or several messages, of which the last has
// the options.
type card struct {
	chat  string
	parts []string // the ids of its messages

	mu    sync.Mutex        // guards what follows
	sent  map[string]string // the messages that have arrived: the platform's id of each
	onWay chan struct{}     // nil: none is being sent; closed when what became of that is known
}

// landing is how long an answer waits for the platform's word on the card.
const landing = 5 * time.Second

// whole reports whether all of the card has arrived.
func (c *card) whole() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.sent) == len(c.parts)
}

// last is the platform's id of the message with the options; empty: it has not arrived, or its
// platform does not say.
func (c *card) last() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.sent[c.parts[len(c.parts)-1]]
}

// has reports whether a message of the card has this platform's id.
func (c *card) has(id string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Contains(slices.Collect(maps.Values(c.sent)), id)
}

// leaves takes note that a message of the card is being sent. lands, which must follow, is sent
// what became of it: sent says that it has arrived, under the platform's id.
func (c *card) leaves(part string) (lands func(id string, sent bool)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	known := make(chan struct{})
	c.onWay = known
	return func(id string, sent bool) {
		c.mu.Lock()
		defer c.mu.Unlock()
		if sent {
			c.sent[part] = id
		}
		c.onWay = nil
		close(known)
	}
}

// wait returns when the card is not on its way, or ctx ends.
func (c *card) wait(ctx context.Context) {
	c.mu.Lock()
	known := c.onWay
	c.mu.Unlock()
	if known == nil {
		return
	}
	select {
	case <-known:
	case <-ctx.Done():
	}
}

// shortID is what people call a question.
func shortID(id event.InteractionID) string { return string(id[max(0, len(id)-8):]) }

// ask puts a question to the contact whose run asks, and to those who may answer everybody's.
func (b *Bridge) ask(d *desk, q interaction.Question) {
	contacts, err := b.records.Contacts(b.hard)
	if err != nil {
		b.fail(err)
		return
	}
	a, under := &asked{q, d.key, map[bridge.Peer]*card{}}, d.current()
	var events []event.Event
	for _, c := range contacts {
		own := c.key() == d.key
		ch := b.channels[c.Channel]
		if ch == nil || !c.Rights.Has(access.Approve) || !own && !c.Rights.Has(access.Admin) {
			continue
		}
		chat := c.Chat
		if own {
			chat = under.Chat
		}
		parts := b.cut(ch.Name(), cardText(q, own, d, ch.Limits().Buttons))
		card := &card{chat: chat, sent: map[string]string{}}
		a.cards[c.key()] = card
		for i, text := range parts {
			f := bridge.Queued{ID: newID(), Peer: c.key(), Chat: chat, Kind: outCard, Text: text, Question: q.ID}
			if i == len(parts)-1 && ch.Limits().Buttons {
				f.Buttons = buttons(q)
			}
			events = append(events, queueEvent(under.input, f))
			card.parts = append(card.parts, f.ID)
		}
	}
	if a.cards[d.key] == nil {
		events = append(events, queueEvent(under.input, bridge.Queued{Peer: d.key, Chat: under.Chat, Kind: outNotice,
			Text: b.render(d.key.Channel, "The agent asks something that you may not answer: it waits for somebody who may, or for `perlica pending`.")}))
	}
	b.mu.Lock()
	b.asked[q.ID] = a
	b.mu.Unlock()
	b.info("question", "id", shortID(q.ID), "title", q.Title)
	_ = b.commit(b.hard, events...) // it ends the bridge
}

// cardText is a question with all that is to be judged.
func cardText(q interaction.Question, own bool, d *desk, pressed bool) string {
	var t strings.Builder
	if !own {
		fmt.Fprintf(&t, "In a run of %s:\n\n", d.key.Channel+":"+d.key.Contact)
	}
	command.Describe(&t, q)
	way := "Answer with an option's number"
	if pressed {
		way = "Press a button, answer with an option's number"
	}
	fmt.Fprintf(&t, "%s, or with `#%s` and the number.", way, shortID(q.ID))
	if q.Word != "" {
		fmt.Fprintf(&t, " A yes takes all of it: `#%s`, the number and the word.", shortID(q.ID))
	}
	if slices.ContainsFunc(q.Options, interaction.Option.Always) {
		t.WriteString(" Behind the number of a yes for good stands `always`.")
	}
	t.WriteString("\n")
	return t.String()
}

const buttonPrefix = "q:"

// buttonWidth is how many columns of an option a button shows; the card has all of it.
const buttonWidth = 40

func buttons(q interaction.Question) (list []bridge.Button) {
	for i, o := range q.Options {
		data := fmt.Sprintf("%s%s:%d", buttonPrefix, q.ID, i+1)
		if len(data) <= 64 { // else it is answered by its number
			list = append(list, bridge.Button{Label: layout.Label(o, buttonWidth), Data: data})
		}
	}
	return list
}

// leaves takes note that a message is being sent, if it belongs to the card of an open question.
func (b *Bridge) leaves(q *queued) (lands func(id string, sent bool)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if a := b.asked[q.Question]; a != nil && q.Kind == outCard && a.cards[q.Peer] != nil {
		return a.cards[q.Peer].leaves(q.ID)
	}
	return func(string, bool) {}
}

// mayAnswer reports whether a contact has the right to answer a question now.
func (b *Bridge) mayAnswer(c Contact, id event.InteractionID) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	a := b.asked[id] // nil: it is closed
	return c.Rights.Has(access.Approve) && (a == nil || a.owner == c.key() || c.Rights.Has(access.Admin))
}

// openTo returns the questions that were put to a contact and wait.
func (b *Bridge) openTo(who bridge.Peer) (list []*asked) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, a := range b.asked {
		if a.cards[who] != nil {
			list = append(list, a)
		}
	}
	return list
}

// closeCards tells everybody who was asked how a question ended.
func (b *Bridge) closeCards(q interaction.Question, a *interaction.Answer, why interaction.Reason) {
	b.mu.Lock()
	open := b.asked[q.ID]
	delete(b.asked, q.ID)
	b.mu.Unlock()
	if open == nil {
		return
	}
	how := closedHow(q, &interaction.TakenError{Answer: a, At: b.opt.Now(), Lapsed: why})
	b.info("question closed", "id", shortID(q.ID), "how", how)
	events := []event.Event{cardClosed(q.ID, how)}
	for who, c := range open.cards {
		events = append(events, queueEvent("", b.closing(who, c.chat, c.parts[len(c.parts)-1], q, how)))
	}
	_ = b.commit(b.hard, events...) // it ends the bridge
}

// closedHow is what a card says of how its question ended.
func closedHow(q interaction.Question, end *interaction.TakenError) string {
	switch {
	case end.Answer == nil && end.Lapsed == interaction.Crashed:
		return "closed without an answer: the bridge died while it was open"
	case end.Answer == nil:
		return "closed without an answer: " + strings.ReplaceAll(string(end.Lapsed), "_", " ")
	}
	label := end.Answer.Option
	for _, o := range q.Options {
		if o.ID == end.Answer.Option {
			label = o.Label
		}
	}
	return fmt.Sprintf("%s answered at %s from %s: %s", end.Answer.By, end.At.Local().Format(time.TimeOnly), end.Answer.Where, label)
}

func cardClosed(id event.InteractionID, how string) event.Event {
	return event.NewFact(event.CardClosed, "perlica", event.Refs{Interaction: id}, bridge.CardClosed{How: how})
}

// closing edits a card where the platform can, and else sends a note.
func (b *Bridge) closing(who bridge.Peer, chat, target string, q interaction.Question, how string) bridge.Queued {
	text := fmt.Sprintf("**%s** `#%s`\n\n%s", literal(cmp.Or(q.Title, "use a tool")), shortID(q.ID), literal(how))
	f := bridge.Queued{Peer: who, Chat: chat, Kind: outNotice, Text: b.render(who.Channel, text), Question: q.ID}
	if _, ok := b.channels[who.Channel].(channel.Editor); ok {
		f.Kind, f.Target = outEdit, target
	}
	return f
}

// closeOrphans closes what an earlier bridge asked: no one waits for an answer any more.
func (b *Bridge) closeOrphans(ctx context.Context) error {
	cards, err := b.records.orphans(ctx)
	if err != nil {
		return err
	}
	seen := map[event.InteractionID]bool{}
	sent := map[bridge.Peer]map[event.InteractionID]bool{}
	var events []event.Event
	for i := len(cards) - 1; i >= 0; i-- { // the last part has the options
		k := cards[i]
		if k.state != "sent" {
			events = append(events, event.NewFact(event.SendFailed, "perlica", event.Refs{Interaction: k.Question},
				bridge.Send{ID: k.ID, Error: "the question is closed", Final: true}))
		}
		q, err := interaction.Find(ctx, &b.log().Reader, k.Question)
		if err != nil && !errors.Is(err, interaction.ErrUnknownQuestion) {
			b.warn("a question cannot be read", "id", string(k.Question), "error", err.Error())
		}
		q.ID = k.Question
		how := "closed without an answer: the bridge had ended"
		if end, err := interaction.Closed(ctx, &b.log().Reader, k.Question); err != nil {
			return err
		} else if end != nil {
			how = closedHow(q, end)
		}
		if !seen[k.Question] {
			seen[k.Question] = true
			events = append(events, cardClosed(k.Question, how))
		}
		if sent[k.Peer] == nil {
			sent[k.Peer] = map[event.InteractionID]bool{}
		}
		if k.state == "queued" || b.channels[k.Channel] == nil || sent[k.Peer][k.Question] {
			continue
		}
		sent[k.Peer][k.Question] = true
		f := b.closing(k.Peer, k.Chat, k.ID, q, how)
		if k.state != "sent" { // whether there is a card to edit is not known
			f.Kind, f.Target = outNotice, ""
		}
		events = append(events, queueEvent("", f))
	}
	if len(events) == 0 {
		return nil
	}
	// What is to be sent is taken from the view in a moment.
	_, err = b.log().Append(ctx, events...)
	return err
}

// show is sent what happens in a turn.
func (d *desk) show(n kernel.Notice) {
	switch n := n.(type) {
	case kernel.Asked:
		if n.Answerable {
			d.b.ask(d, n.Question)
		}
	case kernel.Closed:
		d.b.closeCards(n.Question, n.Answer, n.Reason)
	case kernel.Warned:
		d.b.warn("warning of a run", "detail", n.Detail)
	default:
		d.progress(n)
	}
}
