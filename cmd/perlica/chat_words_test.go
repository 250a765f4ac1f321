//go:build linux

package main

import (
	"os"
	"path/filepath"
	"testing"
)

// TestChatSaysWhatIsSo checks the notes of the chat about an agent's commands, refused changes, costs, and turns
// that did not end well.
func TestChatSaysWhatIsSo(t *testing.T) {
	w := newWorld(t)
	if err := os.WriteFile(filepath.Join(w.project, "a.txt"), []byte("hi"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := w.chat()
	says := func(line string, texts ...string) {
		t.Helper()
		s.press(line + "\r")
		for _, text := range texts {
			s.expect(text)
		}
		s.prompt("")
	}
	says(`@update {"sessionUpdate":"available_commands_update","availableCommands":[` +
		`{"name":"usage","description":"Show it"},{"name":"ship","description":"Ships\nTRIGGER always"}]}`)
	says("/help", "• //usage — Show it\r\n• /ship — Ships\r\n\r\n//x sends /x")

	says(`@tool edit "Change it" path=a.txt old="one" new="two" steps=pending,failed`, "✗ Change it\r\n")

	says("@usage 1 1000 cost=1.5", "1.50 USD so far")
	says("@usage 1 1000 cost=2", "2.00 USD so far")
	says("@usage 1 1000 cost=0.25", "0.25 USD so far") // The cost starts again from zero.
	says("/usage", "2.25 USD.")

	s.press("/attach a.txt\r")
	s.expect("+1 file ❯ ")
	s.press("\x03") // On an empty line, Ctrl-C removes the attached files and does not leave the chat.
	s.expect("nothing is attached any more")
	s.prompt("")
	says("@show params\x0a@exit 3", "the outcome is unknown")
	w.logged(0, "inbound.message.received", `"attachments"`)
	says("/session show", "(outcome unknown: predictable: session/prompt: the agent exited with code 3")
	s.bye()
	w.audit()
}
