package service

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"strings"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/interaction"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/kernel/language"
	"github.com/perlica/perlica/kernel/record"
	"github.com/perlica/perlica/service/access"
	"github.com/perlica/perlica/service/channel"
)

// followers returns the contacts that are told about the turns of other front ends, such as chat,
// run and editors. A follower needs the right to answer every question. The right is checked each
// time.
func (b *Bridge) followers(ctx context.Context) (list []Contact, err error) {
	contacts, err := b.records.Contacts(ctx)
	for _, c := range contacts {
		if c.Follows && c.Rights.Has(access.Admin) && b.channels[c.Channel] != nil {
			list = append(list, c)
		}
	}
	return list, err
}

// followElsewhere starts or stops telling a contact about other front ends, or reports the current
// setting.
func (ib *inbox) followElsewhere(ctx context.Context, c Contact, word string) (string, error) {
	say := ib.b.sentencesFor(ib.key)
	on := strings.EqualFold(word, "on")
	switch {
	case word == "" && c.Follows:
		return say.Follows, nil
	case word == "":
		return say.FollowsNot, nil
	case !on && !strings.EqualFold(word, "off"):
		return "", language.Said(say.Usage(followCommand, "[on|off]"))
	case on && !c.Rights.Has(access.Admin):
		return "", language.Said(fmt.Sprintf(say.NeedsAdmin, "/"+followCommand))
	}
	f := fact.ContactChanged{Peer: ib.key, Follows: &on, By: ib.key.Channel + ":" + ib.key.Contact}
	if err := ib.b.commitEvents(ctx, event.NewFact(event.ContactChanged, "user", event.Refs{}, f)); err != nil {
		return "", err
	}
	if !on {
		return say.FollowsNot, nil
	}
	return say.Follows, ib.b.watchLog(ctx)
}

// watchLog starts reading the log's events from now on, unless it has already started.
func (b *Bridge) watchLog(ctx context.Context) error {
	newest, _, err := b.log().Last(ctx, event.Query{})
	if err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.watching {
		return nil
	}
	b.watching = true
	b.inboxWG.Go(func() {
		for e, err := range b.opt.Runner.FollowLog(b.turning, newest.Seq) {
			if err == nil {
				err = b.tellElsewhere(b.hard, e)
			}
			if err != nil {
				if b.turning.Err() == nil {
					b.warn("what happens elsewhere cannot be followed", "error", err.Error())
				}
				break
			}
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		b.watching = false
	})
	return nil
}

// tellElsewhere tells the followers about a turn of another front end.
func (b *Bridge) tellElsewhere(ctx context.Context, e record.Entry) error {
	switch n := e.Notice.(type) {
	case record.Asked:
		if input, ours, err := b.inputOf(ctx, e.Refs.Run); err != nil || ours || !n.Answerable {
			return err
		} else {
			return b.askFollowers(ctx, input, n.Question)
		}
	case record.Closed:
		b.mu.Lock()
		a := b.openQuestions[n.Question.ID]
		b.mu.Unlock()
		if a != nil && a.owner == (fact.Peer{}) && a.team == nil {
			b.closeCards(a.ID, n.Answer, n.Reason)
		}
	case record.Finished:
		input, ours, err := b.inputOf(ctx, n.Run)
		if err != nil || ours {
			return err
		}
		return b.tellFollowers(ctx, input, n.Result)
	}
	return nil
}

// inputOf returns the input of a run, and whether it came through this bridge.
func (b *Bridge) inputOf(ctx context.Context, run event.RunID) (input fact.MessageReceived, ours bool, err error) {
	e, ok, err := b.log().Last(ctx, event.Query{Run: run, Types: []event.Type{event.MessageReceived}})
	if err == nil && ok {
		input, _ = fact.Decode[fact.MessageReceived](e) // an unreadable input has no known sender
	}
	return input, b.channels[input.Source] != nil, err
}

// askFollowers sends a question of another process to the followers that may answer it.
func (b *Bridge) askFollowers(ctx context.Context, input fact.MessageReceived, q interaction.Question) error {
	list, err := b.followers(ctx)
	if err != nil {
		return err
	}
	a := &openQuestion{Question: q, cards: map[fact.Peer]*card{}}
	var events []event.Event
	for _, c := range list {
		if c.Rights.Has(access.Approve) {
			head := b.heading() + fmt.Sprintf(b.sentencesFor(c.key()).AtDesk,
				literal(b.sentencesFor(c.key()).Word(input.Source)), literal(beginning(input.Text)))
			events = append(events, b.makeCard(a, c, c.Chat, "", head)...)
		}
	}
	if len(a.cards) == 0 {
		return nil
	}
	b.mu.Lock()
	b.openQuestions[q.ID] = a
	b.mu.Unlock()
	b.info("question elsewhere", "id", shortID(q.ID), "title", q.Title)
	if err := b.commitEvents(ctx, events...); err != nil {
		return err
	}
	// The question may have been answered before it was in openQuestions. Then nothing else would close its cards.
	end, err := interaction.Closed(ctx, &b.log().Reader, q.ID)
	if err == nil && end != nil {
		b.closeCards(q.ID, end.Answer, end.Lapsed)
	}
	return err
}

// tellFollowers reports the end of another process's turn with the beginning of its answer.
func (b *Bridge) tellFollowers(ctx context.Context, input fact.MessageReceived, res record.Result) error {
	list, err := b.followers(ctx)
	var events []event.Event
	for _, c := range list {
		say := b.sentencesFor(c.key())
		text := b.heading() + fmt.Sprintf(say.EndedAtDesk, literal(say.Word(input.Source)), literal(beginning(input.Text))) +
			"\n\n"
		switch {
		case res.Outcome == record.OutcomeResponded:
			text += strings.TrimSpace(res.Text + "\n\n" + ended(say, res))
		case res.Outcome == record.OutcomeProviderError && res.Err != nil:
			text += fmt.Sprintf(say.FailedAtDesk, say.Error(res.Err))
		default:
			text += say.UnknownAtDesk
		}
		parts := b.cutText(c.Channel, text)
		if len(parts) > 1 {
			parts = append(parts[:1], b.renderShort(c.Channel, fmt.Sprintf(say.RestAtDesk, shortRun(res.Run))))
		}
		for _, part := range parts {
			events = append(events, queueEvent("", fact.BridgeQueued{Peer: c.key(), Chat: c.Chat, Kind: outNotice, Text: part}))
		}
	}
	if err != nil {
		return err
	}
	return b.commitEvents(ctx, events...)
}

// beginning returns the first line of an input, short enough for a title.
func beginning(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return access.Cut(line, 80)
}

// menus sends the list of commands to the platforms in each language. People see it after typing a
// slash. It is best effort.
func (b *Bridge) menus(ctx context.Context, ch channel.Channel) {
	m, ok := ch.(channel.Menu)
	if !ok {
		return
	}
	// The empty language means all other languages.
	for _, l := range append(language.All(), "") {
		if err := m.SetMenu(ctx, string(l), menuOf(l, b.settings().Language)); err != nil && ctx.Err() == nil {
			b.warn("the platform's list of commands could not be set", "channel", ch.Name(), "error", err.Error())
			return
		}
	}
}

// menuOf yields the commands with their help in the language l, or in the fallback language if l is empty.
func menuOf(l, fallback language.Language) iter.Seq2[string, string] {
	return func(yield func(name, help string) bool) {
		for _, c := range cmp.Or(l, fallback).Sentences().Commands {
			if !yield(c.Name, c.Help) {
				return
			}
		}
	}
}
