package service_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/perlica/perlica/service"
	"github.com/perlica/perlica/service/access"
	"github.com/perlica/perlica/service/channel"
	"github.com/perlica/perlica/service/local"
)

// asks lets the agent ask. It returns the card and the id on it.
func (p *person) asks(title, command string) (card local.Arrived, id string) {
	p.t.Helper()
	p.say(fmt.Sprintf("@ask execute %q command=%q", title, command))
	card = p.expect(title)
	_, id, _ = strings.Cut(card.Text, "with `#")
	return card, id[:8]
}

// button returns the data of the button with this label.
func button(card local.Arrived, label string) string {
	for _, b := range card.Buttons {
		if strings.Contains(b.Label, label) {
			return b.Data
		}
	}
	return ""
}

// hears sends a text and waits for a reply.
func (p *person) hears(text, answer string) local.Arrived {
	p.t.Helper()
	p.say(text)
	return p.expect(answer)
}

// unanswered fails unless exactly one question is open.
func (s *serving) unanswered(t *testing.T) {
	t.Helper()
	if open, err := s.r.PendingQuestions(t.Context()); err != nil || len(open) != 1 {
		t.Fatalf("%d questions are open, %v", len(open), err)
	}
}

// TestClocksAreNotCompared checks that a number after the card answers the card. The times of the platform's clock do
// not matter.
func TestClocksAreNotCompared(t *testing.T) {
	w := newWorld(t)
	s := w.serve(local.DefaultLimits())
	alice := w.phone("alice")
	w.pair(s, alice)
	for _, skew := range []time.Duration{-2 * time.Second, 0, 2 * time.Second, time.Hour, -30 * time.Minute} {
		alice.asks("May I "+skew.String(), "make")
		alice.answers(w, local.Message{Text: "1", Sent: time.Now().Add(skew)}, "permission: allow")
	}
}

// before returns a world in which the platform delays a card until the person has sent a text
// without knowing the card.
func before(t *testing.T, text string) (w *world, s *serving, alice *person) {
	w = newWorld(t)
	ch := &busy{asked: make(chan struct{}), word: make(chan error)}
	s = w.serve(local.DefaultLimits(), func(o *service.Options) {
		ch.Channel = o.Channels[0].(*local.Channel)
		o.Channels[0] = ch
	})
	alice = w.phone("alice")
	w.pair(s, alice)
	alice.say(`@ask execute "May I" command="make"`)
	on(t, ch.asked)
	alice.say(text) // sent before the card
	ch.word <- nil
	return w, s, alice
}

// TestACommandIsABareNumber checks that a command without an id counts like a bare number. It does
// not count if it was sent before the card.
func TestACommandIsABareNumber(t *testing.T) {
	for _, text := range []string{"/allow", "/choose 1", "/choose allow-once", "/deny", "/choose Reject"} {
		t.Run(text, func(t *testing.T) {
			w, s, alice := before(t, text)
			alice.expect("not clear which question")
			s.unanswered(t)
			alice.answers(w, local.Message{Text: text}, "permission: ")
		})
	}
}

// TestACommandWithoutDoubt checks that a command names its question by an id or as a reply to the
// card. A reply to another message names no question.
func TestACommandWithoutDoubt(t *testing.T) {
	w := newWorld(t)
	s := w.serve(local.DefaultLimits())
	alice := w.phone("alice")
	w.pair(s, alice)
	alice.say("something else")
	other := alice.expect("You said: something else")
	for _, answer := range []func(card local.Arrived, id string) local.Message{
		func(_ local.Arrived, id string) local.Message { return local.Message{Text: "/allow " + id} },
		func(_ local.Arrived, id string) local.Message {
			return local.Message{Text: "/choose " + id + " 1", ReplyTo: other.Key}
		},
		func(card local.Arrived, _ string) local.Message {
			return local.Message{Text: "/allow", ReplyTo: card.Key}
		},
	} {
		card, id := alice.asks("May I", "make")
		alice.Say(local.Message{Text: "1", ReplyTo: other.Key})
		held := alice.expect("this does not answer it")
		for _, text := range []string{"/allow", "/deny", "/choose 1"} {
			alice.Say(local.Message{Text: text, ReplyTo: other.Key})
			alice.expect("not clear which question")
		}
		s.unanswered(t)
		alice.Say(answer(card, id))
		alice.expect("permission: allow")
		alice.confirm(held)
		alice.expect("You said: 1")
	}
}

// TestTheRefusedTierIsNamed checks that a yes that needs a word must also name the question. A no
// need not.
func TestTheRefusedTierIsNamed(t *testing.T) {
	limits := local.DefaultLimits()
	limits.Buttons = true
	w := newWorld(t)
	s := w.serve(limits)
	alice := w.phone("alice")
	w.pair(s, alice)
	for _, yes := range []string{"#%s 1 root", "/allow %s root", "/choose %s 1 root", "reply"} {
		card, id := alice.asks("Wipe it", "sudo rm -rf /")
		if !strings.Contains(card.Text, "the word `root`") {
			t.Fatalf("that takes no word: %s", card.Text)
		}
		for _, bare := range []string{"1 root", "1", "/allow root", "/allow", "/choose 1 root", "#" + id + " 1",
			"#" + id + " 1 ROOT", "/allow " + id} {
			alice.say(bare)
		}
		alice.Say(local.Message{Button: card.Buttons[0].Data})
		alice.Say(local.Message{Text: "1", ReplyTo: card.Key})
		if err := alice.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		alice.hears("/help", "list these commands") // after this, all earlier messages are handled
		s.unanswered(t)
		if yes == "reply" {
			alice.Say(local.Message{Text: "1 root", ReplyTo: card.Key})
		} else {
			alice.say(fmt.Sprintf(yes, id))
		}
		alice.expect("permission: allow")
	}
	for _, no := range []string{"Reject", "/deny"} {
		alice.asks("Wipe it", "sudo rm -rf /")
		alice.say(no)
		alice.expect("permission: reject")
	}
}

// TestAYesForGood checks that a lasting yes needs a second message that also names the question.
func TestAYesForGood(t *testing.T) {
	limits := local.DefaultLimits()
	limits.Buttons = true
	w := newWorld(t)
	s := w.serve(limits)
	alice := w.phone("alice")
	w.pair(s, alice)
	for _, yes := range []string{"#%s Always allow always", "/choose %s Always allow always", "reply"} {
		card, id := alice.asks("May I", "make")
		for _, first := range []local.Message{
			{Text: "Always allow"}, {Text: "Always allow always"}, {Text: "#" + id + " Always allow"},
			{Text: "Always allow", ReplyTo: card.Key}, {Button: button(card, "Always allow")},
		} {
			alice.Say(first)
			a := alice.expect("means “always allow”")
			if !strings.Contains(a.Text, "never ask again") || !strings.Contains(a.Text, "#"+id) ||
				!strings.Contains(a.Text, "always") {
				t.Errorf("%+v is answered with %q", first, a.Text)
			}
		}
		alice.say("/choose " + id + " Always allow")
		alice.expect("means “always allow”")
		s.unanswered(t)
		if yes == "reply" {
			alice.Say(local.Message{Text: "Always allow always", ReplyTo: card.Key})
		} else {
			alice.say(fmt.Sprintf(yes, id))
		}
		alice.expect("permission: allow-always")
	}
}

// rooms is a channel with a second chat. Texts from this chat and messages to this chat begin with
// "Room: ".
type rooms struct{ *local.Channel }

const room = "Room: "

func (r rooms) Poll(ctx context.Context, cursor string) ([]channel.Inbound, string, error) {
	list, next, err := r.Channel.Poll(ctx, cursor)
	for i, m := range list {
		if text, ok := strings.CutPrefix(m.Text, room); ok {
			list[i].Chat, list[i].Text = room+m.Chat, text
		}
	}
	return list, next, err
}

func (r rooms) Send(ctx context.Context, m channel.Outbound) (string, error) {
	if chat, ok := strings.CutPrefix(m.Chat, room); ok {
		m.Chat, m.Text = chat, room+m.Text
	}
	return r.Channel.Send(ctx, m)
}

func (r rooms) Edit(ctx context.Context, id string, m channel.Outbound) error {
	m.Chat = strings.TrimPrefix(m.Chat, room)
	return r.Channel.Edit(ctx, id, m)
}

func (r rooms) After(m channel.Inbound, sent string) bool {
	m.Chat = strings.TrimPrefix(m.Chat, room)
	return r.Channel.After(m, sent)
}

// TestAnotherChat checks that a number, a reply and a button answer a card only in its chat. An id
// works everywhere.
func TestAnotherChat(t *testing.T) {
	limits := local.DefaultLimits()
	limits.Buttons = true
	w := newWorld(t)
	s := w.serve(limits, func(o *service.Options) { o.Channels[0] = rooms{o.Channels[0].(*local.Channel)} })
	alice := w.phone("alice")
	w.pair(s, alice)
	for _, answer := range []func(card local.Arrived, id string) local.Message{
		func(_ local.Arrived, id string) local.Message { return local.Message{Text: room + "#" + id + " 1"} },
		func(_ local.Arrived, id string) local.Message { return local.Message{Text: room + "/allow " + id} },
		func(card local.Arrived, _ string) local.Message { return local.Message{Text: "1", ReplyTo: card.Key} },
		func(card local.Arrived, _ string) local.Message {
			return local.Message{Button: card.Buttons[0].Data, ReplyTo: card.Key}
		},
		func(local.Arrived, string) local.Message { return local.Message{Text: "1"} },
	} {
		card, id := alice.asks("May I", "make")
		first := alice.hears(room+"1", "this does not answer it")
		alice.hears(room+"/allow", "not clear which question")
		alice.Say(local.Message{Text: room + "1", ReplyTo: card.Key})
		second := alice.expect("this does not answer it")
		alice.Say(local.Message{Text: room + "x", Button: card.Buttons[0].Data})
		alice.expect("does not belong to an open question in this chat")
		alice.Say(local.Message{Text: room + "x", Button: card.Buttons[0].Data, ReplyTo: card.Key})
		alice.expect("does not belong to an open question in this chat")
		s.unanswered(t)
		alice.answers(w, answer(card, id), "permission: allow")
		alice.confirm(first)
		alice.confirm(second)
		alice.expect("You said: 1")
		alice.expect("You said: 1")
	}
}

// TestAButtonOfAnotherCard checks that a button counts only for its own card.
func TestAButtonOfAnotherCard(t *testing.T) {
	limits := local.DefaultLimits()
	limits.Buttons = true
	w := newWorld(t)
	s := w.serve(limits)
	alice, bob := w.phone("alice"), w.phone("bob")
	w.pair(s, alice, access.Ask, access.Approve, access.Admin)
	w.pair(s, bob)
	first, _ := alice.asks("The first", "make one")
	bob.say(`@ask execute "The second" command="make two"`)
	second := alice.expect("The second")
	alice.Say(local.Message{Button: second.Buttons[0].Data, ReplyTo: first.Key})
	alice.expect("does not belong to an open question in this chat")
	for _, text := range []string{"1", "/allow"} { // two cards are open
		alice.say(text)
	}
	alice.expect("not clear which question")
	if open, err := s.r.PendingQuestions(t.Context()); err != nil || len(open) != 2 {
		t.Fatalf("%d questions are open, %v", len(open), err)
	}
	alice.Say(local.Message{Button: second.Buttons[0].Data, ReplyTo: second.Key})
	bob.expect("permission: allow")
	alice.Say(local.Message{Button: button(first, "Reject")})
	alice.expect("permission: reject")
}

// TestTwoOfAGroup checks that a number is ambiguous if two contacts have a question in one chat.
func TestTwoOfAGroup(t *testing.T) {
	w := newWorld(t)
	s := w.serve(local.DefaultLimits(), func(o *service.Options) { o.Channels[0] = group{o.Channels[0].(*local.Channel)} })
	alice, bob := w.phone("alice"), w.phone("bob")
	w.pair(s, alice)
	w.pair(s, bob)
	_, id := alice.asks("Alice's", "make")
	bob.asks("Bob's", "make")
	alice.hears("1", "this does not answer it")
	bob.hears("/allow", "not clear which question")
	alice.say("#" + id + " Reject")
	alice.expect("permission: reject")
	bob.say("Reject")
	bob.expect("permission: reject")
}

// group is a channel with one chat for all contacts. Each contact sees the messages to the chat.
type group struct{ *local.Channel }

func (g group) Poll(ctx context.Context, cursor string) ([]channel.Inbound, string, error) {
	list, next, err := g.Channel.Poll(ctx, cursor)
	for i := range list {
		list[i].Chat = "group"
	}
	return list, next, err
}

func (g group) Send(ctx context.Context, m channel.Outbound) (string, error) {
	for _, name := range []string{"bob", "alice"} {
		m.Chat = contactOf(name)
		if _, err := g.Channel.Send(ctx, m); err != nil {
			return "", err
		}
	}
	return m.Key, nil
}

func (g group) Edit(context.Context, string, channel.Outbound) error { return nil }

func (g group) After(m channel.Inbound, sent string) bool {
	m.Chat = m.Contact
	return g.Channel.After(m, sent)
}

// torn is a channel with a platform that refuses a message in the middle of a card.
type torn struct{ *local.Channel }

func (c torn) Send(ctx context.Context, m channel.Outbound) (string, error) {
	if strings.HasPrefix(m.Text, "(2/") {
		return "", &channel.RejectedError{Why: "it does not like it"}
	}
	return c.Channel.Send(ctx, m)
}

// TestATornCard checks that a question that no contact saw completely cannot be allowed there.
func TestATornCard(t *testing.T) {
	limits := local.DefaultLimits()
	limits.Buttons, limits.Text = true, 200
	w := newWorld(t)
	s := w.serve(limits, func(o *service.Options) { o.Channels[0] = torn{o.Channels[0].(*local.Channel)} })
	alice := w.phone("alice")
	w.pair(s, alice)
	alice.say(`@ask execute "May I" command="echo ` + strings.Repeat("word ", 60) + `"`)
	card := alice.expect("with `#")
	alice.Say(local.Message{Button: card.Buttons[0].Data, ReplyTo: card.Key})
	alice.expect("did not arrive here as a whole")
	alice.Say(local.Message{Button: card.Buttons[0].Data})
	alice.expect("did not arrive here as a whole")
	alice.Say(local.Message{Text: "1", ReplyTo: card.Key})
	alice.expect("did not arrive here as a whole")
	alice.hears("1", "this does not answer it")
	s.unanswered(t)
}
