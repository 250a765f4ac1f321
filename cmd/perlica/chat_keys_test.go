//go:build linux

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestChatPromptSays checks that the prompt shows the agent's mode, which Shift-Tab changes. It also shows how full
// the agent's context is.
func TestChatPromptSays(t *testing.T) {
	w := newWorld(t)
	s := w.chat()
	s.press("half")
	s.expect("ask ❯ half")
	s.press("\x1b[Z")
	s.expect("The agent is in the mode auto")
	s.expect("predictable auto ❯ half")
	s.press("\x15@usage 50 200\r")
	s.expect("context 25%")
	s.expect("predictable auto 25% ❯ ")
	s.press("\x1b[Z")
	s.expect("The agent is in the mode ask")
	s.expect("predictable ask 25% ❯ ")
	s.bye()
	w.audit()
}

// TestChatDoubts checks that the chat warns about a text that is perhaps not meant for the agent.
func TestChatDoubts(t *testing.T) {
	w := newWorld(t)
	s := w.chat()
	s.press("!ls\r")
	s.expect("Perlica runs nothing: this is text for the agent, and Enter sends it")
	s.prompt("!ls")
	s.press("\r")
	s.expect("You said: !ls")
	s.prompt("")
	s.press("see @gone.txt and @alice\r")
	s.expect("@gone.txt is no file in ")
	s.prompt("see @gone.txt and @alice")
	s.press("\x15")
	s.prompt("")
	s.press("?\r")
	s.expect("Shift-Tab — the next of the agent's modes")
	s.prompt("")
	s.press("/compact\r")
	s.expect("this agent has no /compact")
	s.prompt("")
	s.send("@commands compact", "")
	s.send("/compact now", "You said: /compact now")
	s.send("/status", "the event log")
	image := filepath.Join(w.project, "a picture.png")
	if err := os.WriteFile(image, []byte("\x89PNG\r\n\x1a\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.press("\x1b[200~" + strings.ReplaceAll(image, " ", `\ `) + "\x1b[201~")
	s.expect(`❯ @"` + image + `"`)
	s.press("what is it?\r")
	s.expect("attached: a picture.png")
	s.prompt("")
	s.press("/quit\r")
	s.exits(0)
	w.audit()
}

// TestKeysInDocs checks that the help for a question mark shows each key of the table in docs/chat.md.
func TestKeysInDocs(t *testing.T) {
	w := newWorld(t)
	s := w.chat()
	s.press("?\r")
	s.expect("/help lists the commands")
	shown := sgr.ReplaceAllString(s.text(), "")
	_, table, _ := strings.Cut(documents(t)["docs/chat.md"], "| key | at the prompt |\n|---|---|\n")
	table, _, _ = strings.Cut(table, "\n\n")
	rows := strings.Split(table, "\n")
	if len(rows) < 10 {
		t.Fatalf("%d rows", len(rows))
	}
	for _, row := range rows {
		for key := range strings.SplitSeq(strings.TrimSpace(strings.Split(row, "|")[1]), ", ") {
			if !strings.Contains(shown, key) {
				t.Errorf("? shows no %s", key)
			}
		}
	}
	s.prompt("")
	s.bye()
}
