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

// answerReader looks in a message for an answer to one of the sender's open questions. A card is the message, or the
// messages, with which the bridge asks a person such a question.
type answerReader struct {
	b    *Bridge
	ch   channel.Channel
	who  fact.Peer
	m    channel.Inbound
	open []*openQuestion
	say  *language.Sentences
}

func (b *Bridge) newAnswerReader(ch channel.Channel, who fact.Peer, m channel.Inbound) *answerReader {
	return &answerReader{b, ch, who, m, b.openTo(who), b.sentencesFor(who)}
}

// addressed matches an answer that names its question.
var addressed = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^#([0-9a-fA-F-]{8,36})\s+(.+)$`)
})

// readAnswer finds out whether the message answers a question. It sets f.Kind if the message is an answer, and also if
// it is an answer that must be refused. Free text chooses no option.
func (r *answerReader) readAnswer(ctx context.Context, f *fact.BridgeReceived) error {
	if r.m.Button != "" {
		r.awaitCards(ctx)
		r.pressed(f)
		return nil
	}
	if r.ch.Limits().Forgeable {
		return nil
	}
	text := strings.TrimSpace(r.m.Text)
	if r.m.ReplyTo != "" {
		r.awaitCards(ctx)
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
		r.takeChoice(a, text, false, f)
	}
	return nil
}

// takeChoice stores in f the choice that a text makes. The parameter "named" is true if the message names its question
// without doubt, for example by the question's id. Otherwise takeChoice refuses a yes that needs a typed word, and a
// yes that also holds for later questions.
func (r *answerReader) takeChoice(a *openQuestion, text string, named bool, f *fact.BridgeReceived) {
	c, err := command.ReadChoice(a.Question, text)
	if err != nil {
		return
	}
	r.applyChoice(a, c, named, f)
}

func (r *answerReader) applyChoice(a *openQuestion, c command.Choice, named bool, f *fact.BridgeReceived) {
	how := fmt.Sprintf(r.say.ByID, shortID(a.ID))
	if a.Word != "" && c.Option.Allows() {
		how = fmt.Sprintf(r.say.ByIDAndWord, shortID(a.ID), a.Word)
	}
	switch {
	case c.Option.Text && (c.Word == "" || !named): // a text such as "2 files" may not be an answer
		f.Kind, f.Word = kindRefused, fmt.Sprintf(r.say.NeedsText, how)
	case c.Option.Always() && !(c.Always && named):
		f.Kind, f.Word = kindRefused, c.GivesUp(r.say, a.Question)+fmt.Sprintf(r.say.WhereMeant, how)
	case a.Word != "" && c.Option.Allows() && !(c.Word == a.Word && named):
		f.Kind, f.Word = kindRefused, fmt.Sprintf(r.say.NeedsWord, how)
	case c.Option.Allows() && !named && r.fresh(a):
		f.Kind, f.Word = kindRefused, fmt.Sprintf(r.say.TooSoon, how)
	case !c.Option.Allows() && (c.Word != "" || c.Always): // a no with a word or with "always" is not an answer
	default:
		f.Kind, f.Question, f.Option, f.Word, f.Always = kindAnswer, a.ID, c.Option.ID, c.Word, c.Always
	}
}

// pressed reads a pressed button. A button counts only in the chat of its card. If the channel reports the message with
// the button, this message must belong to the card.
func (r *answerReader) pressed(f *fact.BridgeReceived) {
	f.Kind, f.Word = kindRefused, r.say.NotHere
	on, at := r.card(r.m.ReplyTo)
	id, n, isButton := strings.Cut(strings.TrimPrefix(r.m.Button, buttonPrefix), ":")
	if !isButton { // a reaction to the card, which names an option by its number
		if n = id; on != nil {
			id = string(on.ID)
		}
	}
	which := slices.IndexFunc(r.open, func(a *openQuestion) bool { return string(a.ID) == id })
	i, err := strconv.Atoi(n)
	if which < 0 || err != nil || i < 1 || i > len(r.open[which].Options) {
		f.Word = r.say.NotOpen
		return
	}
	a := r.open[which]
	if r.m.ReplyTo == "" {
		on, at = a, a.inChat(r.ch.Name(), r.m.Chat)
	}
	option := a.Options[i-1]
	switch {
	case on != a || at == nil:
		return
	case r.ch.Limits().Forgeable && !onForgeable(a.Question, option):
		f.Word = r.say.NotByMail
		return
	case option.Allows() && (!at.whole() || !isButton && !r.seen(at)):
		f.Word = r.say.NotWhole
		return
	}
	f.Kind, f.Word = "", ""
	r.applyChoice(a, command.Choice{Option: option}, true, f)
}

// replied reads a reply to another message. A reply to a card names the card's question.
func (r *answerReader) replied(ctx context.Context, text string, f *fact.BridgeReceived) error {
	if a, c := r.card(r.m.ReplyTo); a != nil {
		choice, err := command.ReadChoice(a.Question, text)
		switch {
		case err != nil:
		case choice.Option.Allows() && !r.seen(c):
			f.Kind, f.Word = kindRefused, r.say.NotWhole
		default:
			r.applyChoice(a, choice, true, f)
		}
		return nil
	}
	id, err := r.b.records.cardOf(ctx, r.ch.Name(), r.m.Chat, r.m.ReplyTo)
	if err != nil || id == "" {
		return err
	}
	a, err := r.b.findQuestion(ctx, id)
	if err == nil {
		_, err = command.ReadChoice(a.Question, text)
	}
	if err == nil {
		f.Kind, f.Word = kindRefused, r.say.NotOpen
	}
	return nil
}

// named reads a message of the form "#id answer", which names its question.
func (r *answerReader) named(id, text string, f *fact.BridgeReceived) {
	var found []*openQuestion
	for _, a := range r.open {
		if strings.HasSuffix(string(a.ID), strings.ToLower(id)) {
			found = append(found, a)
		}
	}
	if len(found) == 1 {
		r.takeChoice(found[0], text, true, f)
		return
	}
	number, _, _ := strings.Cut(text, " ")
	if _, err := strconv.Atoi(number); err == nil && len(found) == 0 {
		f.Kind, f.Word = kindRefused, r.say.NotOpen
	}
}

// bare returns the question that an unaddressed text answers. It is the only question with a card
// in this chat, the sender may answer it, and its card was sent before the text. A reply to another
// message answers no such question.
func (r *answerReader) bare(ctx context.Context, text string) *openQuestion {
	a := r.onlyQuestion()
	if a == nil || r.m.ReplyTo != "" {
		return nil
	}
	if _, err := command.ReadChoice(a.Question, text); err != nil {
		return nil
	}
	r.awaitCards(ctx)
	if r.onlyQuestion() != a || !r.after(a.cards[r.who]) {
		return nil
	}
	return a
}

// onlyQuestion returns the question of the only waiting card in this chat, if this card belongs to the sender. Cards of
// all projects and of all contacts count.
func (r *answerReader) onlyQuestion() *openQuestion {
	for _, o := range r.b.allBridges() {
		if o != r.b && o.cardsIn(r.ch.Name(), r.m.Chat) > 0 {
			return nil
		}
	}
	r.b.mu.Lock()
	defer r.b.mu.Unlock()
	var found *openQuestion
	for _, a := range r.b.openQuestions {
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

// card returns the sender's open question with a card that has this message id in this chat. In a group the card may
// belong to another contact.
func (r *answerReader) card(id string) (*openQuestion, *card) {
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

// seen reports whether the sender can have seen the whole card. This is so if the sender has replied to the last
// message of the card, or has written after this message.
func (r *answerReader) seen(c *card) bool {
	return c.whole() && (r.m.ReplyTo == c.last() || r.after(c))
}

// after reports whether the message came after the whole card in the platform's order.
func (r *answerReader) after(c *card) bool {
	return c.whole() && c.last() != "" && r.ch.After(r.m, c.last())
}

// fresh reports whether the sender's card of a question has just arrived.
func (r *answerReader) fresh(a *openQuestion) bool {
	c := a.cards[r.who]
	return c != nil && c.fresh(r.b.opt.Now())
}

// awaitCards waits until the cards for this chat have arrived or have failed. A person may answer
// before the platform has returned the id of the card's message. The wait is limited.
func (r *answerReader) awaitCards(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, landing)
	defer cancel()
	for _, a := range r.open {
		for who, c := range a.cards {
			if who.Channel == r.ch.Name() && c.chat == r.m.Chat {
				c.awaitSent(ctx)
			}
		}
	}
}

// pinQuestion returns the question that an /allow, /deny or /choose without an id means. It follows the same rules as
// the methods bare and replied. If the returned id is empty, the command itself must name the question.
func (r *answerReader) pinQuestion(ctx context.Context, l command.Line) (event.InteractionID, error) {
	args := strings.Fields(l.Args)
	if len(args) > 0 {
		if named, err := command.Names(ctx, &r.b.log().Reader, args[0]); named || err != nil {
			return "", err
		}
	}
	r.awaitCards(ctx)
	if r.m.ReplyTo != "" {
		if a, c := r.card(r.m.ReplyTo); a != nil && r.seen(c) {
			return a.ID, nil
		}
		return "", nil
	}
	a := r.onlyQuestion()
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

// A tooSoonError refuses a yes that names no question, because the yes came before a person can have read the card.
type tooSoonError struct{ text string }

func (e *tooSoonError) Error() string { return e.text }
