package service_test

import (
	"strings"
	"testing"

	"github.com/perlica/perlica/service/local"
)

const manyOptions = `@ask execute "Build it" command=make options=a:allow_once:Yes,b:allow_always:Always,c:reject_once:No,` +
	`d:reject_always:Never`

// TestReactions checks that a reaction answers only if it has the number of an option and lies on the card itself.
func TestReactions(t *testing.T) {
	limits := local.DefaultLimits()
	limits.Buttons = false
	w := newWorld(t)
	s := w.serve(limits)
	alice := w.phone("alice")
	w.pair(s, alice)
	alice.say("hello")
	reply := alice.expect("hello")
	alice.say(manyOptions)
	card := alice.expect("Answer with an option's number")
	for _, c := range []struct{ about, number, on, reply string }{
		{"another message", "1", reply.Key, "not open"},
		{"no message", "1", "", "not open"},
		{"no option", "7", card.Key, "not open"},
		{"no number", "👍", card.Key, "not open"},
		{"a yes for good", "4", card.Key, "always"},
	} {
		alice.deliver(local.Message{Text: c.number, Button: c.number, ReplyTo: c.on})
		if a := alice.expect(c.reply, "answered at"); strings.Contains(a.Text, "answered at") {
			t.Fatalf("a reaction to %s answers the question", c.about)
		}
	}
	alice.deliver(local.Message{Text: "1️⃣", Button: "1", ReplyTo: card.Key})
	alice.expect("answered at")
	if strings.Contains(w.prompts(), "1️⃣") {
		t.Error("a reaction reached the agent")
	}
}

// TestFewButtons checks that a platform with few buttons shows the options that a button can choose.
func TestFewButtons(t *testing.T) {
	limits := local.DefaultLimits()
	limits.Buttons, limits.MostButtons = true, 3
	w := newWorld(t)
	s := w.serve(limits)
	alice := w.phone("alice")
	w.pair(s, alice)
	alice.say(manyOptions)
	card := alice.expect("Press a button")
	var labels []string
	for _, b := range card.Buttons {
		labels = append(labels, b.Label)
	}
	if got := strings.Join(labels, ", "); got != "✓ once “Yes”, ✗ no “No”, ✗ never “Never”" {
		t.Errorf("the buttons are %s", got)
	}
	alice.deliver(local.Message{Text: "No", Button: card.Buttons[1].Data, ReplyTo: card.Key})
	alice.expect("answered at")
}
