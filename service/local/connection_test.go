package local

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/perlica/perlica/service/channel"
)

// TestAfter checks the order of a message and a card. A message counts as later in two cases: the
// sending phone confirmed the card before, or the phone connected after another phone of the contact
// confirmed the card.
func TestAfter(t *testing.T) {
	c, path := listen(t, DefaultLimits())
	id := ContactID("alice", aliceToken)
	early := alice(t, path)
	early.says(line{Message: &Message{ID: "before"}})
	polled(t, c, "")
	r := alice(t, path)
	r.says(line{Message: &Message{ID: "hello"}})
	for n := 0; n < 2; { // the second phone is connected
		list, _ := polled(t, c, "")
		n = len(list)
	}
	done := send(t.Context(), c, channel.Outbound{Chat: id, Key: "card"})
	if l, ok := r.hears(); !ok || l.Send == nil {
		t.Fatalf("it heard %+v", l)
	}
	r.says(line{Got: "card"})
	if s := <-done; s.err != nil {
		t.Fatal(s.err)
	}
	r.says(line{Message: &Message{ID: "behind"}})
	early.says(line{Message: &Message{ID: "late"}}) // this phone never saw the card
	third := alice(t, path)
	third.says(line{Message: &Message{ID: "anew"}})
	var list []channel.Inbound
	for len(list) < 5 {
		list, _ = polled(t, c, "")
	}
	want := map[string]bool{"before": false, "hello": false, "behind": true, "late": false, "anew": true}
	for _, m := range list {
		name := strings.TrimPrefix(m.ID, id+"/")
		if got := c.After(m, "card"); got != want[name] {
			t.Errorf("%s is behind the card: %v", name, got)
		}
		if c.After(m, "another") {
			t.Errorf("%s is behind what was never sent", name)
		}
	}
}

// TestTheOtherPhoneGoesOn checks that the contact's other phone gets the messages after the newest
// one has left.
func TestTheOtherPhoneGoesOn(t *testing.T) {
	c, path := listen(t, DefaultLimits())
	id := ContactID("alice", aliceToken)
	first := alice(t, path)
	first.says(line{Message: &Message{ID: "1"}})
	polled(t, c, "")
	second := alice(t, path)
	done := make(chan sent, 1)
	second.says(line{Message: &Message{ID: "2"}})
	for n := 0; n < 2; {
		list, _ := polled(t, c, "")
		n = len(list)
	}
	go func() {
		id, err := c.Send(t.Context(), channel.Outbound{Chat: id, Text: "hello", Key: "k"})
		done <- sent{id, err}
	}()
	if l, ok := second.hears(); !ok || l.Send == nil {
		t.Fatalf("the second heard %+v", l)
	}
	_ = second.Close()
	if l, ok := first.hears(); !ok || l.Send == nil || l.Send.Key != "k" {
		t.Fatalf("the first heard %+v", l)
	}
	first.says(line{Got: "k"})
	if s := <-done; s.err != nil {
		t.Error(s.err)
	}
}

// TestConnectionsThatAreEnded checks that a connection with a wrong protocol is closed.
func TestConnectionsThatAreEnded(t *testing.T) {
	const hi = `{"hello":{"name":"a","token":"` + aliceToken + `"}}` + "\n"
	for name, words := range map[string]string{
		"no JSON":            "hello\n",
		"no hello":           `{"message":{"id":"1","text":"x"}}` + "\n",
		"two of them":        hi + hi,
		"a line that is too": hi + strings.Repeat("x", maxLine+1),
	} {
		t.Run(name, func(t *testing.T) {
			c, path := listen(t, DefaultLimits())
			r := dial(t, path)
			_, _ = r.Write([]byte(words)) // the connection may be closed before all is written
			if l, ok := r.hears(); ok {
				t.Errorf("it heard %+v", l)
			}
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			if list, _, _ := c.Poll(ctx, ""); len(list) > 0 {
				t.Errorf("a message was taken: %+v", list)
			}
		})
	}
}

// TestListen checks that only the user can enter the folder, one process listens, a killed
// process's socket is replaced, and Close may be called again.
func TestListen(t *testing.T) {
	c, path := listen(t, DefaultLimits())
	if info, err := os.Stat(filepath.Dir(path)); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the folder is %v, %v", info, err)
	}
	if _, err := Listen(path, DefaultLimits()); err == nil || !strings.Contains(err.Error(), "another process listens") {
		t.Errorf("a second one: %v", err)
	}
	for range 2 {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	again, err := Listen(path, DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Close(); err != nil {
		t.Error(err)
	}
	if c.Name() != Name || c.Limits() != DefaultLimits() {
		t.Errorf("%s, %+v", c.Name(), c.Limits())
	}
}

// TestTwoReadings checks that an ambiguous line ends its connection and delivers no message.
func TestTwoReadings(t *testing.T) {
	c, path := listen(t, DefaultLimits())
	for name, text := range map[string]string{
		"a member twice":           `{"message":{"id":"1","text":"ls","text":"rm"}}`,
		"another case":             `{"message":{"id":"1","text":"ls","TEXT":"rm"}}`,
		"half a surrogate pair":    `{"message":{"id":"1","text":"a\ud800"}}`,
		"bytes that are not UTF-8": "{\"message\":{\"id\":\"1\",\"text\":\"a\xff\"}}",
		"two values":               `{"message":{"id":"1","text":"ls"}} {}`,
	} {
		r := alice(t, path)
		if _, err := r.Write([]byte(text + "\n")); err != nil {
			t.Fatal(err)
		}
		if l, ok := r.hears(); ok {
			t.Errorf("%s: it heard %+v", name, l)
		}
	}
	last := alice(t, path)
	last.says(line{Message: &Message{ID: "good"}})
	list, _ := polled(t, c, "")
	if len(list) != 1 || !strings.HasSuffix(list[0].ID, "/good") {
		t.Errorf("given out: %+v", list)
	}
}
