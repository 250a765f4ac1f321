package service_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/interaction"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/service/access"
	"github.com/perlica/perlica/service/channel"
	"github.com/perlica/perlica/service/channel/channeltest"
	"github.com/perlica/perlica/service/discord/discordtest"
	"github.com/perlica/perlica/service/local"
	"github.com/perlica/perlica/service/slack/slacktest"
)

// press presses the button with a label below a card.
func (p *person) press(card local.Arrived, label string) {
	p.t.Helper()
	i := slices.IndexFunc(card.Buttons, func(b channel.Button) bool { return strings.Contains(b.Label, label) })
	if i < 0 {
		p.t.Fatalf("the card has the buttons %+v", card.Buttons)
	}
	p.deliver(local.Message{ReplyTo: card.Key, Button: card.Buttons[i].Data})
}

// sessionsOf returns the sessions of the inputs by their texts.
func (s *serving) sessionsOf(t *testing.T) map[string]event.SessionID {
	t.Helper()
	list := map[string]event.SessionID{}
	for e, err := range s.r.Log().Events(t.Context(), event.Query{Types: []event.Type{event.MessageReceived}}) {
		if err != nil {
			t.Fatal(err)
		}
		f, err := fact.Decode[fact.MessageReceived](e)
		if err != nil {
			t.Fatal(err)
		}
		list[f.Text] = e.Session
	}
	return list
}

// TestThreads checks that each chat of a contact has a session, also after a restart and in turn with other chats.
func TestThreads(t *testing.T) {
	for _, s := range []channeltest.Subject{discordtest.Subject(), slacktest.Subject()} {
		t.Run(s.Name, func(t *testing.T) {
			w := newWorld(t)
			v := w.venue(s)
			b, stop := v.serve()
			alice, bob := v.join("Alice"), v.join("Bob")
			w.pair(b, alice)
			w.pair(b, bob)
			first, second, bobs := v.enter(alice, "first"), v.enter(alice, "second"), v.enter(bob, "first")
			chats := map[string]*person{"private": alice, "first": first, "second": second, "bob": bobs}
			tell := func(text string) {
				for _, chat := range []string{"private", "first", "second", "bob"} {
					chats[chat].say(text + " " + chat)
					chats[chat].expect("You said: " + text + " " + chat)
				}
			}
			tell("one")
			tell("two")
			first.say("/new")
			first.expect("session")
			tell("three")
			stop()
			b, stop = v.serve()
			tell("four")
			got := b.sessionsOf(t)
			stop()
			used := map[event.SessionID]string{}
			for chat := range chats {
				one, three := got["one "+chat], got["three "+chat]
				if same := chat != "first"; one != got["two "+chat] || three != got["four "+chat] || one == "" || three == "" ||
					(one == three) != same {
					t.Errorf("the inputs of the chat %q have the sessions %q, %q, %q and %q", chat, one, got["two "+chat], three,
						got["four "+chat])
				}
				for _, id := range []event.SessionID{one, three} {
					if other := used[id]; other != "" && other != chat {
						t.Errorf("the chats %q and %q share the session %q", chat, other, id)
					}
					used[id] = chat
				}
			}
			if n := strings.Count(w.prompts(), `"session/prompt"`); n != 16 {
				t.Errorf("16 messages made %d prompts", n)
			}
		})
	}
}

// TestGroup checks that the bridge obeys only the paired people of a group, each within the rights of this person. The
// record and the closed card name the person that approved.
func TestGroup(t *testing.T) {
	for _, s := range []channeltest.Subject{discordtest.Subject(), slacktest.Subject()} {
		t.Run(s.Name, func(t *testing.T) {
			w := newWorld(t)
			v := w.venue(s)
			b, stop := v.serve()
			join := func(name string, rights ...access.Right) (private, group *person) {
				private = v.join(name)
				if len(rights) > 0 {
					w.pair(b, private, rights...)
				}
				return private, v.enter(private, "team")
			}
			_, alice := join("Alice", access.Ask, access.Approve)
			_, bob := join("Bob", access.Ask, access.Approve)
			_, dora := join("Dora", access.Ask)
			boss, carol := join("Carol", access.Approve, access.Admin)
			_, eve := join("Eve")
			eve.say("let me in")
			carol.say("do it")
			carol.expect("You may not send inputs")
			alice.say(`@ask execute "Build it" command="make"`)
			card := bob.expect("Build it")
			for _, p := range []*person{bob, dora} {
				p.press(card, "Allow")
				p.expect("not open to you any more")
			}
			eve.press(card, "Allow")
			boss.press(boss.expect("Build it"), "Allow")
			alice.expect("permission: allow")
			bob.expect("Carol")
			dora.say(`@ask execute "Ship it" command="make ship"`)
			dora.expect("The agent asks something that you may not answer")
			boss.press(boss.expect("Ship it"), "Allow")
			dora.expect("permission: allow")
			if n := strings.Count(w.prompts(), `"session/prompt"`); n != 2 {
				t.Errorf("two inputs made %d prompts", n)
			}
			e, ok, err := b.r.Log().Last(t.Context(), event.Query{Types: []event.Type{event.InteractionAnswered}})
			var answer interaction.Answer
			if err == nil && ok {
				err = e.Decode(&answer)
			}
			if err != nil || !strings.HasPrefix(answer.By, "Carol ("+s.Name+":") {
				t.Errorf("the record names %q, %v", answer.By, err)
			}

			// A card in a follower's chat answers a question of a turn at the computer.
			boss.say("/follow on")
			boss.expect("You get a message when a turn")
			res := w.runElsewhere(`@ask execute "Test it" command="make test"`)
			boss.press(boss.expect("In a turn at the computer (chat)"), "Allow")
			if got := <-res; got.Permissions.Allowed != 1 {
				t.Errorf("the turn at the computer ended as %+v", got)
			}
			stop()
		})
	}
}
