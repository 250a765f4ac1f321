package service

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/interaction"
	"github.com/perlica/perlica/kernel/command"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/kernel/language"
	"github.com/perlica/perlica/service/access"
	"github.com/perlica/perlica/service/team"
)

// mostOfTeam is how many questions of workers have cards at a time.
const mostOfTeam = 100

// attend puts the open questions of a team's workers to the contacts that may answer everybody's, until ctx ends. Nothing
// else of the bridge waits for it.
func (b *Bridge) attend(ctx context.Context) {
	b.opt.Team.Watch(ctx, b.see, func(err error) {
		switch {
		case err == nil:
			b.info("the questions of the team are shown again")
		case errors.Is(err, team.ErrNoRight):
			b.warn("the questions of the team are not shown", "error", err.Error())
		default:
			b.warn("the questions of the team cannot be read", "error", err.Error())
		}
	})
}

// see asks what is open at the team's workers and was not asked, and closes what is not open any more.
func (b *Bridge) see(ctx context.Context, t *team.Team, list []team.OpenQuestion) error {
	open, right := map[event.InteractionID]bool{}, t.May(team.Approve)
	for _, q := range list {
		open[q.Name()] = true
		if right == nil {
			if err := b.askThere(ctx, t, q); err != nil {
				return err
			}
		}
	}
	for _, a := range b.unanswered() {
		if open[a.ID] {
			continue
		}
		end, err := t.Ended(ctx, a.there.ID)
		switch {
		case err != nil:
			return err
		case end == nil:
			end = &team.QuestionEnd{}
		}
		b.closeCards(a.ID, end.Answer, end.Reason)
	}
	return right
}

// unanswered are the questions of workers that have cards, and to which no answer is under way: that tells better how they end.
func (b *Bridge) unanswered() (list []*asked) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, a := range b.asked {
		if a.there != nil && a.answers == 0 {
			list = append(list, a)
		}
	}
	return list
}

// answering takes note that an answer to a worker's question has come (1), or was dealt with (-1).
func (b *Bridge) answering(id event.InteractionID, n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if a := b.asked[id]; a != nil {
		a.answers += n
	}
}

// askThere puts a worker's question to those who may answer everybody's, unless it was.
func (b *Bridge) askThere(ctx context.Context, t *team.Team, q team.OpenQuestion) error {
	id := q.Name()
	if !b.room(id) {
		return nil
	}
	was, err := b.records.wasAsked(ctx, id)
	if was || err != nil {
		return err
	}
	contacts, err := b.records.Contacts(ctx)
	if err != nil {
		return err
	}
	f := fact.TeamQuestion{Worker: q.There.Worker, Input: q.There.Input, ID: q.There.ID, Asked: q.There.Asked}
	if f.Sender, f.Project, err = q.From(ctx, t); err != nil {
		return err
	}
	if f.Question, err = json.Marshal(q.Question); err != nil {
		return err
	}
	a := &asked{Question: q.Question, there: &f, cards: map[fact.Peer]*card{}}
	a.ID = id
	events := []event.Event{event.NewFact(event.TeamAsked, "perlica", event.Refs{Interaction: id}, f)}
	for _, c := range contacts {
		if b.channels[c.Channel] != nil && c.Rights.Has(access.Approve) && c.Rights.Has(access.Admin) {
			events = append(events, b.deal(a, c, c.Chat, "", inTeam(b.say(c.key()), q.Question, f))...)
		}
	}
	if len(a.cards) == 0 {
		return nil // somebody may be paired while it is open
	}
	b.mu.Lock()
	b.asked[id] = a
	b.mu.Unlock()
	b.info("question of the team", "id", shortID(id), "worker", f.Worker, "title", q.Title)
	return b.commit(b.hard, events...)
}

// room reports whether a worker's question has no card yet, and may have one.
func (b *Bridge) room(id event.InteractionID) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := 0
	for _, a := range b.asked {
		if a.there != nil {
			n++
		}
	}
	return b.asked[id] == nil && n < mostOfTeam
}

// inTeam begins the card of a worker's question.
func inTeam(say *language.Sentences, q interaction.Question, f fact.TeamQuestion) string {
	return command.TeamQuestion{Question: q, Worker: f.Worker, Input: f.Input, Sender: f.Sender, Project: f.Project}.Heading(say)
}

// headingOf begins what is said of a question.
func (b *Bridge) headingOf(a *asked, say *language.Sentences) string {
	if a.there != nil {
		return fmt.Sprintf(say.OfTeam, literal(a.there.Worker))
	}
	return b.heading()
}

// closedHow is what a card says of how the question ended.
func (a *asked) closedHow(say *language.Sentences, end *interaction.TakenError) string {
	switch {
	case a.there == nil || end.Answer != nil:
		return closedHow(say, a.Question, end)
	case end.Lapsed == "":
		return fmt.Sprintf(say.ClosedWith, say.TeamGone)
	}
	return fmt.Sprintf(say.ClosedWith, cmp.Or(say.Closings[string(end.Lapsed)], string(end.Lapsed)))
}

// thereOf is what is on record of a worker's question; nil: it is none.
func (b *Bridge) thereOf(ctx context.Context, id event.InteractionID) (*fact.TeamQuestion, error) {
	e, ok, err := b.log().Last(ctx, event.Query{Interaction: id, Types: []event.Type{event.TeamAsked}})
	if err != nil || !ok {
		return nil, err
	}
	f := new(fact.TeamQuestion)
	_ = e.Decode(f) // pruned: nobody can be told what it was
	return f, nil
}

// find returns a question that was asked here, whether it waits or not, without its cards. It is not nil.
func (b *Bridge) find(ctx context.Context, id event.InteractionID) (a *asked, err error) {
	a = new(asked)
	if a.there, err = b.thereOf(ctx, id); err == nil && a.there != nil {
		err = json.Unmarshal(a.there.Question, &a.Question)
	} else if err == nil {
		a.Question, err = interaction.Find(ctx, &b.log().Reader, id)
	}
	a.ID = id
	return a, err
}

// isThere reports whether a question that waits is a worker's.
func (b *Bridge) isThere(id event.InteractionID) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	a := b.asked[id]
	return a != nil && a.there != nil
}

// takeUpCards takes up the cards of workers' questions that an earlier bridge sent or was to send.
func (b *Bridge) takeUpCards(ctx context.Context) error {
	if b.opt.Team == nil {
		return nil
	}
	list, err := b.records.orphans(ctx)
	if err != nil {
		return err
	}
	open := map[event.InteractionID]*asked{}
	for _, k := range list {
		a := open[k.Question]
		if a == nil {
			if a, err = b.find(ctx, k.Question); err != nil || a.there == nil {
				continue // closed with the others
			}
			a.cards = map[fact.Peer]*card{}
			open[k.Question] = a
		}
		c := a.cards[k.Peer]
		if c == nil {
			c = &card{chat: k.Chat, sent: map[string]string{}}
			a.cards[k.Peer] = c
		}
		c.parts = append(c.parts, k.ID)
		switch k.state {
		case "sent":
			c.sent[k.ID] = k.platform
		case "failed":
			c.lost = true
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	maps.Copy(b.asked, open)
	return nil
}

// answerThere hands an answer to the worker that asks, and tells its sender what comes of it. Where the bridge stops
// before that is known the next one does it again: it is the same answer.
func (d *desk) answerThere(c Contact, m received, there *fact.TeamQuestion) {
	b, say := d.b, d.b.say(d.key)
	a := interaction.Answer{Option: m.Option, Text: m.Word, Always: m.Always, By: c.Label(), Where: d.key.Channel}
	err := errNotYours
	if c.Rights.Has(access.Approve) && c.Rights.Has(access.Admin) {
		err = team.ErrAway
		if b.opt.Team != nil {
			err = b.opt.Team.Answer(b.turning, m.Question, there.ID, a)
		}
	}
	refs := event.Refs{Interaction: m.Question}
	if err == nil {
		b.closeCards(m.Question, &a, "")
		d.finish(m, refs, fact.BridgeFinished{How: endDone}, "")
		return
	}
	var uncounted *team.UncountedError
	end, text := fact.BridgeFinished{How: endRefused, Detail: err.Error()}, ""
	switch {
	case errors.Is(err, errNotYours):
		text = fmt.Sprintf(say.AnswerRefused, say.Error(err))
	case errors.Is(err, team.ErrNoRight):
		text = fmt.Sprintf(say.AnswerRefused, say.TeamNoRight)
	case errors.As(err, &uncounted):
		text = fmt.Sprintf(say.AnswerRefused, d.uncounted(m.Question, there, uncounted))
	case b.turning.Err() != nil:
		return
	case errors.Is(err, team.ErrAway):
		text = fmt.Sprintf(say.TeamAway, literal(there.Worker))
	default:
		end.How, text = endDone, fmt.Sprintf(say.TeamUnsure, literal(there.Worker))
	}
	b.warn("an answer to a question of the team", "error", end.Detail)
	d.finish(m, refs, end, text)
}

// uncounted says why an answer to a worker's question does not count.
func (d *desk) uncounted(id event.InteractionID, there *fact.TeamQuestion, why *team.UncountedError) string {
	say := d.b.say(d.key)
	if why.Otherwise {
		return say.TeamOtherwise
	}
	end := d.b.opt.Team.Ended(d.b.turning, there.ID)
	a, err := d.b.find(d.b.hard, id)
	if end == nil || err != nil {
		return say.Translate(why.Why)
	}
	end.At = d.b.opt.Now()
	return a.closedHow(say, end)
}

// toTeam reads /allow, /deny or /choose where it means a worker's question. It reports whether it does: then it is an
// answer, or refused.
func (r *reading) toTeam(ctx context.Context, l command.Line, f *fact.BridgeReceived) (bool, error) {
	a, args, err := r.meantThere(ctx, l)
	if a == nil || err != nil {
		return false, err
	}
	if len(args) < len(strings.Fields(l.Args)) { // by its id: there may be one of a run here that ends so, by chance or on purpose
		if local, err := command.Names(ctx, &r.b.log().Reader, strings.Fields(l.Args)[0]); local || err != nil {
			f.Kind, f.Word = kindRefused, r.say.NotOpen
			return true, err
		}
	}
	c, err := l.Means(a.Question, args)
	if err != nil {
		f.Kind, f.Word = kindRefused, r.b.deskOf(r.who).fault(err)
		return true, nil
	}
	if r.choose(a, c, true, f); f.Kind == "" {
		f.Kind, f.Word = kindRefused, r.say.Usage(l.Name, "[ID] N")
	}
	return true, nil
}

// meantThere is the worker's question that a command means, by its id or without one, and what stands behind that; nil: it
// means none.
func (r *reading) meantThere(ctx context.Context, l command.Line) (*asked, []string, error) {
	args := strings.Fields(l.Args)
	if len(args) > 0 {
		id := strings.ToLower(strings.TrimPrefix(args[0], "#"))
		var found []*asked
		for _, a := range r.open {
			if a.there != nil && len(id) >= len(shortID(a.ID)) && strings.HasSuffix(string(a.ID), id) {
				found = append(found, a)
			}
		}
		if len(found) == 1 {
			return found[0], args[1:], nil
		}
	}
	id, err := r.pin(ctx, l)
	for _, a := range r.open {
		if err == nil && a.ID == id && a.there != nil {
			return a, args, nil
		}
	}
	return nil, nil, err
}

// pendingThere adds the workers' questions that have a card for the contact to what /pending says.
func (d *desk) pendingThere(text string) string {
	say := d.b.say(d.key)
	var t strings.Builder
	for _, a := range d.b.openTo(d.key) {
		if a.there != nil {
			t.WriteString(inTeam(say, a.Question, *a.there))
			command.Describe(&t, say, a.Question)
		}
	}
	switch {
	case t.Len() == 0:
		return text
	case text == say.NoQuestion:
		return t.String() + say.HowToAnswer
	}
	return t.String() + text
}
