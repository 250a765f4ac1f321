package service

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"strings"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/interaction"
	"github.com/perlica/perlica/kernel"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/kernel/language"
	"github.com/perlica/perlica/service/access"
	"github.com/perlica/perlica/service/channel"
)

// followers are the contacts that are told what happens in turns that are none of the bridge's: those of the
// chat, of run, of editors. It takes the right to everybody's questions, which is looked at each time.
func (b *Bridge) followers(ctx context.Context) (list []Contact, err error) {
	contacts, err := b.records.Contacts(ctx)
	for _, c := range contacts {
		if c.Follows && c.Rights.Has(access.Admin) && b.channels[c.Channel] != nil {
			list = append(list, c)
		}
	}
	return list, err
}

// follow has a contact follow what happens elsewhere, or no more, or says which it is.
func (d *desk) follow(ctx context.Context, c Contact, word string) (string, error) {
	say := d.b.say(d.key)
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
	f := fact.ContactChanged{Peer: d.key, Follows: &on, By: d.key.Channel + ":" + d.key.Contact}
	if err := d.b.commit(ctx, event.NewFact(event.ContactChanged, "user", event.Refs{}, f)); err != nil {
		return "", err
	}
	if !on {
		return say.FollowsNot, nil
	}
	return say.Follows, d.b.watch(ctx)
}

// watch begins to read what happens in the log, from now on, unless that is done already.
func (b *Bridge) watch(ctx context.Context) error {
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
	b.desks.Go(func() {
		for e, err := range b.opt.Runner.FollowLog(b.turning, newest.Seq) {
			if err == nil {
				err = b.elsewhere(b.hard, e)
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

// elsewhere tells the followers what happens in a turn that is none of the bridge's.
func (b *Bridge) elsewhere(ctx context.Context, e kernel.Entry) error {
	switch n := e.Notice.(type) {
	case kernel.Asked:
		if input, ours, err := b.inputOf(ctx, e.Refs.Run); err != nil || ours || !n.Answerable {
			return err
		} else {
			return b.askFollowers(ctx, input, n.Question)
		}
	case kernel.Closed:
		b.mu.Lock()
		a := b.asked[n.Question.ID]
		b.mu.Unlock()
		if a != nil && a.owner == (fact.Peer{}) && a.there == nil {
			b.closeCards(a.ID, n.Answer, n.Reason)
		}
	case kernel.Finished:
		input, ours, err := b.inputOf(ctx, n.Run)
		if err != nil || ours {
			return err
		}
		return b.tellFollowers(ctx, input, n.Result)
	}
	return nil
}

// inputOf is the input of a run, and whether it came through this bridge.
func (b *Bridge) inputOf(ctx context.Context, run event.RunID) (input fact.MessageReceived, ours bool, err error) {
	e, ok, err := b.log().Last(ctx, event.Query{Run: run, Types: []event.Type{event.MessageReceived}})
	if err == nil && ok {
		input, _ = fact.Decode[fact.MessageReceived](e) // without it, it is of nobody in particular
	}
	return input, b.channels[input.Source] != nil, err
}

// askFollowers puts a question of another process to the followers who may answer it.
func (b *Bridge) askFollowers(ctx context.Context, input fact.MessageReceived, q interaction.Question) error {
	list, err := b.followers(ctx)
	if err != nil {
		return err
	}
	a := &asked{Question: q, cards: map[fact.Peer]*card{}}
	var events []event.Event
	for _, c := range list {
		if c.Rights.Has(access.Approve) {
			head := b.heading() + fmt.Sprintf(b.say(c.key()).AtDesk, literal(b.say(c.key()).Form(input.Source)), literal(beginning(input.Text)))
			events = append(events, b.deal(a, c, c.Chat, "", head)...)
		}
	}
	if len(a.cards) == 0 {
		return nil
	}
	b.mu.Lock()
	b.asked[q.ID] = a
	b.mu.Unlock()
	b.info("question elsewhere", "id", shortID(q.ID), "title", q.Title)
	if err := b.commit(ctx, events...); err != nil {
		return err
	}
	// It may have been answered before it was among those that are open here.
	end, err := interaction.Closed(ctx, &b.log().Reader, q.ID)
	if err == nil && end != nil {
		b.closeCards(q.ID, end.Answer, end.Lapsed)
	}
	return err
}

// tellFollowers says how a turn of another process ended, with the beginning of its answer.
func (b *Bridge) tellFollowers(ctx context.Context, input fact.MessageReceived, res kernel.Result) error {
	list, err := b.followers(ctx)
	var events []event.Event
	for _, c := range list {
		say := b.say(c.key())
		text := b.heading() + fmt.Sprintf(say.EndedAtDesk, literal(say.Form(input.Source)), literal(beginning(input.Text))) + "\n\n"
		switch {
		case res.Outcome == kernel.OutcomeResponded:
			text += strings.TrimSpace(res.Text + "\n\n" + ended(say, res))
		case res.Outcome == kernel.OutcomeProviderError && res.Err != nil:
			text += fmt.Sprintf(say.FailedAtDesk, say.Error(res.Err))
		default:
			text += say.UnknownAtDesk
		}
		parts := b.cut(c.Channel, text)
		if len(parts) > 1 {
			parts = append(parts[:1], b.render(c.Channel, fmt.Sprintf(say.RestAtDesk, shortRun(res.Run))))
		}
		for _, part := range parts {
			events = append(events, queueEvent("", fact.BridgeQueued{Peer: c.key(), Chat: c.Chat, Kind: outNotice, Text: part}))
		}
	}
	if err != nil {
		return err
	}
	return b.commit(ctx, events...)
}

// beginning is the first line of an input, short enough for a title.
func beginning(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return access.Cut(line, 80)
}

// menus shows the platforms which commands there are, in each language: people see them when they type a
// slash. Nothing of it is promised.
func (b *Bridge) menus(ctx context.Context, ch channel.Channel) {
	m, ok := ch.(channel.Menu)
	if !ok {
		return
	}
	for _, l := range append(language.All(), "") { // the last: for all others
		if err := m.SetMenu(ctx, string(l), menuOf(l, b.set().Language)); err != nil && ctx.Err() == nil {
			b.warn("the platform's list of commands could not be set", "channel", ch.Name(), "error", err.Error())
			return
		}
	}
}

// menuOf yields the commands in a language, with what they do.
func menuOf(l, otherwise language.Language) iter.Seq2[string, string] {
	return func(yield func(name, help string) bool) {
		for _, c := range cmp.Or(l, otherwise).Sentences().Commands {
			if !yield(c.Name, c.Help) {
				return
			}
		}
	}
}
