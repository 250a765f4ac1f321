//go:build linux

package main

import (
	"os"
	"path/filepath"
	"testing"
)

// TestChatAddDir checks that the chat opens and continues its session with further directories. It does not prompt
// an agent that does not support them.
func TestChatAddDir(t *testing.T) {
	w := newWorld(t)
	if err := os.Mkdir(filepath.Join(w.project, "other"), 0o700); err != nil {
		t.Fatal(err)
	}
	w.scripted("[initialize]\n@set agentCapabilities.sessionCapabilities {\"additionalDirectories\":{}}\n")
	s := w.chat("--add-dir", "other")
	s.send("hello", "You said: hello")
	s.send("/session new", "")
	s.send("again", "You said: again")
	s.bye()
	w.logged(2, "acp.request.sent", `"method":"session/new"`, `"additionalDirectories":["`, `/other"]`)
	w.audit()

	w.scripted("#")
	s = w.terminal(nil, "chat", "--add-dir", "other")
	s.prompt("")
	s.press("hello\r")
	s.expect("working") // The chat prints the error at its start, too.
	s.expect("predictable does not take further directories: nothing was sent")
	s.prompt("hello") // The person can send the line again in a chat without the flag.
	s.press("\x03")
	s.prompt("")
	s.bye()
	w.logged(2, "acp.request.sent", `"method":"session/prompt"`)
	w.audit()
}
