package service_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/kernel/queue"
	"github.com/perlica/perlica/service"
	"github.com/perlica/perlica/service/access"
	"github.com/perlica/perlica/service/channel"
	"github.com/perlica/perlica/service/local"
)

const mayI = `@ask execute "May I" command="make"`

// queueOf returns the types of the events about inputs that wait in sessions, in order.
func (s *serving) queueOf(t *testing.T) (types []event.Type) {
	t.Helper()
	for e, err := range s.r.Log().Events(t.Context(), event.Query{Types: []event.Type{event.MessageQueued, event.MessageWithdrawn}}) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Session == "" || e.Input == "" {
			t.Errorf("%s is of the session %q and the input %q", e.Type, e.Session, e.Input)
		}
		types = append(types, e.Type)
	}
	return types
}

// asked counts the prompts that reached agents.
func (w *world) asked() int { return strings.Count(w.prompts(), `"session/prompt"`) }

// TestTypedAtACard checks a text typed at a card. It does not become a prompt when the question is
// answered or the turn is cancelled. It can be sent or taken back.
func TestTypedAtACard(t *testing.T) {
	w := newWorld(t)
	s := w.serve(local.DefaultLimits())
	alice := w.phone("alice")
	w.pair(s, alice)
	alice.say(mayI)
	alice.expect("with `#")
	alice.hears("stop!", "It is held")
	alice.hears("no", "It is held")
	alice.say("/cancel")
	alice.expect("The turn was stopped")
	alice.hears("hello", "You said: hello")
	if n := w.asked(); n != 2 {
		t.Errorf("the agent was asked %d times", n)
	}
	alice.hears("/queue", "1. stop! (held)\n2. no (held)\n")
	alice.hears("/send", "2 of your messages are held")
	alice.hears("/withdraw 1", "Taken back: it was not sent to the agent.")
	alice.hears("/send", "It goes to the agent.")
	alice.expect("You said: no")
	alice.hears("/send", "You have no waiting messages")
	alice.hears("/withdraw", "You have no waiting messages")
	if strings.Contains(w.prompts(), "stop!") {
		t.Error("what was taken back was sent")
	}
}

// TestTypedWithoutACard checks that a text is held, too, if the open question of its sender's run was sent only to
// others.
func TestTypedWithoutACard(t *testing.T) {
	w := newWorld(t)
	s := w.serve(local.DefaultLimits())
	alice := w.phone("alice")
	w.pair(s, alice, access.Ask)
	alice.say(mayI)
	alice.expect("something that you may not answer")
	alice.hears("stop!", "A question is open that you may not answer. It is held")
	alice.hears("/cancel", "The turn was stopped")
	alice.hears("hello", "You said: hello")
	if strings.Contains(w.prompts(), "stop!") {
		t.Error("it was sent")
	}
}

// TestHeldAcrossARestart checks that the next bridge does not send a held message on its own.
func TestHeldAcrossARestart(t *testing.T) {
	w := newWorld(t)
	s := w.serve(local.DefaultLimits(), func(o *service.Options) { o.Settings.Grace = time.Millisecond })
	alice := w.phone("alice")
	w.pair(s, alice)
	alice.say(mayI)
	alice.expect("with `#")
	stop := alice.hears("stop!", "It is held")
	alice.hears("no", "It is held")
	for range 2 {
		if err := s.stop(); err != nil {
			t.Fatal(err)
		}
		s = w.serve(local.DefaultLimits())
	}
	alice.hears("hello", "You said: hello")
	if strings.Contains(w.prompts(), "stop!") {
		t.Error("it was sent")
	}
	if live, err := s.Live(t.Context()); err != nil || live.Held != 2 || live.Queued != 0 {
		t.Errorf("%d are held, %d queued, %v", live.Held, live.Queued, err)
	}
	alice.confirm(stop)
	alice.expect("You said: stop!")
	if err := s.stop(); err != nil {
		t.Fatal(err)
	}
	w.serve(local.DefaultLimits())
	alice.hears("/queue", "1. no (held)\n")
	if n := strings.Count(w.prompts(), "stop!"); n != 1 {
		t.Errorf("it was sent %d times", n)
	}
}

// TestConfirmedAcrossARestart checks that the next bridge answers a released message that was not
// yet called.
func TestConfirmedAcrossARestart(t *testing.T) {
	w := newWorld(t)
	s := w.serve(local.DefaultLimits(), func(o *service.Options) { o.Settings.Grace = time.Millisecond })
	alice := w.phone("alice")
	w.pair(s, alice)
	alice.say(mayI)
	alice.expect("with `#")
	alice.confirm(alice.hears("later", "It is held"))
	alice.expect("It is number 1 in line")
	if err := s.stop(); err != nil {
		t.Fatal(err)
	}
	w.serve(local.DefaultLimits())
	alice.expect("You said: later")
}

// TestHeldOfAnUnpaired checks that the next bridge gives up the held message of an unpaired
// contact.
func TestHeldOfAnUnpaired(t *testing.T) {
	w := newWorld(t)
	s := w.serve(local.DefaultLimits(), func(o *service.Options) { o.Settings.Grace = time.Millisecond })
	alice := w.phone("alice")
	w.pair(s, alice)
	alice.say(mayI)
	alice.expect("with `#")
	alice.hears("stop!", "It is held")
	list, err := s.Records().Contacts(t.Context())
	if err != nil || s.Records().Unpair(t.Context(), s.r.Log(), list[0], "test") != nil {
		t.Fatal(err)
	}
	if err := s.stop(); err != nil {
		t.Fatal(err)
	}
	s = w.serve(local.DefaultLimits())
	bob := w.phone("bob")
	w.pair(s, bob) // after this, the bridge has handled the waiting messages
	if st, err := s.Records().Status(t.Context()); err != nil || st.Waiting != 0 {
		t.Errorf("%d messages wait, %v", st.Waiting, err)
	}
}

// TestPlaceInLine checks that a waiting message reports its position, is on record as waiting, and
// can be taken back.
func TestPlaceInLine(t *testing.T) {
	w := newWorld(t)
	s := w.serve(local.DefaultLimits())
	alice := w.phone("alice")
	w.pair(s, alice)
	if a := alice.hears("@sleep 1h", "ACK"); strings.Contains(a.Text, "in line") {
		t.Errorf("the first waits: %s", a.Text)
	}
	w.eventually(func() bool { return w.asked() == 1 })
	alice.hears("one", "ACK\n\nIt is number 1 in line. `/withdraw` takes it back.")
	alice.hears("two", "number 2 in line")
	alice.hears("three", "number 3 in line")
	alice.hears("/clear", "number 4 in line")
	alice.hears("/queue", "1. one\n2. two\n3. three\n4. /clear\n")
	alice.hears("/withdraw 9", "No message waits under that number")
	alice.hears("/send 1", "That message is not held")
	alice.hears("/withdraw", "Taken back") // /clear
	alice.hears("/withdraw 2", "Taken back")
	alice.Say(local.Message{Text: "/withdraw", ReplyTo: "no such"})
	alice.expect("is no longer waiting")
	one := alice.hears("/queue", "1. one\n2. three\n")
	if one.Text == "" || w.asked() != 1 {
		t.Errorf("the agent was asked %d times", w.asked())
	}
	alice.say("/cancel")
	alice.expect("You said: one")
	alice.expect("You said: three")
	if strings.Contains(w.prompts(), "two") {
		t.Error("what was taken back was sent")
	}
	got, want := s.queueOf(t), []event.Type{event.MessageQueued, event.MessageQueued, event.MessageQueued,
		event.MessageWithdrawn}
	if strings.Join(texts(got), " ") != strings.Join(texts(want), " ") {
		t.Errorf("on record is %q, want %q", got, want)
	}
}

func texts(types []event.Type) (list []string) {
	for _, typ := range types {
		list = append(list, string(typ))
	}
	return list
}

// eventually waits for a condition that no message reports.
func (w *world) eventually(is func() bool) {
	w.t.Helper()
	for late := time.Now().Add(time.Minute); !is(); pause(5 * time.Millisecond) {
		if time.Now().After(late) {
			w.t.Fatal("it never is so")
		}
	}
}

// TestWaitingForAnAgent checks that a message with an empty queue can still wait for an agent. It says so and can be
// taken back. The sender can also take back a message while its file is being fetched.
func TestWaitingForAnAgent(t *testing.T) {
	w := newWorld(t)
	asked := make(chan struct{})
	s := w.serve(local.DefaultLimits(), func(o *service.Options) {
		o.Settings.Agents = 1
		o.Channels[0] = remote{o.Channels[0].(*local.Channel), func(ctx context.Context, _ channel.File) (string, error) {
			close(asked)
			<-ctx.Done()
			return "", ctx.Err()
		}}
	})
	alice, bob := w.phone("alice"), w.phone("bob")
	w.pair(s, alice)
	w.pair(s, bob)
	alice.say("@sleep 1h")
	w.eventually(func() bool { return w.asked() == 1 })
	bob.hears("wait for me", "All agents are busy: it is number 1 in line for an agent.")
	if live, err := s.Live(t.Context()); err != nil || live.Queued != 1 || live.InLine != 1 {
		t.Errorf("%d wait, of %d, %v", live.Queued, live.InLine, err)
	}
	bob.hears("/withdraw", "Taken back")
	bob.deliver(local.Message{Text: "see the file", Files: []string{"/slow"}})
	<-asked
	bob.hears("/withdraw", "Taken back")
	bob.say("hello")
	alice.say("/cancel")
	bob.expect("You said: hello")
	if got := w.prompts(); strings.Contains(got, "wait for me") || strings.Contains(got, "see the file") {
		t.Error("what was taken back was sent")
	}
}

// TestButtonsOfWhatWaits checks the buttons below a reply about a waiting message. A pressed button
// disappears and the reply shows the action. Only the sender can press them.
func TestButtonsOfWhatWaits(t *testing.T) {
	limits := local.DefaultLimits()
	limits.Buttons = true
	w := newWorld(t)
	s := w.serve(limits)
	alice, bob := w.phone("alice"), w.phone("bob")
	w.pair(s, alice)
	w.pair(s, bob)
	press := func(p *person, a local.Arrived, label, answer string) local.Arrived {
		t.Helper()
		for _, b := range a.Buttons {
			if b.Label == label {
				p.Say(local.Message{Text: label, Button: b.Data, ReplyTo: a.Key})
				return p.expect(answer)
			}
		}
		t.Fatalf("there is no button %q: %+v", label, a)
		return a
	}
	alice.say(mayI)
	card := alice.expect("with `#")
	stop, no := alice.hears("stop!", "It is held"), alice.hears("no", "It is held")
	press(bob, stop, "Send it to the agent", "is no longer waiting")
	if a := press(alice, stop, "Take it back", "Taken back"); a.Edits != stop.Key || len(a.Buttons) > 0 {
		t.Errorf("it is said by %+v", a)
	}
	press(alice, stop, "Send it to the agent", "is no longer waiting")
	if a := press(alice, no, "Send it to the agent", "It is number 1 in line"); a.Edits != no.Key {
		t.Errorf("it is said by %+v", a)
	}
	alice.Say(local.Message{Button: card.Buttons[1].Data, ReplyTo: card.Key})
	alice.expect("You said: no")
	alice.say("@sleep 1h")
	w.eventually(func() bool { return strings.Contains(w.prompts(), "@sleep") })
	later := alice.hears("later", "number 1 in line")
	press(alice, later, "Take it back", "Taken back")
	alice.hears("/cancel", "The turn was stopped")
	if got := w.prompts(); strings.Contains(got, "stop!") || strings.Contains(got, "later") {
		t.Error("what was taken back was sent")
	}
}

// TestTakenBackElsewhere checks that the bridge does not send a message that another front end took from the session's
// queue.
func TestTakenBackElsewhere(t *testing.T) {
	w := newWorld(t)
	s := w.serve(local.DefaultLimits())
	alice := w.phone("alice")
	w.pair(s, alice)
	alice.say("@sleep 1h")
	w.eventually(func() bool { return w.asked() == 1 })
	alice.hears("later", "number 1 in line")
	e, ok, err := s.r.Log().Last(t.Context(), event.Query{Types: []event.Type{event.MessageQueued}})
	if err != nil || !ok {
		t.Fatal(err)
	}
	q := queue.Queue{Session: e.Session}
	if err := q.Read(t.Context(), &s.r.Log().Reader); err != nil || len(q.Inputs) != 1 || q.Inputs[0].Text != "later" {
		t.Fatalf("in the queue is %+v, %v", q.Inputs, err)
	}
	if err := queue.Withdraw(t.Context(), s.r.Log(), e.Session, e.Input,
		fact.MessageWithdrawn{By: "ada", Where: "chat"}); err != nil {
		t.Fatal(err)
	}
	alice.say("/cancel")
	alice.expect("This message was taken back by ada (chat): it was not sent to the agent.")
	if strings.Contains(w.prompts(), "later") {
		t.Error("it was sent")
	}
}

// TestWhatIsNotCalledLeavesTheQueue checks that an input that is not called leaves the queue.
// Otherwise another process would send it later.
func TestWhatIsNotCalledLeavesTheQueue(t *testing.T) {
	w := newWorld(t)
	s := w.serve(local.DefaultLimits(), func(o *service.Options) { o.Settings.Grace = time.Millisecond })
	alice := w.phone("alice")
	w.pair(s, alice)
	alice.say("@sleep 1h")
	w.eventually(func() bool { return w.asked() == 1 })
	alice.hears("later", "number 1 in line")
	list, err := s.Records().Contacts(t.Context())
	if err != nil || s.Records().Unpair(t.Context(), s.r.Log(), list[0], "test") != nil {
		t.Fatal(err)
	}
	if err := s.stop(); err != nil {
		t.Fatal(err)
	}
	s = w.serve(local.DefaultLimits())
	bob := w.phone("bob")
	w.pair(s, bob)
	w.eventually(func() bool { return len(s.queueOf(t)) == 2 })
	if strings.Contains(w.prompts(), "later") {
		t.Error("it was sent")
	}
}

// TestFreeTextApprovesNothing checks that free text never answers a question, alone or as a reply
// to the card.
func TestFreeTextApprovesNothing(t *testing.T) {
	if len(refusals) < 60 {
		t.Fatalf("only %d", len(refusals))
	}
	w := newWorld(t)
	s := w.serve(local.DefaultLimits())
	alice := w.phone("alice")
	w.pair(s, alice)
	alice.say(`@ask execute "Delete it all" command="make clean"`)
	card := alice.expect("Delete it all")
	_, id, _ := strings.Cut(card.Text, "with `#")
	for _, text := range refusals {
		alice.Say(local.Message{Text: text, ReplyTo: card.Key})
		alice.say(text)
		alice.say("#" + id[:8] + " " + text)
	}
	alice.say("the last one")
	alice.expect("ACK")
	if err := alice.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	open, err := s.r.PendingQuestions(t.Context())
	if err != nil || len(open) != 1 {
		t.Fatalf("%d questions are open, %v", len(open), err)
	}
	alice.say("/deny")
	alice.expect("permission: reject")
	// No text typed at the card has become a prompt.
	alice.say("and now?")
	alice.expect("You said: and now?")
	if n := strings.Count(w.prompts(), `"session/prompt"`); n != 2 {
		t.Errorf("the agent was asked %d times", n)
	}
}

// TestQueuedBehindACommand checks that a message after a session change waits in no session's
// queue. Otherwise the earlier session would keep it for ever.
func TestQueuedBehindACommand(t *testing.T) {
	w := newWorld(t)
	s := w.serve(local.DefaultLimits())
	alice := w.phone("alice")
	w.pair(s, alice)
	alice.say("@sleep 1h")
	w.eventually(func() bool { return w.asked() == 1 })
	alice.hears("/clear", "number 1 in line")
	alice.hears("then this", "number 2 in line")
	e, ok, err := s.r.Log().Last(t.Context(), event.Query{Types: []event.Type{event.MessageQueued}})
	if err != nil || !ok || e.Session != "" {
		t.Errorf("it waits in %q, %v", e.Session, err)
	}
	alice.say("/cancel")
	alice.expect("From here on, this chat is in another session")
	alice.expect("You said: then this")
}
