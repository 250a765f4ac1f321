//go:build linux

package main

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/perlica/perlica/cmd/perlica/chat"
)

// TestChatNotifies checks that questions and the ends of long turns are announced as the configuration says. The
// text of an agent cannot announce anything.
func TestChatNotifies(t *testing.T) {
	for name, c := range map[string]struct{ question, turn string }{
		"off":  {"", ""},
		"bell": {"\a", "\a"},
		"osc9": {"\x1b]9;perlica: a question: Run⟨BEL⟩⟨ESC⟩]0;evil⟨BEL⟩ it\a", "\x1b]9;perlica: the turn is over\a"},
	} {
		t.Run(name, func(t *testing.T) {
			if testing.Short() {
				t.Skip("takes as long as a long turn")
			}
			w := newWorld(t)
			w.config("[chat]\nnotify = \"" + name + "\"\n")
			s := w.chat()
			begun := time.Now()
			s.press(`@ask execute "Run\u0007\u001b]0;evil\u0007 it" command="make all"` + "\r")
			s.ask("make all")
			s.press("n")
			s.expect("permission: reject-once")
			s.prompt("")
			if time.Since(begun) >= chat.LongTurn {
				t.Skip("the machine stood still: this turn was a long one, too")
			}
			asked := len(s.text())
			s.send(fmt.Sprintf("@sleep %s", chat.LongTurn+100*time.Millisecond), "\r\n")
			s.bye()
			for part, want := range map[string]string{s.text()[:asked]: c.question, s.text()[asked:]: c.turn} {
				if want != "" && strings.Count(part, want) != 1 || strings.Count(part, "\a") != strings.Count(want, "\a") {
					t.Errorf("want %q once, got %q", want, part)
				}
			}
			if strings.Contains(s.text(), "\x1b]0;") {
				t.Error("the agent can talk to the terminal")
			}
			w.audit()
		})
	}
}

// TestChatIdle checks that the chat ends an idle agent after a while and starts another one for the next input. It
// does not end an agent that works.
func TestChatIdle(t *testing.T) {
	w := newWorld(t)
	w.config("[chat]\nidle = \"500ms\"\n")
	s := w.chat()
	s.send("@sleep 1s\x0a@show pid", "\r\n")
	w.until(1, "acp.session.closed")
	w.eventually("the agent is gone", func() error {
		for _, p := range leftBehind(w.home) {
			if strings.Contains(p, "agent predictable") {
				return errors.New(p)
			}
		}
		return nil
	})
	s.press("@say back\r")
	s.expect("the agent is told the earlier turns in a transcript")
	s.expect("back\r\n")
	s.prompt("")
	s.bye()
	w.logged(2, "llm.responded", `"stop_reason":"end_turn"`)
	w.logged(0, "acp.notification.sent", "session/cancel")
	if n := w.prompts(); n != 2 {
		t.Errorf("%d calls", n)
	}
	w.audit()
}

// TestChatLosesItsTerminal closes the terminal in different ways. The chat must cancel the turn, close its question
// with the true reason, and leave no process.
func TestChatLosesItsTerminal(t *testing.T) {
	for name, keys := range map[string]string{"at the prompt": "half a li", "in a turn": "@hang\r",
		"at a question": question + "\r"} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			s := w.chat()
			s.send("hello", "You said: hello")
			s.press(keys)
			switch name {
			case "at the prompt":
				s.prompt(keys)
			case "at a question":
				s.ask("Run it")
			default:
				w.until(2, "acp.request.sent", `"method":"session/prompt"`)
			}
			if err := s.pty.Close(); err != nil {
				t.Fatal(err)
			}
			// The signal makes the chat draw again. This ends the read in which the test waits for output, so that
			// the terminal is really closed. The chat may have ended already.
			_ = s.cmd.Process.Signal(syscall.SIGWINCH)
			s.wait()
			w.audit()
			if name == "at a question" {
				w.logged(1, "interaction.lapsed", `"turn_cancelled"`)
				w.logged(1, "acp.reply.sent", `"outcome":"cancelled"`)
			}
			if name != "at the prompt" {
				w.logged(1, "run.cancel_requested")
				w.logged(1, "llm.responded", `"stop_reason":"cancelled"`)
			}
			s = w.chat("-c")
			s.send("@say I am back", "I am back\r\n")
			s.bye()
			w.logged(0, "llm.outcome_unknown")
			w.audit()
		})
	}
}
