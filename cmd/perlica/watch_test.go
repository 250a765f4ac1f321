//go:build linux

package main

import "testing"

// TestWatchAnswers: at a terminal, who watches may answer; elsewhere answered questions close
// by themselves, and Ctrl-C at one ends the watching, not the turn.
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
	s.ask("predictable asks: Run it", "    make all\r\n", "Ctrl-C ends the watching")
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
