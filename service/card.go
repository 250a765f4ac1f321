package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sort"
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

// openQuestion is a question that waits for an answer. It belongs to a run of the bridge, of
// another process, or of a team's worker.
type openQuestion struct {
	interaction.Question
	// owner is the contact of the asking run. It is empty for a run of another front end.
	owner fact.Peer
	// team describes a worker's question. It is nil for a question of this project.
	team  *fact.TeamQuestion
	cards map[fact.Peer]*card // the map never changes

	// answers counts the answers to a worker's question that are being submitted. It is guarded by
	// Bridge.mu.
	answers int
}

// inChat returns a card of the question that was sent to a chat, or nil.
func (a *openQuestion) inChat(channel, chat string) *card {
	for who, c := range a.cards {
		if who.Channel == channel && c.chat == chat {
			return c
		}
	}
	return nil
}

// card is a question in one or several messages to one contact. The last message has the options.
type card struct {
	chat  string
	parts []string // ids of its messages

	mu      sync.Mutex        // guards the fields below
	sent    map[string]string // the platform's ids of the arrived messages
	sending chan struct{}     // closed when the message is sent or has failed; nil means that none is being sent
	since   time.Time         // arrival of the last message; zero means that an earlier bridge sent it
	lost    bool              // a part of the card cannot be sent
}

// losePart records that a part of the card cannot be sent. The result "first" is true for the first such part.
func (c *card) losePart() (first bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	first, c.lost = !c.lost, true
	return first
}

// landing is the longest time for which an answer waits for the result of sending its card.
const landing = 5 * time.Second

// whole reports whether the whole card has arrived.
func (c *card) whole() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.sent) == len(c.parts)
}

// last returns the platform's id of the message with the options. It is empty if the message has
// not arrived or the platform reports no ids.
func (c *card) last() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.sent[c.parts[len(c.parts)-1]]
}

// fresh reports whether the card has just arrived. A message without a question's id was then
// probably written about an earlier message.
func (c *card) fresh(now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return now.Sub(c.since) < interaction.ReadTime
}

// has reports whether a message of the card has this id on the platform.
func (c *card) has(id string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Contains(slices.Collect(maps.Values(c.sent)), id)
}

// markSending records that a message of the card is being sent. The caller must then call the function "arrived" with
// the result and the platform's id.
func (c *card) markSending(part string, now func() time.Time) (arrived func(id string, sent bool)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	known := make(chan struct{})
	c.sending = known
	return func(id string, sent bool) {
		c.mu.Lock()
		defer c.mu.Unlock()
		if sent {
			c.sent[part], c.since = id, now()
		}
		c.sending = nil
		close(known)
	}
}

// awaitSent returns when no message of the card is being sent, or ctx ends.
func (c *card) awaitSent(ctx context.Context) {
	c.mu.Lock()
	known := c.sending
	c.mu.Unlock()
	if known == nil {
		return
	}
	select {
	case <-known:
	case <-ctx.Done():
	}
}

// shortID returns the end of a question's id, which people see.
func shortID(id event.InteractionID) string { return string(id[max(0, len(id)-8):]) }

// askContacts sends a question to the contact of the asking run and to all contacts that may answer
// every question.
func (b *Bridge) askContacts(ib *inbox, q interaction.Question) {
	contacts, err := b.records.Contacts(b.hard)
	if err != nil {
		b.fail(err)
		return
	}
	a, under := &openQuestion{Question: q, owner: ib.key, cards: map[fact.Peer]*card{}}, ib.current()
	var events []event.Event
	for _, c := range contacts {
		own := c.key() == ib.key
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
			head += fmt.Sprintf(b.sentencesFor(c.key()).InRunOf, ib.key.Channel+":"+ib.key.Contact)
		}
		events = append(events, b.makeCard(a, c, chat, under.input, head)...)
	}
	if a.cards[ib.key] == nil {
		events = append(events, queueEvent(under.input, fact.BridgeQueued{Peer: ib.key, Chat: under.Chat, Kind: outNotice,
			Text: b.renderShort(ib.key.Channel, b.sentencesFor(ib.key).MayNotSay)}))
	}
	b.mu.Lock()
	b.openQuestions[q.ID] = a
	b.mu.Unlock()
	b.info("question", "id", shortID(q.ID), "title", q.Title)
	_ = b.commitEvents(b.hard, events...) // an error ends the bridge
}

// makeCard makes the card of a question for a contact and returns the events of its messages. The card begins with the
// text "head", which names the origin of the question.
func (b *Bridge) makeCard(a *openQuestion, c Contact, chat string, input event.InputID,
	head string) (events []event.Event) {
	say, limits := b.sentencesFor(c.key()), b.channels[c.Channel].Limits()
	card := &card{chat: chat, sent: map[string]string{}}
	a.cards[c.key()] = card
	parts := b.parts(c, a.Question, head, limits)
	for i, f := range parts {
		f.ID, f.Peer, f.Chat, f.Kind, f.Question = newID(), c.key(), chat, outCard, a.ID
		if i == len(parts)-1 && limits.Buttons {
			f.Buttons = buttons(say, a.Question, limits)
		}
		events = append(events, queueEvent(input, f))
		card.parts = append(card.parts, f.ID)
	}
	return events
}

// markSending records that a message is being sent, if it belongs to the card of an open question.
func (b *Bridge) markSending(q *queued) (arrived func(id string, sent bool)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if a := b.openQuestions[q.Question]; a != nil && q.Kind == outCard && a.cards[q.Peer] != nil {
		return a.cards[q.Peer].markSending(q.ID, b.opt.Now)
	}
	return func(string, bool) {}
}

// mayAnswer reports whether a contact has the right to answer a question now.
func (b *Bridge) mayAnswer(c Contact, id event.InteractionID) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	a := b.openQuestions[id] // nil means that the question is closed
	return c.Rights.Has(access.Approve) && (a == nil || a.owner == c.key() || c.Rights.Has(access.Admin))
}

// openTo returns the open questions that were sent to a contact.
func (b *Bridge) openTo(who fact.Peer) (list []*openQuestion) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, a := range b.openQuestions {
		if a.cards[who] != nil {
			list = append(list, a)
		}
	}
	return list
}

// closeCards tells all asked contacts how a question ended.
func (b *Bridge) closeCards(id event.InteractionID, a *interaction.Answer, why interaction.Reason) {
	b.mu.Lock()
	open := b.openQuestions[id]
	delete(b.openQuestions, id)
	b.mu.Unlock()
	if open == nil {
		return
	}
	end := &interaction.TakenError{Answer: a, At: b.opt.Now(), Lapsed: why}
	how := open.closedHow(language.English.Sentences(), end)
	b.info("question closed", "id", shortID(id), "how", how)
	events := []event.Event{cardClosed(id, how)}
	for who, c := range open.cards {
		events = append(events, queueEvent("", b.closingMessage(who, c.chat, c.parts[len(c.parts)-1], open,
			open.closedHow(b.sentencesFor(who), end), end.Answer != nil)))
	}
	_ = b.commitEvents(b.hard, events...) // an error ends the bridge
}

// closedHow returns the sentence that the question's card shows after the question has ended.
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
				label = say.Offered(o, label)
			}
		}
	}
	return fmt.Sprintf(say.AnsweredBy, end.Answer.By, end.At.Local().Format(time.TimeOnly), say.Word(end.Answer.Where),
		label)
}

func cardClosed(id event.InteractionID, how string) event.Event {
	return event.NewFact(event.CardClosed, "perlica", event.Refs{Interaction: id}, fact.CardClosed{How: how})
}

// closingMessage returns the message that shows the end of a question. If the platform can edit, the message replaces
// the last message of the card. Otherwise it is a note. After an answer, the edited message repeats the question, so
// that a person sees the answered text. A question that needs several messages is not repeated, because the card's
// earlier messages still show it.
func (b *Bridge) closingMessage(who fact.Peer, chat, target string, a *openQuestion, how string,
	answered bool) fact.BridgeQueued {
	q := a.Question
	text := b.headingOf(a, b.sentencesFor(who)) + fmt.Sprintf("**%s** `#%s`\n\n%s",
		literal(cmp.Or(q.Title, b.sentencesFor(who).UseTool)), shortID(q.ID), literal(how))
	f := fact.BridgeQueued{Peer: who, Chat: chat, Kind: outNotice, Text: b.renderShort(who.Channel, text), Question: q.ID}
	if _, ok := b.channels[who.Channel].(channel.Editor); ok {
		f.Kind, f.Target = outEdit, target
		whole := b.cutText(who.Channel, text+"\n\n"+b.sentencesFor(who).WhatItWas+"\n\n"+b.sentencesFor(who).Lay(q).Block())
		if answered && len(whole) == 1 {
			f.Text = whole[0]
		}
	}
	return f
}

// closeOrphans closes the questions of an earlier bridge, except the questions that this bridge has taken up. No
// process waits for their answers any longer.
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
	for i := len(cards) - 1; i >= 0; i-- { // begin with the last part, because it has the options
		k := cards[i]
		if b.isTeamQuestion(k.Question) { // the worker still waits for an answer
			continue
		}
		if k.state != "sent" {
			events = append(events, event.NewFact(event.SendFailed, "perlica", event.Refs{Interaction: k.Question},
				fact.Delivery{ID: k.ID, Error: "the question is closed", Final: true}))
		}
		a, err := b.findQuestion(ctx, k.Question)
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
			case a.team != nil:
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
		f := b.closingMessage(k.Peer, k.Chat, k.ID, a, how(b.sentencesFor(k.Peer)), end != nil && end.Answer != nil)
		// The card may not exist on the platform, so it cannot be edited.
		if k.state != "sent" {
			f.Kind, f.Target = outNotice, ""
		}
		events = append(events, queueEvent("", f))
	}
	if len(events) == 0 {
		return nil
	}
	// These events need no commitEvents, because startUp reads the messages to send from the view later.
	_, err = b.log().Append(ctx, events...)
	return err
}

// mostOfACard limits the messages of a card if the platform accepts files, because a person would not read more. The
// whole text is then in a file.
const mostOfACard = 8

// parts returns the messages of a card. If the texts are too many, it returns the beginning, a file
// with the whole text, and the end with the options.
func (b *Bridge) parts(c Contact, q interaction.Question, head string,
	limits channel.Limits) (list []fact.BridgeQueued) {
	say := b.sentencesFor(c.key())
	text := head + cardText(say, q, limits)
	texts := b.cutText(c.Channel, text)
	for _, text := range texts {
		list = append(list, fact.BridgeQueued{Text: text})
	}
	// If the options alone need n messages, the last n+1 messages of the whole text contain them, wherever in a message
	// they begin.
	_, options, _ := strings.Cut(text, say.Lay(q).Block())
	end := 1 + len(b.cutText(c.Channel, options))
	if !limits.Files || len(list) <= mostOfACard || end >= mostOfACard-1 {
		return list
	}
	file := fact.BridgeQueued{File: "question-" + shortID(q.ID) + ".txt",
		Text: b.renderShort(c.Channel, fmt.Sprintf(say.CardFile, len(texts)))}
	return slices.Concat(list[:mostOfACard-1-end], []fact.BridgeQueued{file}, list[len(list)-end:])
}

// cardText returns a question with all details for a judgement.
func cardText(say *language.Sentences, q interaction.Question, limits channel.Limits) string {
	var t strings.Builder
	command.Describe(&t, say, q)
	if limits.Forgeable {
		t.WriteString(say.ByLink)
		if slices.ContainsFunc(q.Options, func(o interaction.Option) bool { return !onForgeable(q, o) }) {
			fmt.Fprintf(&t, say.RestElsewhere, shortID(q.ID))
		}
		t.WriteString("\n")
		return t.String()
	}
	way := say.ByNumber
	if limits.Buttons {
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

// buttonWidth is the number of columns of an option on a button. The card shows the whole option.
const buttonWidth = 40

// onForgeable reports whether a person may choose an option on a channel where the name of a sender can be forged. A
// person may choose each no, a single yes to an ordinary request, and an answer without a typed text to an ordinary
// question.
func onForgeable(q interaction.Question, o interaction.Option) bool {
	switch tier := q.Subject.Tier; {
	case o.Text || q.Word != "" && o.Allows():
		return false
	case o.Kind == "answer":
		return tier == "" || tier == "ordinary"
	case o.Kind == "allow_once":
		return tier == "ordinary"
	}
	return !o.Allows()
}

// buttons returns the buttons of a question, at most as many as the platform has.
func buttons(say *language.Sentences, q interaction.Question, limits channel.Limits) (list []fact.Button) {
	for _, i := range pressable(q, limits.MostButtons) {
		if limits.Forgeable && !onForgeable(q, q.Options[i]) {
			continue
		}
		data := fmt.Sprintf("%s%s:%d", buttonPrefix, q.ID, i+1)
		if len(data) <= 64 { // otherwise the option is chosen by its number
			list = append(list, fact.Button{Label: say.Option(q.Options[i], buttonWidth), Data: data})
		}
	}
	return list
}

// pressable returns the positions of the options that get a button. If there are fewer buttons than options, an option
// that a button cannot choose gets none, and Perlica's own offers get the last buttons.
func pressable(q interaction.Question, most int) (list []int) {
	few := most > 0 && len(q.Options) > most
	var offers []int
	for i, o := range q.Options {
		switch typed := o.Always() || o.Text || q.Word != "" && o.Allows(); {
		case few && typed:
		case few && o.Offer && o.Allows():
			offers = append(offers, i)
		default:
			list = append(list, i)
		}
	}
	if list = append(list, offers...); few {
		list = list[:min(most, len(list))]
	}
	sort.Ints(list)
	return list
}
