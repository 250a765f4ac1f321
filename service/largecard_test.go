package service_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/perlica/perlica/service/channel"
	"github.com/perlica/perlica/service/local"
)

// largeAsk asks for a command of this many words.
func largeAsk(words int) string {
	var t strings.Builder
	for i := range words {
		fmt.Fprintf(&t, "word-%d ", i)
	}
	return fmt.Sprintf(`@ask execute "May I" command="echo %sEND"`, t.String())
}

// TestALargeCard checks that a large card has at most eight messages, with the rest as a file
// before the options. If the platform does not accept files, all messages are sent.
func TestALargeCard(t *testing.T) {
	limits := local.DefaultLimits()
	limits.Text, limits.Files, limits.Buttons = 700, true, true
	w := newWorld(t)
	s := w.serve(limits)
	alice := w.phone("alice")
	w.pair(s, alice)
	alice.say(largeAsk(1000))
	alice.expect("ACK")
	var card []local.Arrived
	for len(card) == 0 || len(card[len(card)-1].Buttons) == 0 {
		card = append(card, alice.expect(""))
	}
	if len(card) != 8 || card[5].File == "" {
		t.Fatalf("%d messages, the sixth with the file %q", len(card), card[min(5, len(card)-1)].File)
	}
	whole := string(card[5].Content)
	for _, word := range []string{"May I", "word-0 ", "word-500", "word-999", "END", "1. ", "in line"} {
		if has := strings.Contains(whole, word); has == (word == "in line") {
			t.Errorf("%q is in the file: %t", word, has)
		}
	}
	if end := card[6].Text + card[7].Text; !strings.Contains(end, "word-999") || !strings.Contains(end, "1. ") ||
		!strings.Contains(end, "Press a button") {
		t.Errorf("the end of the card is %s", end)
	}
	alice.allow(card[7])
	alice.expect("answered at")

	limits.Files = false
	w = newWorld(t)
	s = w.serve(limits)
	alice = w.phone("alice")
	w.pair(s, alice)
	alice.say(largeAsk(1000))
	alice.expect("word-500")
	alice.allow(alice.expect("Press a button"))
	alice.expect("answered at")
}

// TestALargeCardWithoutItsFile checks a card if its file cannot be sent. The card has no button for a yes, and the
// contact learns where the question waits.
func TestALargeCardWithoutItsFile(t *testing.T) {
	limits := local.DefaultLimits()
	limits.Text, limits.Files, limits.Buttons = 700, true, true
	_, alice := newWorld(t).hostile(limits, func(m channel.Outbound) error {
		if m.File != nil {
			return errors.New("the server answers 500")
		}
		return nil
	})
	alice.say(largeAsk(1000))
	card := alice.expect("Press a button")
	alice.expect("could not be sent here")
	alice.deliver(local.Message{Text: card.Buttons[0].Label, Button: card.Buttons[0].Data, ReplyTo: card.Key})
	alice.expect("did not arrive here as a whole")
}
