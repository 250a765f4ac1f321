package service_test

import (
	"strings"
	"testing"
	"time"

	"github.com/perlica/perlica/service"
	"github.com/perlica/perlica/service/local"
)

// TestStrangersGetNoAnswer checks that a stranger that guesses codes gets one reply.
func TestStrangersGetNoAnswer(t *testing.T) {
	w := newWorld(t)
	// The clock stands still, so a slow machine cannot separate the guesses.
	now := time.Now()
	s := w.serve(local.DefaultLimits(), func(o *service.Options) { o.Now = func() time.Time { return now } })
	mallory, alice := w.phone("mallory"), w.phone("alice")
	code, err := service.OpenPairing(t.Context(), s.r.Log(), service.DefaultRights(), "test", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	wrong := "000000"
	if code == wrong {
		wrong = "000001"
	}
	mallory.say("hello")
	mallory.say(wrong)
	mallory.say(code) // too soon after a wrong guess
	mallory.say("/help")
	if err := mallory.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	alice.say(code[:3] + " " + code[3:]) // in the shown form
	alice.expect("You are paired")
	bob := w.phone("bob")
	bob.say(code) // a code counts once
	if err := bob.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	alice.say("hi")
	alice.expect("You said: hi")
	contacts, err := s.Records().Contacts(t.Context())
	if err != nil || len(contacts) != 1 || contacts[0].ID != alice.Contact {
		t.Errorf("contacts: %+v, %v", contacts, err)
	}
	mallory.expect("That is not the code.")
	for p, want := range map[*person]int{mallory: 1, bob: 0} {
		if n := p.count(""); n != want {
			t.Errorf("%s got %d messages", p.Name, n)
		}
	}
	if err := s.Records().Unpair(t.Context(), s.r.Log(), contacts[0], "test"); err != nil {
		t.Fatal(err)
	}
	alice.say("still there?")
	if err := alice.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(w.prompts(), "still there"); n != 0 {
		t.Error("somebody who is not paired any more was served")
	}
}

// TestStart checks that an empty message gets a short reply, and so does the start button of a bot.
// With a code, the start button pairs.
func TestStart(t *testing.T) {
	w := newWorld(t)
	s := w.serve(local.DefaultLimits())
	alice := w.phone("alice")
	code, err := service.OpenPairing(t.Context(), s.r.Log(), service.DefaultRights(), "test", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	alice.say("/start " + code)
	alice.expect("You are paired")
	alice.say("/start")
	alice.expect("You are paired")
	alice.say("/start " + code)
	alice.expect("You are paired")
	if w.prompts() != "" {
		t.Error("the agent was asked")
	}
}
