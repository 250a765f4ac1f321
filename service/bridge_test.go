package service_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/perlica/perlica/service"
	"github.com/perlica/perlica/service/access"
	"github.com/perlica/perlica/service/local"
)

// TestAMessageIsAnsweredInOrder checks that each message is acknowledged once, called once, and
// answered in order.
func TestAMessageIsAnsweredInOrder(t *testing.T) {
	w := newWorld(t)
	s := w.serve(local.DefaultLimits())
	alice := w.phone("alice")
	w.pair(s, alice)
	for i := range 3 {
		id := alice.say(fmt.Sprintf("number %d", i))
		alice.Say(local.Message{ID: id, Text: "the same again"}) // as if the platform delivered it again
	}
	for i := range 3 {
		if a := alice.expect(fmt.Sprintf("You said: number %d", i)); !strings.HasPrefix(a.ReplyTo, alice.Contact+"/") {
			t.Errorf("it answers %q", a.ReplyTo)
		}
	}
	if n := alice.count("ACK"); n != 3 {
		t.Errorf("%d acknowledgements", n)
	}
	if n := strings.Count(w.prompts(), "number"); n != 3 {
		t.Errorf("%d prompts", n)
	}
	if err := s.stop(); err != nil {
		t.Fatal(err)
	}
	// The next bridge still knows the received messages, so it acknowledges none of them again. It also continues the
	// session.
	w.serve(local.DefaultLimits())
	alice.say("@show history")
	if a := alice.expect("number 2"); !strings.Contains(a.Text, "number 0") {
		t.Errorf("the session was not continued: %s", a.Text)
	}
	if n := alice.count("ACK"); n != 4 {
		t.Errorf("%d acknowledgements", n)
	}
}

// TestAQuestionIsAnsweredFromThePhone checks that an answer continues the asking run. Other
// messages are acknowledged at once in the meantime.
func TestAQuestionIsAnsweredFromThePhone(t *testing.T) {
	w := newWorld(t)
	s := w.serve(local.DefaultLimits())
	alice := w.phone("alice")
	w.pair(s, alice)
	alice.say(`@ask execute "Run the tests" command="go test ./..."`)
	card := alice.expect("Run the tests")
	if !strings.Contains(card.Text, "go test ./...") {
		t.Errorf("the card does not show what is asked: %s", card.Text)
	}
	alice.say("and then this")
	// The text is acknowledged, but it does not answer the question, so the turn still waits.
	alice.expect("ACK")
	held := alice.expect("this does not answer it")
	alice.say("1")
	alice.expect("only just before your message")
	w.reads()
	alice.say("1")
	alice.expect("answered at")
	alice.expect("permission: allow")
	alice.confirm(held)
	alice.expect("You said: and then this")
	if n := strings.Count(w.prompts(), `"text":"1"`); n != 0 {
		t.Error("the answer was sent as an input")
	}
}

// TestEveryWayToAnswer checks a reply to the card, the question's id, and a button. The card still
// shows the allowed command and the answering contact.
func TestEveryWayToAnswer(t *testing.T) {
	limits := local.DefaultLimits()
	limits.Buttons = true
	w := newWorld(t)
	s := w.serve(limits)
	alice := w.phone("alice")
	w.pair(s, alice)
	for name, answer := range map[string]func(card local.Arrived) local.Message{
		"reply":  func(c local.Arrived) local.Message { return local.Message{ReplyTo: c.Key, Text: "1"} },
		"button": func(c local.Arrived) local.Message { return local.Message{Button: c.Buttons[0].Data, Text: "x"} },
		"id": func(c local.Arrived) local.Message {
			_, id, _ := strings.Cut(c.Text, "with `#")
			return local.Message{Text: "#" + id[:8] + " 1"}
		},
	} {
		alice.say(`@ask execute "Do ` + name + `" command="make ` + name + `"`)
		card := alice.expect("Do " + name)
		alice.Say(answer(card))
		if edit := alice.expect("make " + name); edit.Edits != card.Key ||
			!strings.Contains(edit.Text, alice.Name+" (local:") {
			t.Errorf("the card does not say who allowed what: %q", edit)
		}
		alice.expect("permission: allow")
		alice.Say(answer(card)) // a second answer to the same question
		alice.expect("not open to you any more")
	}
	if n := strings.Count(w.prompts(), "session/prompt"); n != 3 {
		t.Errorf("%d prompts", n)
	}
}

// refusals lists texts of people that must not count as a yes.
var refusals = []string{
	"don't allow", "do not allow", "not ok", "no, ok wait", "no", "No.", "nope", "never", "stop", "wait", "hold on",
	"not now", "not yet",
	"don't", "please don't", "cancel", "abort", "deny", "reject", "refuse", "I said no", "why?", "what does it do?", "ok?",
	"yes?",
	"allow?", "is that ok", "ok", "okay", "yes", "y", "sure", "go", "allow", "approve", "allow it", "yes but not now",
	"1?", "2?", "1 or 2",
	"not 1", "1, no 2", "option 1", "no. 1", "1.", "#1", "# 1", "-1", "1 maybe", "maybe 1", "never 1", "allow once?",
	"don't allow once",
	"Allow once please", "ALLOW ONCE", "allow_once", "10", "11", "0", "99",
	"不", "不要", "不行", "不可以", "先别", "等等", "等一下", "不允许", "别执行", "不同意", "拒绝", "算了", "不是1", "可以吗", "好吗", "好的", "行", "可以",
	"允许", "同意", "一", "选1", "1吗", "先别1", "👍", "👎", "",
}

// TestRightsAreKept checks that a contact without admin cannot answer another contact's question.
func TestRightsAreKept(t *testing.T) {
	w := newWorld(t)
	s := w.serve(local.DefaultLimits())
	alice, bob, carol, dave := w.phone("alice"), w.phone("bob"), w.phone("carol"), w.phone("dave")
	w.pair(s, alice)
	w.pair(s, bob)
	w.pair(s, carol, access.Approve, access.Admin)
	w.pair(s, dave, access.Approve)
	alice.say(`@ask execute "Alice's own" command="make"`)
	card := alice.expect("Alice's own")
	_, id, _ := strings.Cut(card.Text, "with `#")
	bob.say("/allow " + id[:8])
	bob.expect("may not do that")
	bob.say("/session new x")
	bob.expect("may not do that")
	dave.say("hello")
	dave.expect("may not send inputs")
	carol.expect("Alice's own")
	carol.say("Reject")
	carol.expect("answered at")
	a := alice.expect("answered at")
	if !strings.Contains(a.Text, "CAROL (local:"+carol.Contact+")") {
		t.Errorf("it does not say who: %s", a.Text)
	}
	alice.expect("permission: reject")
}

// TestUnknownIsSaid checks that a call with an unknown outcome is not repeated.
func TestUnknownIsSaid(t *testing.T) {
	w := newWorld(t)
	s := w.serve(local.DefaultLimits())
	alice := w.phone("alice")
	w.pair(s, alice)
	alice.say("@say half an answer\n@kill")
	if a := alice.expect("is unknown"); !strings.Contains(a.Text, "half an answer") {
		t.Errorf("what had come is not said: %s", a.Text)
	}
	alice.say("go on")
	alice.expect("You said: go on")
	if n := strings.Count(w.prompts(), "half an answer"); n != 1 {
		t.Errorf("%d prompts", n)
	}
}

// TestTheOldIsReported checks that an old message is reported and not answered.
func TestTheOldIsReported(t *testing.T) {
	w := newWorld(t)
	s := w.serve(local.DefaultLimits())
	alice := w.phone("alice")
	w.pair(s, alice)
	alice.Say(local.Message{Text: "yesterday", Sent: time.Now().Add(-25 * time.Hour)})
	alice.expect("get no answer")
	if w.prompts() != "" {
		t.Error("it was sent")
	}
}

// TestLongRepliesAreCut checks that a long reply is cut into numbered parts.
func TestLongRepliesAreCut(t *testing.T) {
	limits := local.DefaultLimits()
	limits.Text, limits.Files = 400, true
	w := newWorld(t)
	s := w.serve(limits)
	alice := w.phone("alice")
	w.pair(s, alice)
	alice.say("@stream 100 20")
	for _, part := range []string{"(1/", "(2/", "(3/"} {
		if a := alice.expect(part); len(a.Text) > 400 {
			t.Errorf("%d characters", len(a.Text))
		}
	}
	if a := alice.expect("as a file"); len(a.Content) != 2000 {
		t.Errorf("a file of %d bytes", len(a.Content))
	}
}

// TestOneBridgeAProject checks that a second bridge gets the identity of the first one.
func TestOneBridgeAProject(t *testing.T) {
	w := newWorld(t)
	s := w.serve(local.DefaultLimits())
	var held *service.HeldError
	if _, err := service.Open(t.Context(), w.options(s.r)); !errors.As(err, &held) || held.PID != os.Getpid() {
		t.Errorf("%v", err)
	}
}

// TestTheBridgeStops checks that a turn that runs longer than the grace is cancelled, and that its contact is told. The
// next bridge answers the waiting messages.
func TestTheBridgeStops(t *testing.T) {
	w := newWorld(t)
	s := w.serve(local.DefaultLimits(), func(o *service.Options) { o.Settings.Grace = 50 * time.Millisecond })
	alice := w.phone("alice")
	w.pair(s, alice)
	alice.say("@say on my way\n@sleep 1m")
	alice.say("later")
	alice.expect("ACK")
	alice.expect("ACK")
	w.eventually(func() bool { return strings.Contains(w.prompts(), "@sleep") })
	begin := time.Now()
	if err := s.stop(); err != nil {
		t.Fatal(err)
	}
	const stopped = "The turn was stopped: the bridge was told to stop"
	// The stop cancels the turn, and its contact is told. If the stop took longer, the next bridge may tell the
	// contact.
	if took := time.Since(begin); took < 5*time.Second {
		alice.expect(stopped)
	}
	if strings.Contains(w.prompts(), "later") {
		t.Error("a turn began while the bridge was stopping")
	}
	w.serve(local.DefaultLimits())
	alice.expect("You said: later")
	if n := alice.count(stopped); n != 1 {
		t.Errorf("%d times it was said that the turn was stopped", n)
	}
}

// TestTheBridgeStopsAtABeginning checks a turn that begins while the bridge stops. It is cancelled
// like a running turn or does not begin, and the bridge does not wait for its end.
func TestTheBridgeStopsAtABeginning(t *testing.T) {
	w := newWorld(t)
	alice := w.phone("alice")
	serve := func() *serving {
		return w.serve(local.DefaultLimits(), func(o *service.Options) { o.Settings.Grace = time.Nanosecond })
	}
	s := serve()
	w.pair(s, alice)
	rand := seeded(t, 1)
	for range 20 {
		alice.say("@sleep 1m")
		alice.expect("ACK")
		pause(time.Duration(rand.IntN(8000)) * time.Microsecond)
		begin := time.Now()
		if err := s.stop(); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begin); took > 15*time.Second {
			t.Fatal("it was waited for:", took)
		}
		s = serve()
	}
}

// TestCommandsFromAPhone checks that commands do not wait for the turn unless they change its
// session.
func TestCommandsFromAPhone(t *testing.T) {
	w := newWorld(t)
	s := w.serve(local.DefaultLimits())
	alice := w.phone("alice")
	w.pair(s, alice)
	alice.say("@sleep 1m")
	alice.expect("ACK")
	alice.say("/usage")
	alice.expect("turn")
	alice.say("/cancl")
	alice.expect("did you mean /cancel?")
	alice.say("/cancel")
	alice.expect("asked to stop")
	// The reply is the same whether the stop comes before or after the sending of the prompt.
	alice.expect("The turn was stopped by ALICE (local:" + alice.Contact + ").")
	alice.say("/clear")
	alice.expect("another session")
	alice.say("@show history\nEND")
	if a := alice.expect("You said: END"); strings.Contains(a.Text, "sleep") {
		t.Errorf("the new session knows the old one: %s", a.Text)
	}
}

// TestAHundredContacts checks that all messages are acknowledged while only a few agents may run.
func TestAHundredContacts(t *testing.T) {
	w := newWorld(t)
	s := w.serve(local.DefaultLimits())
	var people []*person
	for i := range 100 {
		p := w.phone(fmt.Sprintf("c%d", i))
		w.pair(s, p)
		people = append(people, p)
	}
	first, rest := people[:4], people[4:] // one for each agent that may live
	for _, p := range first {
		p.say("@sleep 1h")
	}
	for late := time.Now().Add(2 * time.Minute); strings.Count(w.prompts(),
		"@sleep") < len(first); pause(5 * time.Millisecond) {
		if time.Now().After(late) {
			t.Fatal("the first are not being answered")
		}
	}
	begin := time.Now()
	for _, p := range rest {
		p.say("hello")
	}
	for _, p := range people {
		p.expect("ACK")
	}
	t.Logf("acknowledged after %s", time.Since(begin))
	if strings.Contains(w.prompts(), "hello") {
		t.Error("there are more agents than there may be")
	}
	for _, p := range first {
		p.say("/cancel")
	}
	for _, p := range rest {
		p.expect("You said: hello")
	}
}
