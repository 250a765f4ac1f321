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
	"github.com/perlica/perlica/kernel/command"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/kernel/language"
	"github.com/perlica/perlica/service/access"
	"github.com/perlica/perlica/service/channel"
)

// asked is a question that waits for an answer: of one of the bridge's runs, of another process's, or of a team's worker.
type asked struct {
	interaction.Question
	owner fact.Peer           // whose run asks; empty: none of the bridge's
	there *fact.TeamQuestion  // of a worker; nil: of a run here
	cards map[fact.Peer]*card // does not change

	answers int // to a worker's question that are under way; guarded by the bridge's mu
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
	since time.Time         // the arrival of the last of them; zero means an earlier bridge sent it
	lost  bool              // a part of it cannot be sent
}

// lose takes note that a part of the card cannot be sent. It reports whether that is the first one.
func (c *card) lose() (first bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	first, c.lost = !c.lost, true
	return first
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

// fresh reports whether the card arrived so recently that a message without its question's id was written for
// something that stood there before.
func (c *card) fresh(now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return now.Sub(c.since) < interaction.ReadTime
}

// has reports whether a message of the card has this platform's id.
func (c *card) has(id string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Contains(slices.Collect(maps.Values(c.sent)), id)
}

// leaves takes note that a message of the card is being sent. lands, which must follow, is sent
// what became of it: sent says that it has arrived, under the platform's id.
func (c *card) leaves(part string, now func() time.Time) (lands func(id string, sent bool)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	known := make(chan struct{})
	c.onWay = known
	return func(id string, sent bool) {
		c.mu.Lock()
		defer c.mu.Unlock()
		if sent {
			c.sent[part], c.since = id, now()
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
	a, under := &asked{Question: q, owner: d.key, cards: map[fact.Peer]*card{}}, d.current()
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
		head := b.heading()
		if !own {
			head += fmt.Sprintf(b.say(c.key()).InRunOf, d.key.Channel+":"+d.key.Contact)
		}
		events = append(events, b.deal(a, c, chat, under.input, head)...)
	}
	if a.cards[d.key] == nil {
		events = append(events, queueEvent(under.input, fact.BridgeQueued{Peer: d.key, Chat: under.Chat, Kind: outNotice,
			Text: b.render(d.key.Channel, b.say(d.key).MayNotSay)}))
	}
	b.mu.Lock()
	b.asked[q.ID] = a
	b.mu.Unlock()
	b.info("question", "id", shortID(q.ID), "title", q.Title)
	_ = b.commit(b.hard, events...) // it ends the bridge
}

// deal makes the card of a question for a contact, and the events of its messages. head begins it, and says whose it is.
func (b *Bridge) deal(a *asked, c Contact, chat string, input event.InputID, head string) (events []event.Event) {
	say, limits := b.say(c.key()), b.channels[c.Channel].Limits()
	card := &card{chat: chat, sent: map[string]string{}}
	a.cards[c.key()] = card
	parts := b.parts(c, a.Question, head, limits)
	for i, f := range parts {
		f.ID, f.Peer, f.Chat, f.Kind, f.Question = newID(), c.key(), chat, outCard, a.ID
		if i == len(parts)-1 && limits.Buttons {
			f.Buttons = buttons(say, a.Question)
		}
		events = append(events, queueEvent(input, f))
		card.parts = append(card.parts, f.ID)
	}
	return events
}

// leaves takes note that a message is being sent, if it belongs to the card of an open question.
func (b *Bridge) leaves(q *queued) (lands func(id string, sent bool)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if a := b.asked[q.Question]; a != nil && q.Kind == outCard && a.cards[q.Peer] != nil {
		return a.cards[q.Peer].leaves(q.ID, b.opt.Now)
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
func (b *Bridge) openTo(who fact.Peer) (list []*asked) {
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
func (b *Bridge) closeCards(id event.InteractionID, a *interaction.Answer, why interaction.Reason) {
	b.mu.Lock()
	open := b.asked[id]
	delete(b.asked, id)
	b.mu.Unlock()
	if open == nil {
		return
	}
	end := &interaction.TakenError{Answer: a, At: b.opt.Now(), Lapsed: why}
	how := open.closedHow(language.English.Sentences(), end)
	b.info("question closed", "id", shortID(id), "how", how)
	events := []event.Event{cardClosed(id, how)}
	for who, c := range open.cards {
		events = append(events, queueEvent("", b.closing(who, c.chat, c.parts[len(c.parts)-1], open, open.closedHow(b.say(who), end), end.Answer != nil)))
	}
	_ = b.commit(b.hard, events...) // it ends the bridge
}

// closedHow is what a card says of how its question ended.
func closedHow(say *language.Sentences, q interaction.Question, end *interaction.TakenError) string {
	switch {
	case end.Answer == nil && end.Lapsed == interaction.Crashed:
		return say.BridgeDied
	case end.Answer == nil:
		return fmt.Sprintf(say.ClosedWith, cmp.Or(say.Closings[string(end.Lapsed)], string(end.Lapsed)))
	}
	label := end.Answer.Option
	for _, o := range q.Options {
		if o.ID == end.Answer.Option {
			label = o.Label
			if o.Offer {
				label = say.Translate(label)
			}
		}
	}
	return fmt.Sprintf(say.AnsweredBy, end.Answer.By, end.At.Local().Format(time.TimeOnly), say.Form(end.Answer.Where), label)
}

func cardClosed(id event.InteractionID, how string) event.Event {
	return event.NewFact(event.CardClosed, "perlica", event.Refs{Interaction: id}, fact.CardClosed{How: how})
}

// closing edits a card where the platform can, and else sends a note. What was answered stays to be read on an
// edited card; where it takes more than one message, the card's earlier ones have it.
func (b *Bridge) closing(who fact.Peer, chat, target string, a *asked, how string, answered bool) fact.BridgeQueued {
	q := a.Question
	text := b.headingOf(a, b.say(who)) + fmt.Sprintf("**%s** `#%s`\n\n%s", literal(cmp.Or(q.Title, b.say(who).UseTool)), shortID(q.ID), literal(how))
	f := fact.BridgeQueued{Peer: who, Chat: chat, Kind: outNotice, Text: b.render(who.Channel, text), Question: q.ID}
	if _, ok := b.channels[who.Channel].(channel.Editor); ok {
		f.Kind, f.Target = outEdit, target
		whole := b.cut(who.Channel, text+"\n\n"+b.say(who).WhatItWas+"\n\n"+b.say(who).Lay(q).Block())
		if answered && len(whole) == 1 {
			f.Text = whole[0]
		}
	}
	return f
}

// closeOrphans closes what an earlier bridge asked, but for what was taken up: no one waits for an answer any more.
func (b *Bridge) closeOrphans(ctx context.Context) error {
	cards, err := b.records.orphans(ctx)
	if err != nil {
		return err
	}
	open, err := b.opt.Runner.PendingQuestions(ctx)
	if err != nil {
		return err
	}
	seen := map[event.InteractionID]bool{}
	sent := map[fact.Peer]map[event.InteractionID]bool{}
	var events []event.Event
	for i := len(cards) - 1; i >= 0; i-- { // the last part has the options
		k := cards[i]
		if b.isThere(k.Question) { // its worker waits on
			continue
		}
		if k.state != "sent" {
			events = append(events, event.NewFact(event.SendFailed, "perlica", event.Refs{Interaction: k.Question},
				fact.Delivery{ID: k.ID, Error: "the question is closed", Final: true}))
		}
		a, err := b.find(ctx, k.Question)
		if err != nil && !errors.Is(err, interaction.ErrUnknownQuestion) {
			b.warn("a question cannot be read", "id", string(k.Question), "error", err.Error())
		}
		q := a.Question
		end, err := interaction.Closed(ctx, &b.log().Reader, k.Question)
		if err != nil {
			return err
		}
		how := func(say *language.Sentences) string {
			switch {
			case a.there != nil:
				return say.TeamElsewhere
			case end == nil && slices.ContainsFunc(open, func(o interaction.Question) bool { return o.ID == k.Question }):
				return fmt.Sprintf(say.StillOpen, shortID(k.Question))
			case end == nil:
				return say.BridgeEnded
			}
			return closedHow(say, q, end)
		}
		if !seen[k.Question] {
			seen[k.Question] = true
			events = append(events, cardClosed(k.Question, how(language.English.Sentences())))
		}
		if sent[k.Peer] == nil {
			sent[k.Peer] = map[event.InteractionID]bool{}
		}
		if k.state == "queued" || b.channels[k.Channel] == nil || sent[k.Peer][k.Question] {
			continue
		}
		sent[k.Peer][k.Question] = true
		f := b.closing(k.Peer, k.Chat, k.ID, a, how(b.say(k.Peer)), end != nil && end.Answer != nil)
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

// mostOfACard is how many messages a card makes where the platform takes files: more would be read by no one.
const mostOfACard = 8

// parts are the messages of a card: texts, and, where they would be too many, its beginning, a file with all of
// it, and its end with the options.
func (b *Bridge) parts(c Contact, q interaction.Question, head string, limits channel.Limits) (list []fact.BridgeQueued) {
	say := b.say(c.key())
	text := head + cardText(say, q, limits.Buttons)
	texts := b.cut(c.Channel, text)
	for _, text := range texts {
		list = append(list, fact.BridgeQueued{Text: text})
	}
	// The options: what is cut into n messages by itself is in the last n+1, wherever it begins.
	_, options, _ := strings.Cut(text, say.Lay(q).Block())
	end := 1 + len(b.cut(c.Channel, options))
	if !limits.Files || len(list) <= mostOfACard || end >= mostOfACard-1 {
		return list
	}
	file := fact.BridgeQueued{File: "question-" + shortID(q.ID) + ".txt", Text: b.render(c.Channel, fmt.Sprintf(say.CardFile, len(texts)))}
	return slices.Concat(list[:mostOfACard-1-end], []fact.BridgeQueued{file}, list[len(list)-end:])
}

// cardText is a question with all that is to be judged.
func cardText(say *language.Sentences, q interaction.Question, pressed bool) string {
	var t strings.Builder
	command.Describe(&t, say, q)
	way := say.ByNumber
	if pressed {
		way = say.ByButton
	}
	fmt.Fprintf(&t, way, shortID(q.ID))
	if q.Word != "" {
		fmt.Fprintf(&t, say.YesTakesAll, shortID(q.ID))
	}
	if slices.ContainsFunc(q.Options, interaction.Option.Always) {
		t.WriteString(say.AlwaysBehind)
	}
	t.WriteString("\n")
	return t.String()
}

const buttonPrefix = "q:"

// buttonWidth is how many columns of an option a button shows; the card has all of it.
const buttonWidth = 40

func buttons(say *language.Sentences, q interaction.Question) (list []fact.Button) {
	for i, o := range q.Options {
		data := fmt.Sprintf("%s%s:%d", buttonPrefix, q.ID, i+1)
		if len(data) <= 64 { // else it is answered by its number
			list = append(list, fact.Button{Label: say.Option(o, buttonWidth), Data: data})
		}
	}
	return list
}
