//go:build linux

package main

import (
	"encoding/base64"
	"testing"
)

// TestChatFirstText checks that a text of several words opens the chat with this text as its first input. A single
// word is a mistyped command.
func TestChatFirstText(t *testing.T) {
	w := newWorld(t)
	s := w.terminal(nil, "hello first")
	s.expect("You said: hello first")
	s.prompt("")
	s.press("/copy\r")
	s.expect("21 characters sent to the clipboard")
	s.shows("\x1b]52;c;" + base64.StdEncoding.EncodeToString([]byte("You said: hello first")) + "\a")
	s.bye()
	s = w.terminal(nil, "doctr")
	s.expect("did you mean 'perlica doctor'?")
	s.exits(2)
	s = w.terminal(nil, "chat", "second text")
	s.expect("You said: second text")
	s.prompt("")
	s.bye()
	w.audit()
	j := w.run("hello there") // Without a terminal there is no chat.
	j.exits(2)
}
