//go:build linux

package main

import (
	"strings"
	"testing"
)

// TestWatchAnswers checks that perlica watch takes a person's answer. After an answer from another process, the
// question disappears. Ctrl-C at a question ends perlica watch, and the turn continues.
func TestWatchAnswers(t *testing.T) {
	w := newWorld(t)
	w.start("run", "--permissions=deny", "hello").exits(0)
	s := w.terminal(nil, "watch")
	s.expect("You said: hello")
	ask := func(question string) *job {
		t.Helper()
		return w.start("run", "-c", "--wait-permissions=10m", question)
	}
	run := ask(question)
	s.ask("predictable asks: Run it", "  runs    │ make all\r\n", "Ctrl-C ends the watching")
	s.press("y")
	s.expect("permission: allow-once")
	run.exits(0)
	w.logged(1, "interaction.answered", `"option":"allow-once"`, `"where":"watch"`)

	run = ask(`@ask execute "Elsewhere" command="make all"`)
	s.ask("Elsewhere")
	w.start("pending", "deny").exits(0)
	s.expect("Reject: Elsewhere")
	run.exits(0)

	run = ask(`@ask execute "Leave" command="make all"`)
	s.ask("Leave")
	s.press("\x03")
	s.exits(0)
	w.logged(0, "run.cancel_requested")
	w.start("pending", "deny").exits(0)
	run.exits(0)
	w.logged(3, "interaction.answered")
	w.audit()
}

// TestWatchAfterAPruning checks that watch does not call a pruned answer empty.
func TestWatchAfterAPruning(t *testing.T) {
	w := newWorld(t)
	w.start("run", "--input-id=gone", "hello").exits(0)
	w.start("log", "prune", "--run=gone", "--yes").exits(0)
	s := w.terminal(nil, "watch")
	s.expect("(its text was removed)")
	w.start("run", "-c", "again").exits(0)
	s.expect("You said: again")
	s.press("\x03")
	s.exits(0)
	if text := s.text(); strings.Contains(text, "nothing was said") || strings.Contains(text, "()") {
		t.Errorf("it shows %q", s.text())
	}
	w.audit()
}

// TestWatchLooksLikeTheChat checks that watch shows a turn like the chat: Markdown, the plan, a tool call's changes
// and the usage. The next turn must be shown separately.
func TestWatchLooksLikeTheChat(t *testing.T) {
	w := newWorld(t)
	chat := w.chat()
	chat.send("hello", "You said: hello")
	watch := w.terminal(nil, "watch")
	watch.expect("You said: hello")
	chat.press("\x1b[200~" + `@plan completed:Read in_progress:Write` + "\n" +
		`@tool edit "Change it" path=a.txt old="one" new="1\n2"` + "\n" +
		"@say **bold** and `code`\n@tokens 1234 56\x1b[201~\r")
	for _, s := range []*terminal{chat, watch} {
		for _, text := range []string{"✓ Read", "▸ Write", "Change it (+2 −1)", "bold and code", "plan 1/2: Write",
			"1,234 tokens in, 56 out"} {
			s.expect(text)
		}
	}
	chat.prompt("")
	chat.press("@plan pending:Think\r")
	for _, s := range []*terminal{chat, watch} {
		s.expect("· Think")
		s.expect("plan 0/1")
		s.expect("nothing was said")
	}
	chat.prompt("")
	chat.bye()
	watch.expect("has left the session")
	watch.press("\x03")
	watch.exits(0)
	w.audit()
}
