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

// mostOfTeam limits the workers' questions that have cards at a time.
const mostOfTeam = 100

// watchTeam shows the open questions of a team's workers to the contacts that may answer every
// question, until ctx ends. No other part of the bridge waits for it.
func (b *Bridge) watchTeam(ctx context.Context) {
	b.opt.Team.Watch(ctx, b.syncQuestions, func(err error) {
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

// syncQuestions sends cards of the new questions of the team's workers, and closes the cards of the ended ones.
func (b *Bridge) syncQuestions(ctx context.Context, t *team.Team, list []team.OpenQuestion) error {
	open, right := map[event.InteractionID]bool{}, t.May(access.Approve)
	for _, q := range list {
		open[q.Name()] = true
		if right == nil {
			if err := b.askTeamQuestion(ctx, t, q); err != nil {
				return err
			}
		}
	}
	for _, a := range b.unanswered() {
		if open[a.ID] {
			continue
		}
		end, err := t.Ended(ctx, a.team.ID)
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

// unanswered returns the workers' questions that have a card and no answer on its way. The result of an answer on its
// way describes the end better.
func (b *Bridge) unanswered() (list []*openQuestion) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, a := range b.openQuestions {
		if a.team != nil && a.answers == 0 {
			list = append(list, a)
		}
	}
	return list
}

// countAnswers counts the answers to a worker's question that are being submitted. n is 1 when an answer has come, and
// -1 when it was submitted.
func (b *Bridge) countAnswers(id event.InteractionID, n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if a := b.openQuestions[id]; a != nil {
		a.answers += n
	}
}

// askTeamQuestion sends a worker's question to the contacts that may answer every question, unless
// it was sent before.
func (b *Bridge) askTeamQuestion(ctx context.Context, t *team.Team, q team.OpenQuestion) error {
	id := q.Name()
	if !b.hasRoom(id) {
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
	a := &openQuestion{Question: q.Question, team: &f, cards: map[fact.Peer]*card{}}
	a.ID = id
	events := []event.Event{event.NewFact(event.TeamAsked, "perlica", event.Refs{Interaction: id}, f)}
	for _, c := range contacts {
		if b.channels[c.Channel] != nil && c.Rights.Has(access.Approve) && c.Rights.Has(access.Admin) {
			events = append(events, b.makeCard(a, c, c.Chat, "", inTeam(b.sentencesFor(c.key()), q.Question, f))...)
		}
	}
	if len(a.cards) == 0 {
		return nil // the next call asks again, because a contact may be paired until then
	}
	b.mu.Lock()
	b.openQuestions[id] = a
	b.mu.Unlock()
	b.info("question of the team", "id", shortID(id), "worker", f.Worker, "title", q.Title)
	return b.commitEvents(b.hard, events...)
}

// hasRoom reports whether a worker's question has no card yet and may get one.
func (b *Bridge) hasRoom(id event.InteractionID) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := 0
	for _, a := range b.openQuestions {
		if a.team != nil {
			n++
		}
	}
	return b.openQuestions[id] == nil && n < mostOfTeam
}

// inTeam returns the first line of the card of a worker's question.
func inTeam(say *language.Sentences, q interaction.Question, f fact.TeamQuestion) string {
	return command.TeamQuestion{Question: q, Worker: f.Worker, Input: f.Input, Sender: f.Sender,
		Project: f.Project}.Heading(say)
}

// headingOf returns the first line of a message about a question.
func (b *Bridge) headingOf(a *openQuestion, say *language.Sentences) string {
	if a.team != nil {
		return fmt.Sprintf(say.OfTeam, literal(a.team.Worker))
	}
	return b.heading()
}

// closedHow returns the sentence that the question's card shows after the question has ended.
func (a *openQuestion) closedHow(say *language.Sentences, end *interaction.TakenError) string {
	switch {
	case a.team == nil || end.Answer != nil:
		return closedHow(say, a.Question, end)
	case end.Lapsed == "":
		return fmt.Sprintf(say.ClosedWith, say.TeamGone)
	}
	return fmt.Sprintf(say.ClosedWith, cmp.Or(say.Closings[string(end.Lapsed)], string(end.Lapsed)))
}

// teamQuestionOf returns the record of a worker's question, or nil for another question.
func (b *Bridge) teamQuestionOf(ctx context.Context, id event.InteractionID) (*fact.TeamQuestion, error) {
	e, ok, err := b.log().Last(ctx, event.Query{Interaction: id, Types: []event.Type{event.TeamAsked}})
	if err != nil || !ok {
		return nil, err
	}
	f := new(fact.TeamQuestion)
	_ = e.Decode(f) // if the payload was pruned, f stays empty, but the question is known
	return f, nil
}

// findQuestion returns a question that the bridge has asked, open or not, without its cards. The
// result is never nil.
func (b *Bridge) findQuestion(ctx context.Context, id event.InteractionID) (a *openQuestion, err error) {
	a = new(openQuestion)
	if a.team, err = b.teamQuestionOf(ctx, id); err == nil && a.team != nil {
		err = json.Unmarshal(a.team.Question, &a.Question)
	} else if err == nil {
		a.Question, err = interaction.Find(ctx, &b.log().Reader, id)
	}
	a.ID = id
	return a, err
}

// isTeamQuestion reports whether an open question belongs to a worker.
func (b *Bridge) isTeamQuestion(id event.InteractionID) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	a := b.openQuestions[id]
	return a != nil && a.team != nil
}

// takeUpCards reads the cards of workers' questions that an earlier bridge sent or queued. Contacts can then still
// answer these questions.
func (b *Bridge) takeUpCards(ctx context.Context) error {
	if b.opt.Team == nil {
		return nil
	}
	list, err := b.records.orphans(ctx)
	if err != nil {
		return err
	}
	open := map[event.InteractionID]*openQuestion{}
	for _, k := range list {
		a := open[k.Question]
		if a == nil {
			if a, err = b.findQuestion(ctx, k.Question); err != nil || a.team == nil {
				continue // closeOrphans closes this card, because the question is not a worker's
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
	maps.Copy(b.openQuestions, open)
	return nil
}

// answerTeamQuestion submits an answer to the asking worker and tells its sender the result. If the bridge stops before
// the result is known, the next bridge submits the same answer again.
func (ib *inbox) answerTeamQuestion(c Contact, m received, there *fact.TeamQuestion) {
	b, say := ib.b, ib.b.sentencesFor(ib.key)
	a := interaction.Answer{Option: m.Option, Text: m.Word, Always: m.Always, By: c.Label(), Where: ib.key.Channel}
	err := error(errNotYours)
	if c.Rights.Has(access.Approve) && c.Rights.Has(access.Admin) {
		err = team.ErrAway
		if b.opt.Team != nil {
			err = b.opt.Team.Answer(b.turning, m.Question, there.ID, a)
		}
	}
	refs := event.Refs{Interaction: m.Question}
	if err == nil {
		b.closeCards(m.Question, &a, "")
		ib.finishMessage(m, refs, fact.BridgeFinished{How: endDone}, "")
		return
	}
	var uncounted *team.UncountedError
	end, text := fact.NewBridgeFinished(endRefused, err), ""
	switch {
	case errors.Is(err, errNotYours):
		text = fmt.Sprintf(say.AnswerRefused, say.Error(err))
	case errors.Is(err, team.ErrNoRight):
		text = fmt.Sprintf(say.AnswerRefused, say.TeamNoRight)
	case errors.As(err, &uncounted):
		text = fmt.Sprintf(say.AnswerRefused, ib.uncounted(m.Question, there, uncounted))
	case b.turning.Err() != nil:
		return
	case errors.Is(err, team.ErrAway):
		text = fmt.Sprintf(say.TeamAway, literal(there.Worker))
	default:
		end.How, text = endDone, fmt.Sprintf(say.TeamUnsure, literal(there.Worker))
	}
	b.warn("an answer to a question of the team", "error", end.Detail)
	ib.finishMessage(m, refs, end, text)
}

// uncounted returns the reason why an answer to a worker's question does not count.
func (ib *inbox) uncounted(id event.InteractionID, there *fact.TeamQuestion, why *team.UncountedError) string {
	say := ib.b.sentencesFor(ib.key)
	if why.Otherwise {
		return say.TeamOtherwise
	}
	end := ib.b.opt.Team.Ended(ib.b.turning, there.ID)
	a, err := ib.b.findQuestion(ib.b.hard, id)
	if end == nil || err != nil {
		return say.Error(why)
	}
	end.At = ib.b.opt.Now()
	return a.closedHow(say, end)
}

// toTeam reads an /allow, /deny or /choose. It returns true if the command means a worker's question. It has then
// changed f to an answer or a refusal.
func (r *answerReader) toTeam(ctx context.Context, l command.Line, f *fact.BridgeReceived) (bool, error) {
	a, args, err := r.meantTeamQuestion(ctx, l)
	if a == nil || err != nil {
		return false, err
	}
	// The id may also be the end of a local question's id, by chance or on purpose. Then the command is ambiguous and
	// is refused.
	if len(args) < len(strings.Fields(l.Args)) {
		if local, err := command.Names(ctx, &r.b.log().Reader, strings.Fields(l.Args)[0]); local || err != nil {
			f.Kind, f.Word = kindRefused, r.say.NotOpen
			return true, err
		}
	}
	c, err := l.Means(a.Question, args)
	if err != nil {
		f.Kind, f.Word = kindRefused, r.b.inboxOf(r.who).faultText(err)
		return true, nil
	}
	if r.applyChoice(a, c, true, f); f.Kind == "" {
		f.Kind, f.Word = kindRefused, r.say.Usage(l.Name, "[ID] N")
	}
	return true, nil
}

// meantTeamQuestion returns the worker's question that a command means, with or without an id, and
// the remaining arguments. It returns nil if the command means no such question.
func (r *answerReader) meantTeamQuestion(ctx context.Context, l command.Line) (*openQuestion, []string, error) {
	args := strings.Fields(l.Args)
	if len(args) > 0 {
		id := strings.ToLower(strings.TrimPrefix(args[0], "#"))
		var found []*openQuestion
		for _, a := range r.open {
			if a.team != nil && len(id) >= len(shortID(a.ID)) && strings.HasSuffix(string(a.ID), id) {
				found = append(found, a)
			}
		}
		if len(found) == 1 {
			return found[0], args[1:], nil
		}
	}
	id, err := r.pinQuestion(ctx, l)
	for _, a := range r.open {
		if err == nil && a.ID == id && a.team != nil {
			return a, args, nil
		}
	}
	return nil, nil, err
}

// pendingTeamQuestions adds the workers' questions that have a card for the contact to the reply of
// /pending.
func (ib *inbox) pendingTeamQuestions(text string) string {
	say := ib.b.sentencesFor(ib.key)
	var t strings.Builder
	for _, a := range ib.b.openTo(ib.key) {
		if a.team != nil {
			t.WriteString(inTeam(say, a.Question, *a.team))
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
