//go:build linux

package main

import (
	"regexp"
	"testing"
)

var goesOn = regexp.MustCompile(`session ([0-9a-f]{8}).*: perlica -s ([0-9a-f]{8})`)

// TestChatFarewell checks that the chat prints its session's id and the command that continues the session. A chat
// without a turn prints neither of them.
func TestChatFarewell(t *testing.T) {
	w := newWorld(t)
	s := w.chat()
	s.bye()
	if found := goesOn.FindString(s.text()); found != "" {
		t.Errorf("an empty session is worth going on with: %q", found)
	}
	s = w.chat()
	s.send("hello", "You said: hello")
	s.bye()
	found := goesOn.FindStringSubmatch(s.text())
	if found == nil || found[1] != found[2] {
		t.Fatalf("the farewell does not say how to go on: %q", s.text())
	}
	id := found[2]
	s = w.chat("-s", id)
	s.send("/save kept", "kept")
	s.send("again", "You said: again")
	s.bye()
	s.shows("session " + id + " (kept): continue it with: perlica -s " + id)
	w.logged(2, "session.created")
	w.audit()
}
