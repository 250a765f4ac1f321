//go:build linux

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

// TestChatCannotStart checks that the chat reports an agent that cannot start, with a hint. The report appears while
// the person types the first line. Commands that need the agent report it, too.
func TestChatCannotStart(t *testing.T) {
	w := newWorld(t)
	s := w.terminal(nil, "--agent", "perlica agent predictable --scenario '[session/new]\n@auth'")
	s.expect("(code -32000); your next line starts the agent again\r\n")
	s.expect("hint: log in with the agent's own command, or hand it the variable with its key: '--env NAME'; then " +
		"try again\r\n")
	s.expect("perlica ❯ \x1b[K")
	s.press("/mode\r")
	s.expect("(code -32000)\r\n")
	s.expect("hint: log in with the agent's own command")
	s.expect("perlica ❯ \x1b[K")
	s.press("\x04")
	s.exits(0)

	s = w.terminal(nil, "--agent", "no-such-program")
	s.expect("your next line starts the agent again\r\n")
	s.expect("hint: --agent takes a program")
	s.expect("no-such-program ❯ \x1b[K")
	s.press("\x04")
	s.exits(0)
	if n := w.prompts(); n != 0 {
		t.Errorf("%d prompts", n)
	}
}

// TestChatTypedBeforeItStarts checks that text from before the first prompt moves into the prompt. It waits there
// for Enter.
func TestChatTypedBeforeItStarts(t *testing.T) {
	w := newWorld(t)
	gate := filepath.Join(w.project, "gate")
	if err := syscall.Mkfifo(gate, 0o600); err != nil {
		t.Fatal(err)
	}
	s := w.terminal(func(cmd *exec.Cmd) {
		cmd.Path, cmd.Args = "/bin/sh", []string{"sh", "-c", `read go <gate; exec perlica chat`}
	})
	s.press("early 中 words\r")
	s.expect("early 中 words\r\n") // The echo of the terminal shows that the terminal has the words.
	if err := os.WriteFile(gate, []byte("go\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.prompt("early 中 words")
	s.press("!") // The Enter from before the prompt is not in the line.
	s.prompt("early 中 words!")
	w.logged(0, "llm.requested")
	s.press("\r")
	s.expect("You said: early 中 words!\r\n")
	s.prompt("")
	s.bye()
	w.audit()
}
