//go:build linux

package main

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
)

// scripted makes the predictable agent of this world follow a scenario.
func (w *world) scripted(scenario string) {
	w.t.Helper()
	w.config(fmt.Sprintf(
		"[providers.predictable]\nadapter.command = \"perlica\"\nadapter.args = [\"agent\", \"predictable\", "+
			"\"--scenario\", %q]\n", scenario))
}

// kill kills perlica and checks that its agent ends, too, and that the log is undamaged.
func (s *terminal) kill() {
	s.w.t.Helper()
	s.signal(syscall.SIGKILL)
	s.wait()
	s.w.gone()
	s.w.run("log", "verify").exits(0)
}

// continues starts the next chat and checks the number of unknown outcomes that it reports. The chat must send
// nothing by itself, and it must continue the session.
func (w *world) continues(unknown, calls int) {
	w.t.Helper()
	const said = "its outcome is unknown and nothing was sent again"
	if open := w.run("pending", "list", "--json").stdout.String(); strings.TrimSpace(open) != "[]" {
		w.t.Errorf("questions of a dead process wait: %s", open)
	}
	w.scripted("#")
	s := w.chat("-c")
	if n := strings.Count(s.text(), said); n != unknown {
		w.t.Errorf("%d unknown outcomes are told, want %d: %q", n, unknown, s.text())
	}
	if n := w.prompts(); n != calls {
		w.t.Errorf("%d calls, want %d", n, calls)
	}
	s.send("@say I am back", "I am back\r\n")
	s.bye()
	w.logged(1, "session.created")
	w.logged(unknown, "llm.outcome_unknown", `"noticed_by":"recovery"`)
	w.logged(unknown, "llm.outcome_unknown")
	j := w.run("log", "open", "--json")
	j.exits(0)
	if n := strings.Count(j.stdout.String(), `"run_id"`); n != unknown {
		w.t.Errorf("%d runs are open, want %d: %s", n, unknown, j.stdout.String())
	}
	if n := w.prompts(); n != calls+1 {
		w.t.Errorf("%d calls, want %d", n, calls+1)
	}
	w.run("log", "verify").exits(0)
	w.audit()
}

// TestChatKilled kills the chat at every step of a turn. The next chat must report the true outcome, must not send
// anything again, and must continue.
func TestChatKilled(t *testing.T) {
	const sent = `"method":"session/prompt"`
	for _, c := range []struct {
		name, scenario, keys string
		until                []string // the chat is killed after an event of this type with these texts in its payload
		then                 func(w *world, s *terminal)
		unknown, calls       int // the expected numbers; calls is negative if the prompt may have left or not
	}{
		{name: "while the agent starts", scenario: "[initialize]\n@hang", keys: "hello\r",
			until: []string{"inbound.message.received"}},
		{name: "before the intent", scenario: "[session/new]\n@hang", keys: "hello\r",
			until: []string{"inbound.message.received"}},
		{name: "after the intent", keys: "@hang\r", until: []string{"llm.requested"}, unknown: 1, calls: -1},
		// A read that began before @ignore stdin still returns one line. The answer to the agent's request is this
		// line, so the agent does not read the prompt.
		{name: "in the middle of the prompt", scenario: "[session/new]\n@ignore stdin\n@request vendor/x wait=no",
			keys: "\x1b[200~" + strings.Repeat("x", 300_000) +
				"\x1b[201~\r", until: []string{"acp.request.sent", sent}, unknown: 1, calls: 1},
		{name: "after the prompt", keys: "@hang\r", until: []string{"acp.request.sent", sent}, unknown: 1, calls: 1},
		{name: "at the first chunk", keys: "@say begun\x0a@hang\r", until: []string{"acp.notification.received", "begun"},
			unknown: 1, calls: 1},
		{name: "while the answer streams", keys: "@stream 1000000 100\r",
			until: []string{"acp.notification.received", "agent_message_chunk"}, unknown: 1, calls: 1},
		{name: "after the answer to a question", keys: question + "\x0a@hang\r", until: []string{"interaction.requested"},
			unknown: 1, calls: 1,
			then: func(w *world, s *terminal) {
				s.ask("Run it")
				s.press("y")
				w.until(1, "acp.reply.sent", `"option":"allow-once"`)
			}},
		{name: "while it is cancelled", keys: "@ignore cancel\x0a@hang\r", until: []string{"acp.request.sent", sent},
			unknown: 1, calls: 1,
			then: func(w *world, s *terminal) {
				s.press("\x03")
				w.until(1, "acp.notification.sent", "session/cancel")
			}},
		{name: "after the outcome", keys: "hello\r", until: []string{"llm.single_call.enforced"}, calls: 1},
		{name: "while it leaves", scenario: "[session/close]\n@hang", keys: "hello\r",
			until: []string{"llm.single_call.enforced"}, calls: 1,
			then: func(w *world, s *terminal) {
				s.expect("You said: hello")
				s.prompt("") // A key that was pressed during the turn is not in the line.
				s.press("\x04")
				w.until(1, "acp.request.sent", "session/close")
			}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			w.scripted("#\n" + c.scenario)
			s := w.terminal(nil, "chat")
			s.prompt("")
			s.press(c.keys)
			w.until(1, c.until[0], c.until[1:]...)
			if c.then != nil {
				c.then(w, s)
			}
			s.kill()
			if c.calls < 0 {
				c.calls = w.prompts()
			}
			w.continues(c.unknown, c.calls)
		})
	}
}

// TestChatKilledAtAQuestion kills the chat at a question. Every front end must close the question with the true
// reason, whether it has an answer or not.
func TestChatKilledAtAQuestion(t *testing.T) {
	asked := func(w *world) (s, other *terminal, id string) {
		s = w.chat()
		s.press(question + "\r")
		s.ask("Run it")
		other = w.terminal(nil, "watch")
		other.ask("Run it")
		return s, other, pendingID.FindStringSubmatch(s.text())[1]
	}
	t.Run("unanswered", func(t *testing.T) {
		w := newWorld(t)
		s, other, id := asked(w)
		s.signal(syscall.SIGKILL)
		s.wait()
		other.expect("the process that ran this turn is gone")
		other.press("\x03")
		other.exits(0)
		w.gone()
		w.run("log", "verify").exits(0)
		j := w.run("pending", "allow", id)
		j.exits(1)
		j.says("the process that asked has ended")
		w.continues(1, 1)
		w.logged(0, "interaction.answered")
		w.logged(0, "acp.reply.sent")
		w.logged(1, "interaction.lapsed", `"asker_died"`)
		w.logged(1, "interaction.resolved", `"asker_died"`)
		j = w.run("pending", "allow", id)
		j.exits(1)
		j.says("the process that asked has ended")
	})
	t.Run("answered and not told to the agent", func(t *testing.T) {
		w := newWorld(t)
		s, other, id := asked(w)
		s.signal(syscall.SIGSTOP)
		j := w.run("pending", "allow", id)
		j.exits(1)
		j.says("it may be suspended")
		s.signal(syscall.SIGKILL)
		s.wait()
		other.press("\x03")
		other.exits(0)
		w.gone()
		w.run("log", "verify").exits(0)
		w.continues(1, 1)
		w.logged(1, "interaction.answered", `"option":"allow-once"`)
		w.logged(0, "acp.reply.sent")
		w.logged(0, "interaction.lapsed")
		w.logged(1, "interaction.resolved", `"asker_died"`)
	})
}

// TestChatAgentKilled kills the agent of a chat. The chat must continue with another agent. Every front end must
// close the agent's question with the true reason.
func TestChatAgentKilled(t *testing.T) {
	t.Run("at rest", func(t *testing.T) {
		w := newWorld(t)
		s := w.chat()
		s.send("hello", "You said: hello")
		w.killAgent()
		s.send("/help exit", "/exit") // This gives the chat time to notice the end of the agent.
		s.send("@say I am back", "I am back\r\n")
		s.bye()
		w.logged(0, "llm.outcome_unknown")
		w.logged(2, "llm.responded")
		w.audit()
	})
	t.Run("in the stream", func(t *testing.T) {
		w := newWorld(t)
		s := w.chat()
		s.press("@say begun\x0a@hang\r")
		w.until(1, "acp.notification.received", "begun")
		w.killAgent()
		s.expect("the outcome is unknown")
		s.prompt("")
		s.send("@say I am back", "I am back\r\n")
		s.bye()
		w.logged(1, "llm.outcome_unknown")
		w.audit()
	})
	t.Run("at a question", func(t *testing.T) {
		w := newWorld(t)
		s := w.chat()
		s.press(question + "\r")
		s.ask("Run it")
		id := pendingID.FindStringSubmatch(s.text())[1]
		other := w.terminal(nil, "watch")
		other.ask("Run it")
		w.killAgent()
		for _, screen := range []*terminal{s, other} {
			screen.expect("no answer: Run it (agent gone)")
			screen.expect("the outcome is unknown")
		}
		s.prompt("")
		j := w.run("pending", "allow", id)
		j.exits(1)
		j.says("the agent has ended")
		s.send("@say I am back", "I am back\r\n")
		other.press("\x03")
		other.exits(0)
		s.bye()
		w.logged(1, "interaction.lapsed", `"agent_gone"`)
		w.logged(0, "acp.reply.sent")
		w.logged(0, "interaction.answered")
		w.audit()
	})
	t.Run("while it starts", func(t *testing.T) {
		w := newWorld(t)
		w.scripted("#\n[session/new]\n@hang")
		s := w.terminal(nil, "chat")
		s.prompt("")
		s.press("hello\r")
		w.until(1, "inbound.message.received")
		w.until(1, "acp.request.sent", "session/new")
		w.killAgent()
		s.expect("nothing was sent")
		s.prompt("")
		s.bye()
		w.logged(0, "llm.requested")
		w.audit()
	})
}

// killAgent kills the processes of this world that are agents.
func (w *world) killAgent() {
	w.t.Helper()
	for _, p := range leftBehind(w.home) {
		var pid int
		if _, err := fmt.Sscan(p, &pid); err != nil || !strings.Contains(p, "agent predictable") {
			continue
		}
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			w.t.Fatal(err)
		}
		w.eventually("the agent is gone", func() error {
			if syscall.Kill(pid, 0) == nil {
				return fmt.Errorf("process %d is there", pid)
			}
			return nil
		})
		return
	}
	w.t.Fatal("there is no agent")
}

// TestAnswererKilled kills the process that gives an answer. If the answer is on record, it counts. Otherwise the
// question is still open. The agent gets one answer.
func TestAnswererKilled(t *testing.T) {
	asked := func(w *world) (s *terminal, id string) {
		s = w.chat()
		s.press(question + "\r")
		s.ask("Run it")
		return s, pendingID.FindStringSubmatch(s.text())[1]
	}
	ends := func(w *world, s *terminal, option string) {
		s.expect("permission: " + option)
		s.prompt("")
		s.bye()
		w.logged(1, "interaction.answered")
		w.logged(1, "interaction.answered", `"option":"`+option+`"`)
		w.logged(1, "acp.reply.sent", `"option":"`+option+`"`)
		w.logged(1, "interaction.resolved")
		w.logged(1, "llm.responded")
		w.audit()
	}
	t.Run("before the record", func(t *testing.T) {
		w := newWorld(t)
		s, id := asked(w)
		release := w.lock(logFile(w.project))
		j := w.start("pending", "allow", id)
		j.opensLog()
		j.signal(syscall.SIGKILL)
		j.wait()
		release()
		if list := w.run("pending", "list").stdout.String(); !strings.Contains(list, id) {
			t.Errorf("the question is not open any more: %q", list)
		}
		w.run("pending", "deny", id).exits(0)
		ends(w, s, "reject-once")
	})
	t.Run("before the asker has looked", func(t *testing.T) {
		w := newWorld(t)
		s, id := asked(w)
		s.signal(syscall.SIGSTOP)
		j := w.start("pending", "allow", id)
		w.until(1, "interaction.answered")
		j.signal(syscall.SIGKILL)
		j.wait()
		late := w.run("pending", "deny", id)
		late.exits(1)
		late.says("answered first")
		s.signal(syscall.SIGCONT)
		ends(w, s, "allow-once")
	})
}
