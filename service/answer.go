package service

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/kernel/command"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/kernel/language"
	"github.com/perlica/perlica/service/channel"
)

// reading is a message that is looked at for an answer to one of the questions that are open to
// its sender.
type reading struct {
	b    *Bridge
	ch   channel.Channel
	who  fact.Peer
	m    channel.Inbound
	open []*asked
	say  *language.Sentences
}

func (b *Bridge) reading(ch channel.Channel, who fact.Peer, m channel.Inbound) *reading {
	return &reading{b, ch, who, m, b.openTo(who), b.say(who)}
}

// addressed is an answer to the question that it names.
var addressed = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^#([0-9a-fA-F-]{8,36})\s+(.+)$`)
})

// answer finds out whether the message answers a question. It sets f.Kind only if it does, or if
// it was meant to and cannot. Free text chooses nothing.
func (r *reading) answer(ctx context.Context, f *fact.BridgeReceived) error {
	if r.m.Button != "" {
		r.landed(ctx)
		r.pressed(f)
		return nil
	}
	text := strings.TrimSpace(r.m.Text)
	if r.m.ReplyTo != "" {
		r.landed(ctx)
		if err := r.replied(ctx, text, f); err != nil || f.Kind != "" {
			return err
		}
	}
	if parts := addressed().FindStringSubmatch(text); parts != nil {
		if r.named(parts[1], parts[2], f); f.Kind != "" {
			return nil
		}
	}
	if a := r.bare(ctx, text); a != nil {
		r.take(a, text, false, f)
	}
	return nil
}

// take puts into f what a text chooses of a question, if it chooses anything. named says that the
// message leaves no doubt which question is meant: a yes to one that takes a word needs that, and
// so does a yes for good.
func (r *reading) take(a *asked, text string, named bool, f *fact.BridgeReceived) {
	c, err := command.ReadChoice(a.Question, text)
	if err != nil {
		return
	}
	r.choose(a, c, named, f)
}

func (r *reading) choose(a *asked, c command.Choice, named bool, f *fact.BridgeReceived) {
	how := fmt.Sprintf(r.say.ByID, shortID(a.ID))
	if a.Word != "" && c.Option.Allows() {
		how = fmt.Sprintf(r.say.ByIDAndWord, shortID(a.ID), a.Word)
	}
	switch {
	case c.Option.Text && (c.Word == "" || !named): // other words may begin with a number
		f.Kind, f.Word = kindRefused, fmt.Sprintf(r.say.NeedsText, how)
	case c.Option.Always() && !(c.Always && named):
		f.Kind, f.Word = kindRefused, c.GivesUp(r.say, a.Question)+fmt.Sprintf(r.say.WhereMeant, how)
	case a.Word != "" && c.Option.Allows() && !(c.Word == a.Word && named):
		f.Kind, f.Word = kindRefused, fmt.Sprintf(r.say.NeedsWord, how)
	case c.Option.Allows() && !named && r.fresh(a):
		f.Kind, f.Word = kindRefused, fmt.Sprintf(r.say.TooSoon, how)
	case !c.Option.Allows() && (c.Word != "" || c.Always): // that is no answer of anybody
	default:
		f.Kind, f.Question, f.Option, f.Word, f.Always = kindAnswer, a.ID, c.Option.ID, c.Word, c.Always
	}
}

// pressed reads a button. It counts in the chat of its card, and, where the channel says on which
// message it was, on that card only.
func (r *reading) pressed(f *fact.BridgeReceived) {
	f.Kind, f.Word = kindRefused, r.say.NotHere
	id, n, _ := strings.Cut(strings.TrimPrefix(r.m.Button, buttonPrefix), ":")
	which := slices.IndexFunc(r.open, func(a *asked) bool { return string(a.ID) == id })
	i, err := strconv.Atoi(n)
	if which < 0 || err != nil || i < 1 || i > len(r.open[which].Options) {
		f.Word = r.say.NotOpen
		return
	}
	a := r.open[which]
	on, at := r.card(r.m.ReplyTo)
	if r.m.ReplyTo == "" {
		on, at = a, a.inChat(r.ch.Name(), r.m.Chat)
	}
	option := a.Options[i-1]
	switch {
	case on != a || at == nil:
		return
	case option.Allows() && !at.whole():
		f.Word = r.say.NotWhole
		return
	}
	f.Kind, f.Word = "", ""
	r.choose(a, command.Choice{Option: option}, true, f)
}

// replied reads a message that answers another one. What answers a card names its question.
func (r *reading) replied(ctx context.Context, text string, f *fact.BridgeReceived) error {
	if a, c := r.card(r.m.ReplyTo); a != nil {
		choice, err := command.ReadChoice(a.Question, text)
		switch {
		case err != nil:
		case choice.Option.Allows() && !r.seen(c):
			f.Kind, f.Word = kindRefused, r.say.NotWhole
		default:
			r.choose(a, choice, true, f)
		}
		return nil
	}
	id, err := r.b.records.cardOf(ctx, r.ch.Name(), r.m.Chat, r.m.ReplyTo)
	if err != nil || id == "" {
		return err
	}
	a, err := r.b.find(ctx, id)
	if err == nil {
		_, err = command.ReadChoice(a.Question, text)
	}
	if err == nil {
		f.Kind, f.Word = kindRefused, r.say.NotOpen
	}
	return nil
}

// named reads "#id answer".
func (r *reading) named(id, text string, f *fact.BridgeReceived) {
	var found []*asked
	for _, a := range r.open {
		if strings.HasSuffix(string(a.ID), strings.ToLower(id)) {
			found = append(found, a)
		}
	}
	if len(found) == 1 {
		r.take(found[0], text, true, f)
		return
	}
	number, _, _ := strings.Cut(text, " ")
	if _, err := strconv.Atoi(number); err == nil && len(found) == 0 {
		f.Kind, f.Word = kindRefused, r.say.NotOpen
	}
}

// bare returns the question that a text answers that names none: the only one with a card in this
// chat, put there to its sender, and sent before the text. What is a reply to anything is about that.
func (r *reading) bare(ctx context.Context, text string) *asked {
	a := r.only()
	if a == nil || r.m.ReplyTo != "" {
		return nil
	}
	if _, err := command.ReadChoice(a.Question, text); err != nil {
		return nil
	}
	r.landed(ctx)
	if r.only() != a || !r.after(a.cards[r.who]) {
		return nil
	}
	return a
}

// only returns the question whose card is the only one that waits in this chat, of whichever project, anybody else it
// was put to, if it was put there to the sender.
func (r *reading) only() *asked {
	for _, o := range r.b.family() {
		if o != r.b && o.cardsIn(r.ch.Name(), r.m.Chat) > 0 {
			return nil
		}
	}
	r.b.mu.Lock()
	defer r.b.mu.Unlock()
	var found *asked
	for _, a := range r.b.asked {
		if a.inChat(r.ch.Name(), r.m.Chat) == nil {
			continue
		}
		if found != nil {
			return nil
		}
		found = a
	}
	if found == nil || found.cards[r.who] == nil || found.cards[r.who].chat != r.m.Chat {
		return nil
	}
	return found
}

// card returns the question that is open to the sender and has a card with a message of this
// platform's id in this chat. In a group it may be the card of somebody else.
func (r *reading) card(id string) (*asked, *card) {
	if id == "" {
		return nil, nil
	}
	for _, a := range r.open {
		for who, c := range a.cards {
			if who.Channel == r.ch.Name() && c.chat == r.m.Chat && c.has(id) {
				return a, c
			}
		}
	}
	return nil, nil
}

// seen reports whether the person who answers a message of the card can have seen all of it: it is the
// last one, or the answer came behind that.
func (r *reading) seen(c *card) bool {
	return c.whole() && (r.m.ReplyTo == c.last() || r.after(c))
}

// after reports whether the message came behind the whole card, in the platform's order.
func (r *reading) after(c *card) bool {
	return c.whole() && c.last() != "" && r.ch.After(r.m, c.last())
}

// fresh reports whether the sender's card of a question arrived only just now.
func (r *reading) fresh(a *asked) bool {
	c := a.cards[r.who]
	return c != nil && c.fresh(r.b.opt.Now())
}

// landed waits until the cards that are on their way to this chat have arrived, or have failed:
// who answers one may be quicker than the platform's word, which has its id. After a while no one
// waits.
func (r *reading) landed(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, landing)
	defer cancel()
	for _, a := range r.open {
		for who, c := range a.cards {
			if who.Channel == r.ch.Name() && c.chat == r.m.Chat {
				c.wait(ctx)
			}
		}
	}
}

// pin finds out which question /allow, /deny or /choose is about, where none is named: as a bare
// number or a reply says it. Empty: the command itself must name one.
func (r *reading) pin(ctx context.Context, l command.Line) (event.InteractionID, error) {
	args := strings.Fields(l.Args)
	if len(args) > 0 {
		if named, err := command.Names(ctx, &r.b.log().Reader, args[0]); named || err != nil {
			return "", err
		}
	}
	r.landed(ctx)
	if r.m.ReplyTo != "" {
		if a, c := r.card(r.m.ReplyTo); a != nil && r.seen(c) {
			return a.ID, nil
		}
		return "", nil
	}
	a := r.only()
	if a == nil || !r.after(a.cards[r.who]) {
		return "", nil
	}
	yes := l.Name == "allow"
	if l.Name == "choose" {
		c, err := command.ReadChoice(a.Question, strings.Join(args, " "))
		yes = err != nil || c.Option.Allows()
		if err == nil && c.Option.Always() {
			return "", nil
		}
	}
	switch {
	case yes && a.Word != "":
		return "", nil
	case yes && r.fresh(a):
		return "", &tooSoonError{fmt.Sprintf(r.say.TooSoon, fmt.Sprintf(r.say.ByID, shortID(a.ID)))}
	}
	return a.ID, nil
}

// A tooSoonError says that a yes that names no question came when nobody can have read the card.
type tooSoonError struct{ text string }

func (e *tooSoonError) Error() string { return e.text }
