package service

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/service/channel"
)

// receive takes what a poll brought, and puts the cursor on record behind it.
func (p *Projects) receive(ctx context.Context, ch channel.Channel, messages []channel.Inbound, cursor, next string) error {
	for _, m := range messages {
		if m.Own {
			continue
		}
		if err := p.take(ctx, ch, m); err != nil {
			return err
		}
	}
	if next == cursor {
		return nil
	}
	// If we die ahead of this, all of it comes again and is known.
	return p.record.Read(ctx, ch.Name(), next)
}

// take hands a message to its project.
func (p *Projects) take(ctx context.Context, ch channel.Channel, m channel.Inbound) error {
	to, err := p.earlier(ctx, ch, m)
	if err == nil && to == nil {
		to, err = p.route(ctx, ch, m)
	}
	if err != nil || to == nil {
		return err
	}
	// If we die here, the message has a project and no one has it: it comes again.
	home := p.list[0].b
	if told, err := home.records.byID(ctx, unserved(ch, m)); err != nil || told != nil {
		return err // its sender was told that it is not taken
	}
	to.want()
	say := home.say(fact.Peer{Channel: ch.Name(), Contact: m.Contact})
	why := say.Unserved
	if b, _ := to.working(); b != nil {
		err := b.accept(ctx, ch, m)
		if err == nil || b == home || ctx.Err() != nil {
			return err
		}
		p.fail(to, b, err)
		why = say.FailedAt // its log may have the message all the same
	}
	return home.commit(ctx, queueEvent(InputID(ch.Name(), m.ID), fact.BridgeQueued{
		ID: unserved(ch, m), Peer: fact.Peer{Channel: ch.Name(), Contact: m.Contact}, Chat: m.Chat, Kind: outRefusal, ReplyTo: m.ID,
		Text: home.render(ch.Name(), fmt.Sprintf(why, literal(to.name))),
	}))
}

// unserved is the id of what the sender of a message is told whose project is not served.
func unserved(ch channel.Channel, m channel.Inbound) string {
	return "unserved:" + string(InputID(ch.Name(), m.ID))
}

// accept puts one message on record.
func (b *Bridge) accept(ctx context.Context, ch channel.Channel, m channel.Inbound) error {
	events, err := b.judge(ctx, ch, m)
	if err != nil {
		return err
	}
	return b.commit(ctx, events...)
}

// earlier returns the project that a message went to when it came before; nil: it did not.
func (p *Projects) earlier(ctx context.Context, ch channel.Channel, m channel.Inbound) (to *served, err error) {
	input := InputID(ch.Name(), m.ID)
	log, ok := p.record.Routed(input)
	if !ok {
		missing, err := p.each(ctx, func(s *served, b *Bridge) error {
			if err := b.records.view.CatchUp(ctx); err != nil {
				return err
			}
			received, sent, _, err := b.records.known(ctx, input, ch.Name(), m.ID)
			if to == nil && (received || sent) { // from before there was more than one
				to = s
			}
			return err
		})
		if err != nil || to != nil || !missing {
			return to, err
		}
		if log, ok, err = p.record.Find(ctx, input); err != nil || !ok {
			return nil, err
		}
	}
	if i := slices.IndexFunc(p.list, func(s *served) bool { return s.log == log }); i >= 0 {
		return p.list[i], nil
	}
	root := filepath.Join(filepath.Dir(log), "..", "..", "..") // of .perlica_config/contexts/CONTEXT
	return &served{log: log, name: filepath.Base(root), err: errRemoved}, nil
}

// route decides to which project a message goes that came for the first time; nil: it was a code, and is dealt with.
func (p *Projects) route(ctx context.Context, ch channel.Channel, m channel.Inbound) (to *served, err error) {
	who, input := fact.Peer{Channel: ch.Name(), Contact: m.Contact}, InputID(ch.Name(), m.ID)
	paired, err := p.pairedIn(ctx, who)
	if err != nil {
		return nil, err
	}
	if codeIn(m) != "" {
		if done, err := p.code(ctx, ch, m, who, paired); done || err != nil {
			return nil, err
		}
	}
	now := p.current(who, paired)
	if now == nil {
		return p.list[0], nil // a stranger, whose words are no one's
	}
	if l, err := parse(m.Text); err == nil && l.Name == projectCommand && !m.Quoted && m.Button == "" {
		offered, _, err := p.offered(ctx, who)
		if err != nil {
			return nil, err
		}
		next := cmp.Or(pick(offered, l.Args), now)
		if named := pick(p.list, l.Args); named != nil { // who is paired in one that is not served is not known
			named.want()
		}
		if to = next; len(paired) > 0 && !slices.Contains(paired, next) { // which cannot be served, and so cannot say it
			to = paired[0]
		}
		return to, p.record.Route(ctx, input, who, m.ID, to.log, next.log)
	}
	if to, err = p.meant(ctx, ch, m, who, paired); err != nil {
		return nil, err
	}
	to = cmp.Or(to, now)
	return to, p.record.Route(ctx, input, who, m.ID, to.log, now.log)
}

// code looks whether a message is the code of a project in which its sender is not paired. Each guess counts in
// each of them. done says that it goes no further.
func (p *Projects) code(ctx context.Context, ch channel.Channel, m channel.Inbound, who fact.Peer, paired []*served) (done bool, err error) {
	var first func() error // says that it was wrong
	_, err = p.each(ctx, func(s *served, b *Bridge) error {
		if done || slices.Contains(paired, s) {
			return nil
		}
		if _, open, err := b.records.openPairing(ctx, b.opt.Now()); err != nil || !open {
			return err
		}
		events, err := b.stranger(ctx, ch.Name(), m)
		if err != nil {
			return err
		}
		if first == nil {
			first = func() error { return b.commit(ctx, events...) }
		}
		if done = slices.ContainsFunc(events, func(e event.Event) bool { return e.Type == event.ContactPaired }); !done {
			return nil
		}
		// If we die behind this, it has chosen a project in which it is not paired, which is none.
		if err := p.record.Route(ctx, InputID(ch.Name(), m.ID), who, m.ID, s.log, s.log); err != nil {
			return err
		}
		return b.commit(ctx, events...)
	})
	if err != nil || done || first == nil || len(paired) > 0 { // from a contact it may be an input
		return done, err
	}
	return true, first()
}

// meant returns the project that a message means whichever its sender is in: by what it replies to, by the question
// or the message that it names, or because it answers the only question of this chat.
func (p *Projects) meant(ctx context.Context, ch channel.Channel, m channel.Inbound, who fact.Peer, paired []*served) (to *served, err error) {
	asks, cards := (*served)(nil), 0
	_, err = p.each(ctx, func(s *served, b *Bridge) error {
		if n := b.cardsIn(ch.Name(), m.Chat); n > 0 {
			asks, cards = s, cards+n
		}
		if to != nil || !slices.Contains(paired, s) {
			return nil
		}
		names, err := b.names(ctx, ch, who, m)
		if names && err == nil {
			to = s
		}
		return err
	})
	if err != nil || to != nil || cards != 1 || m.Quoted || !slices.Contains(paired, asks) {
		return to, err
	}
	b, _ := asks.working()
	if b == nil {
		return nil, nil
	}
	if l, err := parse(m.Text); err == nil && (l.Name == "allow" || l.Name == "deny" || l.Name == "choose") {
		return asks, nil
	}
	var f fact.BridgeReceived
	if err := b.reading(ch, who, m).answer(ctx, &f); err != nil || f.Kind == "" {
		return nil, err
	}
	return asks, nil
}

// names reports whether a message is about something of this project: it replies to a message, names a question or
// a message that waits, or presses a button below one.
func (b *Bridge) names(ctx context.Context, ch channel.Channel, who fact.Peer, m channel.Inbound) (bool, error) {
	if m.ReplyTo != "" {
		b.reading(ch, who, m).landed(ctx)
		if has, err := b.records.has(ctx, ch.Name(), m.Chat, m.ReplyTo); has || err != nil {
			return has, err
		}
	}
	waits := func(is func(event.InputID) bool) bool {
		b.mu.Lock()
		d := b.desk[who]
		b.mu.Unlock()
		return d != nil && slices.ContainsFunc(d.inLine(), func(in received) bool { return is(in.input) })
	}
	if kind, which, ok := strings.Cut(m.Button, ":"); ok {
		if kind+":" == buttonPrefix {
			id, _, _ := strings.Cut(which, ":")
			return b.records.asked(ctx, id)
		}
		return waits(func(in event.InputID) bool { return token(in) == which }), nil
	}
	if m.Quoted {
		return false, nil
	}
	if parts := addressed().FindStringSubmatch(strings.TrimSpace(m.Text)); parts != nil {
		return b.records.asked(ctx, parts[1])
	}
	l, err := parse(m.Text)
	arg, _, _ := strings.Cut(l.Args, " ")
	switch {
	case err != nil:
	case len(arg) >= 8 && (l.Name == "allow" || l.Name == "deny" || l.Name == "choose"):
		return b.records.asked(ctx, strings.TrimPrefix(arg, "#"))
	case len(arg) >= 4 && (l.Name == "withdraw" || l.Name == "unqueue" || l.Name == "send"):
		return waits(func(in event.InputID) bool { return word(in) == strings.ToLower(arg) }), nil
	}
	return false, nil
}
