package service

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/perlica/perlica/eventlog"
	"github.com/perlica/perlica/interaction"
	"github.com/perlica/perlica/kernel"
	"github.com/perlica/perlica/kernel/command"
)

// asked is a question of one of the bridge's runs that waits for an answer.
type asked struct {
	interaction.Question
	owner contactFact // whose run asks
	cards map[contactFact]*card
}

// card is a question as it was put to one contact.
type card struct {
	chat string
	last string // the id of its last part, which has the options
	// When sending that part began, and when it is known to have arrived; zero: not yet, or not
	// any more, because it failed.
	began, arrived time.Time
	decided        chan struct{} // while it is on its way: closed when that is known
}

// quick is how long a card may be on its way to be answered by a bare number at once: of one that
// waits for its platform for longer nobody knows when it was seen first.
const quick = 5 * time.Second

// seen is the earliest moment at which the contact can have seen the card; zero: not yet.
func (c *card) seen() time.Time {
	switch {
	case c.arrived.IsZero():
		return time.Time{}
	case c.arrived.Sub(c.began) > quick:
		return c.arrived
	}
	return c.began
}

// decide lets those go who wait for what becomes of the card.
func (c *card) decide() {
	if c.decided != nil {
		close(c.decided)
		c.decided = nil
	}
}

// shortID is what people call a question.
func shortID(id eventlog.InteractionID) string { return string(id[max(0, len(id)-8):]) }

// ask puts a question to the contact whose run asks, and to those who may answer everybody's.
func (b *Bridge) ask(d *desk, q interaction.Question) {
	contacts, err := b.records.Contacts(b.hard)
	if err != nil {
		b.fail(err)
		return
	}
	a := &asked{q, d.key, map[contactFact]*card{}}
	var events []eventlog.Event
	for _, c := range contacts {
		own := c.key() == d.key
		ch := b.channels[c.Channel]
		if ch == nil || !c.Rights.Has(Approve) || !own && !c.Rights.Has(Admin) {
			continue
		}
		chat := c.Chat
		if own {
			chat = d.chat()
		}
		parts := b.cut(ch.Name(), cardText(q, own, d, ch.Limits().Buttons))
		for i, text := range parts {
			f := queuedFact{contactFact: c.key(), Chat: chat, Kind: outCard, Text: text, Question: q.ID}
			if i == len(parts)-1 && ch.Limits().Buttons {
				f.Buttons = buttons(q)
			}
			e := b.queueEvent(d.input(), f)
			events = append(events, e)
			if i == len(parts)-1 {
				var made queuedFact
				_ = e.Decode(&made) // as it was encoded
				a.cards[c.key()] = &card{chat: chat, last: made.ID}
			}
		}
	}
	if a.cards[d.key] == nil {
		events = append(events, b.queueEvent(d.input(), queuedFact{contactFact: d.key, Chat: d.chat(), Kind: outNote,
			Text: b.render(d.key.Channel, "The agent asks something that you may not answer: it waits for somebody who may, or for `perlica pending`.")}))
	}
	b.mu.Lock()
	b.asked[q.ID] = a
	b.mu.Unlock()
	b.note("question", "id", shortID(q.ID), "title", q.Title)
	_ = b.commit(b.hard, events...) // it ends the bridge
}

// cardText is a question with all that is to be judged.
func cardText(q interaction.Question, own bool, d *desk, pressed bool) string {
	var t strings.Builder
	if !own {
		fmt.Fprintf(&t, "In a run of %s:\n\n", d.key.Channel+":"+d.key.Contact)
	}
	command.Describe(&t, q)
	s := q.Subject
	if raw := string(s.RawInput); len(s.Commands)+len(s.Diffs)+len(s.Text) == 0 && raw != "" && raw != "{}" && raw != "null" {
		fmt.Fprintf(&t, "```json\n%s\n```\n\n", raw)
	}
	way := "Answer with an option's number"
	if pressed {
		way = "Press a button, answer with an option's number"
	}
	word := ""
	if q.Word != "" {
		word = " and the word"
	}
	fmt.Fprintf(&t, "%s%s, or with `#%s` and the number%s.\n", way, word, shortID(q.ID), word)
	return t.String()
}

const buttonPrefix = "q:"

func buttons(q interaction.Question) (list []Button) {
	for i, o := range q.Options {
		data := fmt.Sprintf("%s%s:%d", buttonPrefix, q.ID, i+1)
		if len(data) <= 64 { // else it is answered by its number
			list = append(list, Button{Label: o.Label, Data: data})
		}
	}
	return list
}

// cardSent takes note of how sending goes, if it is that of a card: first with the time when it
// began, then with that and the one when it had arrived, or with none if it failed.
func (b *Bridge) cardSent(q *queued, began, arrived time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	a := b.asked[q.Question]
	if a == nil {
		return
	}
	c := a.cards[q.contactFact]
	if c == nil || c.last != q.ID {
		return
	}
	c.decide()
	if !began.IsZero() && arrived.IsZero() {
		c.decided = make(chan struct{})
	}
	c.began, c.arrived = began, arrived
}

// landed waits until a card that is on its way has arrived, or has failed: who answers it may be
// quicker than the platform's word. After quick nobody waits.
func (b *Bridge) landed(ctx context.Context, a *asked, who contactFact) {
	b.mu.Lock()
	c := a.cards[who]
	decided, left := c.decided, quick-b.opt.Now().Sub(c.began)
	b.mu.Unlock()
	if decided == nil {
		return
	}
	t := time.NewTimer(min(left, quick))
	defer t.Stop()
	select {
	case <-decided:
	case <-t.C:
	case <-ctx.Done():
	}
}

// mayAnswer reports whether a contact has the right to answer a question now.
func (b *Bridge) mayAnswer(c Contact, id eventlog.InteractionID) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	a := b.asked[id] // nil: it is closed
	return c.Rights.Has(Approve) && (a == nil || a.owner == c.key() || c.Rights.Has(Admin))
}

// openTo returns the questions that were put to a contact and wait.
func (b *Bridge) openTo(who contactFact) (list []*asked) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, a := range b.asked {
		if a.cards[who] != nil {
			list = append(list, a)
		}
	}
	return list
}

// sentAfter reports whether a message was sent when its sender could have seen the card. Times
// without fractions are rounded down by the platform: the same second does not count. A time
// that is still to come is of a clock that says nothing of ours.
func (b *Bridge) sentAfter(a *asked, who contactFact, sent time.Time) bool {
	now := b.opt.Now()
	b.mu.Lock()
	seen := a.cards[who].seen()
	b.mu.Unlock()
	if seen.IsZero() || sent.IsZero() || sent.After(now) {
		return false
	}
	if sent.Nanosecond() == 0 {
		return sent.After(seen.Truncate(time.Second))
	}
	return sent.After(seen)
}

// choice reads what a person chose: an option, and behind it the word, where one is needed.
// Free text chooses nothing.
func choice(q interaction.Question, text string) (option, word string, ok bool) {
	if o, err := q.Choose(text); err == nil {
		return o.ID, "", true
	}
	head, tail, found := strings.Cut(strings.TrimSpace(text), " ")
	if q.Word == "" || !found || strings.TrimSpace(tail) != q.Word {
		return "", "", false
	}
	o, err := q.Choose(head)
	return o.ID, q.Word, err == nil
}

// addressed is an answer to the question that it names.
var addressed = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^#([0-9a-fA-F-]{4,36})\s+(.+)$`)
})

// answerOf finds out whether a message answers a question. It sets f.Kind only if it does, or
// if it was meant to and cannot.
func (b *Bridge) answerOf(ctx context.Context, c Contact, m Inbound, f *receivedFact) error {
	text := strings.TrimSpace(m.Text)
	open := b.openTo(c.key())
	byID := func(id eventlog.InteractionID) *asked {
		for _, a := range open {
			if a.ID == id {
				return a
			}
		}
		return nil
	}
	answer := func(a *asked, text string) bool {
		option, word, ok := choice(a.Question, text)
		if ok {
			f.Kind, f.Question, f.Option, f.Word = kindAnswer, a.ID, option, word
		}
		return ok
	}
	over := func() { f.Kind, f.Word = kindRefused, "That question is not open to you any more; nothing was done." }
	if m.Button != "" {
		id, n, _ := strings.Cut(strings.TrimPrefix(m.Button, buttonPrefix), ":")
		a := byID(eventlog.InteractionID(id))
		i, err := strconv.Atoi(n)
		if a == nil || err != nil || i < 1 || i > len(a.Options) {
			over()
			return nil
		}
		f.Kind, f.Question, f.Option = kindAnswer, a.ID, a.Options[i-1].ID
		return nil
	}
	if m.ReplyTo != "" {
		id, err := b.records.cardOf(ctx, c.Channel, m.ReplyTo)
		if err != nil {
			return err
		}
		for _, a := range open { // one that is so quick that its being sent is not on record yet
			if a.cards[c.key()].last == m.ReplyTo {
				id = a.ID
			}
		}
		if a := byID(id); a != nil {
			if answer(a, text) {
				return nil
			}
		} else if id != "" {
			q, err := interaction.Find(ctx, &b.log().Reader, id)
			if _, _, ok := choice(q, text); ok && err == nil {
				over()
				return nil
			}
		}
	}
	if parts := addressed().FindStringSubmatch(text); parts != nil {
		var found []*asked
		for _, a := range open {
			if strings.HasSuffix(string(a.ID), strings.ToLower(parts[1])) {
				found = append(found, a)
			}
		}
		if len(found) == 1 && answer(found[0], parts[2]) {
			return nil
		}
		if _, err := strconv.Atoi(parts[2]); err == nil && len(found) == 0 {
			over()
			return nil
		}
	}
	// A number that answers another message is about that.
	if m.ReplyTo != "" || len(open) != 1 {
		return nil
	}
	if _, _, ok := choice(open[0].Question, text); !ok {
		return nil
	}
	if b.landed(ctx, open[0], c.key()); b.sentAfter(open[0], c.key(), m.Sent) {
		answer(open[0], text)
	}
	return nil
}

// closeCards tells everybody who was asked how a question ended.
func (b *Bridge) closeCards(q interaction.Question, a *interaction.Answer, why interaction.Reason) {
	b.mu.Lock()
	open := b.asked[q.ID]
	delete(b.asked, q.ID)
	if open != nil {
		for _, c := range open.cards {
			c.decide()
		}
	}
	b.mu.Unlock()
	if open == nil {
		return
	}
	how := closedHow(q, &interaction.TakenError{Answer: a, At: b.opt.Now(), Lapsed: why})
	b.note("question closed", "id", shortID(q.ID), "how", how)
	events := []eventlog.Event{cardClosed(q.ID, how)}
	for who, c := range open.cards {
		events = append(events, b.closing(who, c.chat, c.last, q, how))
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

func cardClosed(id eventlog.InteractionID, how string) eventlog.Event {
	return eventlog.NewFact(eventlog.CardClosed, "perlica", eventlog.Refs{Interaction: id}, cardFact{how})
}

// closing edits a card where the platform can, and else sends a note.
func (b *Bridge) closing(who contactFact, chat, target string, q interaction.Question, how string) eventlog.Event {
	title := q.Title
	if title == "" {
		title = "use a tool"
	}
	text := fmt.Sprintf("**%s** `#%s`\n\n%s", title, shortID(q.ID), how)
	f := queuedFact{contactFact: who, Chat: chat, Kind: outNote, Text: b.cut(who.Channel, text)[0], Question: q.ID}
	if _, ok := b.channels[who.Channel].(Editor); ok {
		f.Kind, f.Target = outEdit, target
	}
	return b.queueEvent("", f)
}

// buryCards closes what an earlier bridge asked: nobody waits for an answer any more.
func (b *Bridge) buryCards(ctx context.Context) error {
	cards, err := b.records.orphans(ctx)
	if err != nil {
		return err
	}
	seen := map[eventlog.InteractionID]bool{}
	told := map[contactFact]map[eventlog.InteractionID]bool{}
	var events []eventlog.Event
	for i := len(cards) - 1; i >= 0; i-- { // the last part has the options
		k := cards[i]
		if k.state != "sent" {
			events = append(events, eventlog.NewFact(eventlog.SendFailed, "perlica", eventlog.Refs{Interaction: k.Question},
				sendFact{ID: k.ID, Error: "the question is closed", Final: true}))
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
		if told[k.contactFact] == nil {
			told[k.contactFact] = map[eventlog.InteractionID]bool{}
		}
		if k.state == "queued" || b.channels[k.Channel] == nil || told[k.contactFact][k.Question] {
			continue
		}
		told[k.contactFact][k.Question] = true
		e := b.closing(k.contactFact, k.Chat, k.ID, q, how)
		if k.state != "sent" { // whether there is a card to edit is not known
			f := queuedFact{}
			_ = e.Decode(&f) // as it was encoded
			f.Kind, f.Target = outNote, ""
			e = b.queueEvent("", f)
		}
		events = append(events, e)
	}
	if len(events) == 0 {
		return nil
	}
	// What is to be sent is taken from the view in a moment.
	_, err = b.log().Append(ctx, events...)
	return err
}

// show is told what happens in a turn.
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
