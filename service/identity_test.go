package service_test

import (
	"strings"
	"testing"

	"github.com/perlica/perlica/service/access"
	"github.com/perlica/perlica/service/local"
)

// TestNameAloneIsNoContact checks that a name alone identifies no contact, and a token does. It
// also checks a second connection with the token. This connection gets only the messages sent after
// it was opened.
func TestNameAloneIsNoContact(t *testing.T) {
	w := newWorld(t)
	s := w.serve(local.DefaultLimits())
	alice := w.phone("alice")
	w.pair(s, alice)
	alice.asks("May I", "make")
	alice.hears("/help", "list these commands") // after this, the bridge knows that the phone has the card
	thief := newPerson(t, w.socket(), "alice")
	thief.Token = ""
	w.run(thief)
	for _, text := range []string{"1", "/allow", "Reject", "hello"} {
		thief.say(text)
	}
	if err := thief.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.unanswered(t)
	if n := thief.count(""); n > 0 {
		t.Errorf("a stranger got %d messages", n)
	}
	list, err := s.Records().Contacts(t.Context())
	if err != nil || len(list) != 1 || list[0].ID != alice.Contact {
		t.Errorf("contacts: %+v, %v", list, err)
	}
	second := w.phone("alice")
	second.say("Reject")
	second.expect("permission: reject")
}

// TestATokenComesBack checks that a phone with a token keeps its identity when either side
// restarts.
func TestATokenComesBack(t *testing.T) {
	w := newWorld(t)
	s := w.serve(local.DefaultLimits())
	kept := make(chan string, 1)
	first := newPerson(t, w.socket(), "alice")
	first.Token, first.Keep = "", func(token string) { kept <- token }
	leave := w.run(first)
	w.pair(s, first)
	leave()
	again := newPerson(t, w.socket(), "alice")
	again.Token = <-kept
	w.run(again)
	again.say("one")
	again.expect("You said: one")
	if err := s.stop(); err != nil {
		t.Fatal(err)
	}
	w.serve(local.DefaultLimits())
	again.say("two")
	again.expect("You said: two")
}

// TestNamesAreEscaped checks that a person's name is shown in one line without Markdown.
func TestNamesAreEscaped(t *testing.T) {
	w := newWorld(t)
	s := w.serve(local.DefaultLimits())
	mallory := newPerson(t, w.socket(), "mallory")
	mallory.Phone.Name = "Ada\n\n1. Allow once \u202e\u200b**x**" + strings.Repeat("y", 100)
	w.run(mallory)
	w.pair(s, mallory)
	list, err := s.Records().Contacts(t.Context())
	if err != nil || len(list) != 1 {
		t.Fatal(list, err)
	}
	if name := list[0].Name; strings.ContainsAny(name, "\n\u202e\u200b") || len(name) > 60 ||
		strings.ContainsAny(list[0].ID, "\n \u202e*") {
		t.Errorf("it is called %q", list[0].Label())
	}
	mallory.asks("May I", "make")
	mallory.say("Reject")
	if a := mallory.expect("answered at"); strings.Contains(a.Text, "\n1. Allow") || !strings.Contains(a.Text, "**x**") {
		t.Errorf("it says %q", a.Text)
	}
}

// TestClonedLogPairsNoContact checks that a contact on the log has rights only with a voucher of this user. The voucher
// is valid only for the log at the same path.
func TestClonedLogPairsNoContact(t *testing.T) {
	w := newWorld(t)
	s := w.serve(local.DefaultLimits())
	alice := w.phone("alice")
	w.pair(s, alice, access.Ask, access.Approve, access.Admin)
	if err := s.stop(); err != nil {
		t.Fatal(err)
	}
	for name, own := range map[string]bool{"another user's": false, "the same user's, elsewhere": true} {
		t.Run(name, func(t *testing.T) {
			clone := newWorld(t)
			copyAll(t, w, clone, own)
			s := clone.serve(local.DefaultLimits())
			alice := clone.phone("alice")
			alice.say("hello")
			if err := alice.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
			if list, err := s.Records().Contacts(t.Context()); err != nil || len(list) > 0 {
				t.Errorf("contacts: %+v, %v", list, err)
			}
			list, err := s.Records().Unconfirmed(t.Context())
			if err != nil || len(list) != 1 || list[0].ID != alice.Contact {
				t.Fatalf("unconfirmed: %+v, %v", list, err)
			}
			if n := alice.count(""); n > 0 || clone.prompts() != "" {
				t.Errorf("%d messages", n)
			}
			if err := s.Records().Confirm(t.Context(), list[0]); err != nil {
				t.Fatal(err)
			}
			alice.say("and now?")
			alice.expect("You said: and now?")
			if err := s.Records().Unpair(t.Context(), s.r.Log(), list[0], "test"); err != nil {
				t.Fatal(err)
			}
			if list, err := s.Records().Contacts(t.Context()); err != nil || len(list) > 0 {
				t.Errorf("contacts: %+v, %v", list, err)
			}
		})
	}
}
