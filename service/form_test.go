package service_test

import (
	"strings"
	"testing"

	"github.com/perlica/perlica/service/local"
)

// TestAFormIsFilledInFromThePhone checks that each field of a form is a question. A text follows
// the number of its option and names its question.
func TestAFormIsFilledInFromThePhone(t *testing.T) {
	w := newWorld(t)
	s := w.serve(local.DefaultLimits())
	alice := w.phone("alice")
	w.pair(s, alice)
	alice.say(`@elicit Release schema={"properties":{"branch":{"type":"string","title":"Branch","minLength":2},"kind":{"type":"string","title":"Kind","enum":["minor","major"]}},"required":["branch"]}`)
	card := alice.expect("Branch")
	if !strings.Contains(card.Text, "Write your own text after the number 1.") {
		t.Errorf("the card does not say how: %s", card.Text)
	}
	_, id, _ := strings.Cut(card.Text, "with `#")
	for _, say := range []local.Message{{Text: "1 my branch"}, {Text: "#" + id[:8] + " 1"},
		{Text: "1", ReplyTo: card.Key}} {
		alice.Say(say)
		alice.expect("Nothing was answered yet")
	}
	alice.say("#" + id[:8] + " 1 x")
	alice.expect("it must have at least 2 characters")
	alice.say("#" + id[:8] + " 1 my branch, 1")
	card = alice.expect("Kind")
	alice.Say(local.Message{ReplyTo: card.Key, Text: "2"})
	card = alice.expect("send these values")
	if !strings.Contains(card.Text, "Branch: my branch, 1") {
		t.Errorf("the card does not show what is sent: %s", card.Text)
	}
	alice.Say(local.Message{ReplyTo: card.Key, Text: "1"})
	alice.expect(`{"action":"accept","content":{"branch":"my branch, 1","kind":"major"}}`)
}

// TestAnAddressOnThePhone checks that an address is shown with its host. A person accepts or
// declines it.
func TestAnAddressOnThePhone(t *testing.T) {
	w := newWorld(t)
	s := w.serve(local.DefaultLimits())
	alice := w.phone("alice")
	w.pair(s, alice)
	for number, action := range map[string]string{"1": "accept", "2": "decline"} {
		alice.say(`@elicit "Sign in" url=https://me@sign.in.example/a?b=c`)
		card := alice.expect("Sign in")
		if !strings.Contains(card.Text, "https://me@sign.in.example/a?b=c`") ||
			!strings.Contains(card.Text, "host: sign.in.example") {
			t.Errorf("the card does not show the address: %s", card.Text)
		}
		alice.answers(w, local.Message{Text: number}, `{"action":"`+action+`"}`)
	}
}
