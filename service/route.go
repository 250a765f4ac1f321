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

// receivePolled handles the messages of a poll and then records the cursor.
func (p *Projects) receivePolled(ctx context.Context, ch channel.Channel, messages []channel.Inbound, cursor,
	next string) error {
	for _, m := range messages {
		if m.Own {
			continue
		}
		if err := p.takeMessage(ctx, ch, m); err != nil {
			return err
		}
	}
	if next == cursor {
		return nil
	}
	// If the process dies before the cursor is recorded, the platform delivers all messages again, and they are
	// recognised.
	return p.record.Read(ctx, ch.Name(), next)
}

// takeMessage hands a message to its project.
func (p *Projects) takeMessage(ctx context.Context, ch channel.Channel, m channel.Inbound) error {
	to, err := p.earlier(ctx, ch, m)
	if err == nil && to == nil {
		to, err = p.routeMessage(ctx, ch, m)
	}
	if err != nil || to == nil {
		return err
	}
	// If the process dies here, the record names the project of the message, but this project does not have the
	// message. The platform delivers the message again.
	home := p.list[0].b
	if told, err := home.records.byID(ctx, unserved(ch, m)); err != nil || told != nil {
		return err // the sender was already told that the message is not accepted
	}
	to.requestOpen()
	say := home.sentencesFor(fact.Peer{Channel: ch.Name(), Contact: m.Contact})
	why := say.Unserved
	if b, _ := to.working(); b != nil {
		err := b.acceptMessage(ctx, ch, m)
		if err == nil || b == home || ctx.Err() != nil {
			return err
		}
		p.markFailed(to, b, err)
		why = say.FailedAt // the project's log may still have the message
	}
	return home.commitEvents(ctx, queueEvent(InputID(ch.Name(), m.ID), fact.BridgeQueued{
		ID: unserved(ch, m), Peer: fact.Peer{Channel: ch.Name(), Contact: m.Contact}, Chat: m.Chat, Kind: outRefusal,
		ReplyTo: m.ID,
		Text:    home.renderShort(ch.Name(), fmt.Sprintf(why, literal(to.name))),
	}))
}

// unserved returns the id of the reply to a message for a project that is not served.
func unserved(ch channel.Channel, m channel.Inbound) string {
	return "unserved:" + string(InputID(ch.Name(), m.ID))
}

// acceptMessage records one message.
func (b *Bridge) acceptMessage(ctx context.Context, ch channel.Channel, m channel.Inbound) error {
	events, err := b.judgeMessage(ctx, ch, m)
	if err != nil {
		return err
	}
	return b.commitEvents(ctx, events...)
}

// earlier returns the project of a message that was delivered before. It returns nil for a new message.
func (p *Projects) earlier(ctx context.Context, ch channel.Channel, m channel.Inbound) (to *served, err error) {
	input := InputID(ch.Name(), m.ID)
	log, ok := p.record.Routed(input)
	if !ok {
		missing, err := p.eachBridge(ctx, func(s *served, b *Bridge) error {
			if err := b.records.view.CatchUp(ctx); err != nil {
				return err
			}
			received, sent, _, err := b.records.known(ctx, input, ch.Name(), m.ID)
			if to == nil && (received || sent) { // the message came before the bot had a second project
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
	root := filepath.Join(filepath.Dir(log), "..", "..", "..") // the folder of .perlica_config/contexts/CONTEXT
	return &served{log: log, name: filepath.Base(root), err: errRemoved}, nil
}

// routeMessage chooses the project of a new message. It returns nil if the message was a code and needs no further
// work.
func (p *Projects) routeMessage(ctx context.Context, ch channel.Channel, m channel.Inbound) (to *served, err error) {
	who, input := fact.Peer{Channel: ch.Name(), Contact: m.Contact}, InputID(ch.Name(), m.ID)
	paired, err := p.pairedIn(ctx, who)
	if err != nil {
		return nil, err
	}
	if codeIn(m) != "" {
		if done, err := p.tryCode(ctx, ch, m, who, paired); done || err != nil {
			return nil, err
		}
	}
	now := p.current(who, paired)
	if now == nil || m.Unproven {
		return p.list[0], nil // the sender counts as a stranger
	}
	if l, err := parse(m.Text); err == nil && l.Name == projectCommand && !m.Quoted && m.Button == "" {
		offered, _, err := p.offered(ctx, who)
		if err != nil {
			return nil, err
		}
		next := cmp.Or(pick(offered, l.Args), now)
		// Only a served project shows its pairings, so ask for the named project to be opened soon.
		if named := pick(p.list, l.Args); named != nil {
			named.requestOpen()
		}
		// An unserved project cannot reply. Another project of the sender then replies for it.
		if to = next; len(paired) > 0 && !slices.Contains(paired, next) {
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

// tryCode tests whether a message is the code of a project in which its sender is not paired. A wrong code is one more
// guess in each of these projects. The result "done" means that the message needs no further handling.
func (p *Projects) tryCode(ctx context.Context, ch channel.Channel, m channel.Inbound, who fact.Peer,
	paired []*served) (done bool, err error) {
	var first func() error // replies that the code was wrong
	_, err = p.eachBridge(ctx, func(s *served, b *Bridge) error {
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
			first = func() error { return b.commitEvents(ctx, events...) }
		}
		if done = slices.ContainsFunc(events, func(e event.Event) bool { return e.Type == event.ContactPaired }); !done {
			return nil
		}
		// If the process dies after this step, the sender has chosen a project without a pairing.
		// Such a choice does not count.
		if err := p.record.Route(ctx, InputID(ch.Name(), m.ID), who, m.ID, s.log, s.log); err != nil {
			return err
		}
		return b.commitEvents(ctx, events...)
	})
	if err != nil || done || first == nil || len(paired) > 0 { // this may be a contact's input
		return done, err
	}
	return true, first()
}

// meant returns the project that a message is about, independently of the sender's current project.
// The message may reply to a message or name a question or a message. It may also answer the only
// question of its chat.
func (p *Projects) meant(ctx context.Context, ch channel.Channel, m channel.Inbound, who fact.Peer,
	paired []*served) (to *served, err error) {
	asks, cards := (*served)(nil), 0
	_, err = p.eachBridge(ctx, func(s *served, b *Bridge) error {
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
	if err := b.newAnswerReader(ch, who, m).readAnswer(ctx, &f); err != nil || f.Kind == "" {
		return nil, err
	}
	return asks, nil
}

// names reports whether a message is about this project: it replies to a message, names a question
// or a waiting message, or presses a button.
func (b *Bridge) names(ctx context.Context, ch channel.Channel, who fact.Peer, m channel.Inbound) (bool, error) {
	if m.ReplyTo != "" {
		b.newAnswerReader(ch, who, m).awaitCards(ctx)
		if has, err := b.records.has(ctx, ch.Name(), m.Chat, m.ReplyTo); has || err != nil {
			return has, err
		}
	}
	waits := func(is func(event.InputID) bool) bool {
		b.mu.Lock()
		ib := b.inboxByPeer[who]
		b.mu.Unlock()
		return ib != nil && slices.ContainsFunc(ib.inLine(), func(in received) bool { return is(in.input) })
	}
	if kind, which, ok := strings.Cut(m.Button, ":"); ok {
		if kind+":" == buttonPrefix {
			id, _, _ := strings.Cut(which, ":")
			return b.records.askedBySuffix(ctx, id)
		}
		return waits(func(in event.InputID) bool { return token(in) == which }), nil
	}
	if m.Quoted {
		return false, nil
	}
	if parts := addressed().FindStringSubmatch(strings.TrimSpace(m.Text)); parts != nil {
		return b.records.askedBySuffix(ctx, parts[1])
	}
	l, err := parse(m.Text)
	arg, _, _ := strings.Cut(l.Args, " ")
	switch {
	case err != nil:
	case len(arg) >= 8 && (l.Name == "allow" || l.Name == "deny" || l.Name == "choose"):
		return b.records.askedBySuffix(ctx, strings.TrimPrefix(arg, "#"))
	case len(arg) >= 4 && (l.Name == "withdraw" || l.Name == "unqueue" || l.Name == "send"):
		return waits(func(in event.InputID) bool { return word(in) == strings.ToLower(arg) }), nil
	}
	return false, nil
}
