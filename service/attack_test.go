package service_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/service"
	"github.com/perlica/perlica/service/access"
	"github.com/perlica/perlica/service/channel"
	"github.com/perlica/perlica/service/local"
)

// TestACodeThatComesAgainIsNoInput checks that a repeated message with the pairing code is not an input, also for the
// next bridge.
func TestACodeThatComesAgainIsNoInput(t *testing.T) {
	w := newWorld(t)
	s := w.serve(local.DefaultLimits())
	alice := w.phone("alice")
	code, err := service.OpenPairing(t.Context(), s.r.Log(), service.DefaultRights(), "test", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	id := alice.say(code)
	alice.expect("You are paired")
	alice.Say(local.Message{ID: id, Text: code})
	alice.say("one")
	alice.expect("You said: one")
	if err := s.stop(); err != nil {
		t.Fatal(err)
	}
	w.serve(local.DefaultLimits())
	alice.Say(local.Message{ID: id, Text: code})
	alice.say("two")
	alice.expect("You said: two")
	if n := alice.count("ACK"); n != 2 || strings.Contains(w.prompts(), code) {
		t.Errorf("%d acknowledgements, prompts: %s", n, w.prompts())
	}
}

// busy is a channel with a slow platform for cards. The test decides whether the platform is slow
// before or after it has the card, and whether the sending succeeds.
type busy struct {
	*local.Channel
	late  bool          // the platform has the card before it answers
	asked chan struct{} // a card is being sent
	word  chan error    // nil means that the card arrives
}

func (b *busy) Send(ctx context.Context, m channel.Outbound) (id string, err error) {
	// Only the question is slow. A message about its end is shorter or does not contain its title.
	if !strings.Contains(m.Text, "May I") || len(m.Text) < 60 {
		return b.Channel.Send(ctx, m)
	}
	if b.late {
		if id, err = b.Channel.Send(ctx, m); err != nil {
			return id, err
		}
	}
	b.asked <- struct{}{}
	if err := <-b.word; err != nil || b.late {
		return id, err
	}
	return b.Channel.Send(ctx, m)
}

// on waits until the channel c has a value or is closed.
func on(t *testing.T, c <-chan struct{}) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(2 * time.Minute):
		t.Fatal("that never happens")
	}
}

// TestACardOnItsWay checks a bare number that is sent around the arrival of a card. A number sent before the card does
// not answer it. A number sent after it counts if there was time to read the card, even if the platform confirms the
// card later. No number counts if the platform does not know whether the card arrived.
func TestACardOnItsWay(t *testing.T) {
	for _, way := range []struct {
		name  string
		late  bool
		fault error
		count bool
	}{
		{"said before it arrives", false, nil, false},
		{"said behind it", true, nil, true},
		{"said behind one that is not known to be there", true, errors.New("the connection was lost"), false},
	} {
		t.Run(way.name, func(t *testing.T) {
			w := newWorld(t)
			ch := &busy{late: way.late, asked: make(chan struct{}), word: make(chan error)}
			s := w.serve(local.DefaultLimits(), func(o *service.Options) {
				ch.Channel = o.Channels[0].(*local.Channel)
				o.Channels[0] = ch
			})
			alice := w.phone("alice")
			w.pair(s, alice)
			alice.say(`@ask execute "May I" command="make"`)
			on(t, ch.asked)
			// The number is sent just before or just after the card.
			alice.say("1")
			ch.word <- way.fault
			if way.fault != nil {
				on(t, ch.asked)
				ch.word <- nil
			}
			if way.count {
				// The number comes too soon after the card, so the sender may have meant another question.
				alice.expect("only just before your message")
				w.reads()
				alice.say("1")
				alice.expect("permission: allow")
				return
			}
			held := alice.expect("this does not answer it")
			if open, err := s.r.PendingQuestions(t.Context()); err != nil || len(open) != 1 {
				t.Fatalf("%d questions are open, %v", len(open), err)
			}
			alice.say("Reject")
			alice.expect("permission: reject")
			alice.confirm(held)
			alice.expect("You said: 1")
		})
	}
}

// TestANumberForSomethingElse checks that a number does not answer the open question if it is a reply to another
// message.
func TestANumberForSomethingElse(t *testing.T) {
	w := newWorld(t)
	s := w.serve(local.DefaultLimits())
	alice := w.phone("alice")
	w.pair(s, alice)
	alice.say(`@ask execute "The first" command="make"`)
	old := alice.expect("The first")
	alice.say("Reject")
	alice.expect("permission: reject")
	alice.say("which one, 1 or 2?")
	other := alice.expect("which one")
	alice.say(`@ask execute "May I" command="make"`)
	alice.expect("May I")
	alice.Say(local.Message{Text: "1", ReplyTo: other.Key})
	alice.expect("this does not answer it")
	alice.Say(local.Message{Text: "1", ReplyTo: old.Key})
	alice.expect("not open to you any more")
	alice.Say(local.Message{Text: "99", ReplyTo: old.Key})
	alice.expect("this does not answer it")
	if open, err := s.r.PendingQuestions(t.Context()); err != nil || len(open) != 1 {
		t.Fatalf("%d questions are open, %v", len(open), err)
	}
	alice.say("Reject")
	alice.expect("permission: reject")
}

// pairAgain unpairs a contact and pairs the same person with other rights.
func (w *world) pairAgain(s *serving, p *person, rights ...access.Right) {
	w.t.Helper()
	list, err := s.Records().Contacts(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	for _, c := range list {
		if c.ID == p.Contact {
			if err := s.Records().Unpair(w.t.Context(), s.r.Log(), c, "test"); err != nil {
				w.t.Fatal(err)
			}
		}
	}
	w.pair(s, p, rights...)
}

// TestRightsAreThoseOfTheMoment checks that the rights at the time of the answer count. A contact
// that has lost rights since the question may not answer it.
func TestRightsAreThoseOfTheMoment(t *testing.T) {
	w := newWorld(t)
	s := w.serve(local.DefaultLimits())
	alice, bob := w.phone("alice"), w.phone("bob")
	w.pair(s, alice)
	w.pair(s, bob, access.Approve, access.Admin)
	alice.say(`@ask execute "Alice's own" command="make"`)
	alice.expect("Alice's own")
	card := bob.expect("Alice's own")
	w.pairAgain(s, bob)
	bob.Say(local.Message{Text: "1", ReplyTo: card.Key})
	bob.expect("does not count")
	bob.answers(w, local.Message{Text: "1"}, "does not count")
	alice.say("Reject")
	alice.expect("permission: reject")
}

// TestPairedAgainBeginsAnew checks that a newly paired contact starts a new session, because a phone number may have a
// new owner.
func TestPairedAgainBeginsAnew(t *testing.T) {
	w := newWorld(t)
	s := w.serve(local.DefaultLimits())
	alice := w.phone("alice")
	w.pair(s, alice)
	alice.say("a secret")
	alice.expect("You said: a secret")
	w.pairAgain(s, alice)
	alice.say("@show history\nEND")
	if a := alice.expect("You said: END"); strings.Contains(a.Text, "secret") {
		t.Errorf("the new session knows the old one: %s", a.Text)
	}
	contacts, err := s.Records().Contacts(t.Context())
	if err != nil || len(contacts) != 1 || contacts[0].Session == "" {
		t.Errorf("contacts: %+v, %v", contacts, err)
	}
}

// forwarding is a channel on which a text that begins with "Fwd: " is a forwarded one.
type forwarding struct{ *local.Channel }

func (f forwarding) Poll(ctx context.Context, cursor string) ([]channel.Inbound, string, error) {
	list, next, err := f.Channel.Poll(ctx, cursor)
	for i := range list {
		list[i].Text, list[i].Quoted = strings.CutPrefix(list[i].Text, "Fwd: ")
	}
	return list, next, err
}

// TestAnothersWordsSayNothing checks that a forwarded message pairs no contact, answers no question
// and runs no command.
func TestAnothersWordsSayNothing(t *testing.T) {
	w := newWorld(t)
	s := w.serve(local.DefaultLimits(), func(o *service.Options) {
		o.Channels[0] = forwarding{o.Channels[0].(*local.Channel)}
	})
	alice, bob := w.phone("alice"), w.phone("bob")
	w.pair(s, alice)
	code, err := service.OpenPairing(t.Context(), s.r.Log(), service.DefaultRights(), "test", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	bob.say("Fwd: " + code)
	if err := bob.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if list, err := s.Records().Contacts(t.Context()); err != nil || len(list) != 1 {
		t.Errorf("contacts: %+v, %v", list, err)
	}
	alice.say(`@ask execute "May I" command="make"`)
	card := alice.expect("May I")
	var held []local.Arrived
	for _, m := range []local.Message{{Text: "Fwd: 1"}, {Text: "Fwd: 1", ReplyTo: card.Key}, {Text: "Fwd: /allow"}} {
		alice.Say(m)
		held = append(held, alice.expect("this does not answer it"))
	}
	alice.say("Reject")
	alice.expect("permission: reject")
	for _, a := range held {
		alice.confirm(a)
	}
	alice.expect("You said: 1")
	alice.expect("You said: 1")
	alice.expect("You said: /allow")
}

// TestAnEndlessAnswerIsAFile checks that a very long answer is sent as a file, with a limited
// number of messages and its end.
func TestAnEndlessAnswerIsAFile(t *testing.T) {
	limits := local.DefaultLimits()
	limits.Text, limits.Files = 100, true
	w := newWorld(t)
	s := w.serve(limits)
	alice := w.phone("alice")
	w.pair(s, alice)
	alice.say("@stream 1000 20")
	alice.expect("(1/")
	alice.expect("(19/")
	a := alice.expect("as a file")
	if len(a.Content) != 20_000 || !strings.Contains(a.Text, "beginning and its end") {
		t.Errorf("a file of %d bytes: %s", len(a.Content), a.Text)
	}
	alice.mu.Lock()
	last := alice.arrived[len(alice.arrived)-2].Text
	alice.mu.Unlock()
	var i, of int
	if _, err := fmt.Sscanf(last, "(%d/%d)", &i, &of); err != nil || i != of || of < 100 {
		t.Errorf("the last one: %s", last)
	}
	if n := alice.count(fmt.Sprintf("/%d)", of)); n != 20 {
		t.Errorf("%d messages", n)
	}
}

// TestAnAnswerThatIsNoText checks that embedded content comes as files, in order, with the extensions of its content. A
// link is only named in a row of the answer, and nothing opens it.
func TestAnAnswerThatIsNoText(t *testing.T) {
	limits := local.DefaultLimits()
	limits.Files = true
	w := newWorld(t)
	secret := w.path("secret")
	if err := os.WriteFile(secret, []byte("of this machine"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := w.serve(limits)
	alice := w.phone("alice")
	w.pair(s, alice)
	chunk := `@update {"sessionUpdate":"agent_message_chunk","content":`
	alice.say(chunk + `{"type":"resource_link","uri":"file://` + secret + `","name":"` + "`" + `secret"}}` + "\n" +
		chunk + `{"type":"image","mimeType":"image/gif","data":"iVBORw0KGgo=","uri":"file://` + secret + `"}}` + "\n" +
		chunk + `{"type":"resource","resource":{"uri":"file://` + secret +
		`","mimeType":"application/x-sh","text":"inside"}}}` + "\n" +
		chunk + `{"type":"resource","resource":{"uri":"file://` + secret + `"}}}`)
	if a := alice.expect("link 'secret"); a.File != "" || !strings.Contains(a.Text, "nothing in it can be read") {
		t.Errorf("%+v", a)
	}
	if a := alice.expect("image file://"); a.File != "answer-2.png" || string(a.Content) != "\x89PNG\r\n\x1a\n" {
		t.Errorf("%+v", a)
	}
	if a := alice.expect("application/x-sh"); a.File != "answer-3.bin" || string(a.Content) != "inside" {
		t.Errorf("%+v", a)
	}
	alice.say(chunk + `{"type":"audio","data":"cGl4ZWxz"}}`)
	if a := alice.expect("sound"); string(a.Content) != "pixels" {
		t.Errorf("%+v", a)
	}
	alice.mu.Lock()
	defer alice.mu.Unlock()
	for _, a := range alice.arrived {
		if strings.Contains(string(a.Content)+a.Text, "of this machine") {
			t.Errorf("what lies on this machine was sent: %+v", a)
		}
	}
}

// TestACodeCountsOnce checks that a code counts once, also if two channels receive it at the same
// moment.
func TestACodeCountsOnce(t *testing.T) {
	w := newWorld(t)
	s := w.serve(local.DefaultLimits())
	w.pair(s, w.phone("alice"))
	first, ok, err := s.r.Log().Last(t.Context(), event.Query{Types: []event.Type{event.ContactPaired}})
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	f := map[string]any{}
	if err := first.Decode(&f); err != nil {
		t.Fatal(err)
	}
	f["contact"], f["chat"], f["message"] = "bob", "bob", "bob/1"
	if _, err := s.r.Log().Append(t.Context(), event.NewFact(event.ContactPaired, "user", event.Refs{}, f)); err != nil {
		t.Fatal(err)
	}
	if list, err := s.Records().Contacts(t.Context()); err != nil || len(list) != 1 || list[0].ID != contactOf("alice") {
		t.Errorf("contacts: %+v, %v", list, err)
	}
}
