//go:build linux

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// TestChatAgentDies checks that the chat reports the end of an agent at once, above the line that the person types.
// For the next input the chat starts another agent.
func TestChatAgentDies(t *testing.T) {
	w := newWorld(t)
	s := w.chat()
	s.press("@show pid\r")
	s.expect("pid: ")
	s.prompt("")
	m := regexp.MustCompile(`pid: (\d+)\r\n`).FindStringSubmatch(s.text())
	if m == nil {
		t.Fatalf("no process id in %q", s.text())
	}
	pid, err := strconv.Atoi(m[1])
	if err != nil {
		t.Fatal(err)
	}
	s.press("half")
	s.prompt("half")
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	s.expect("\x1b[J\rperlica: predictable: the agent was ended by SIGKILL; your next line starts it again\r\n")
	s.prompt("half")
	s.press(" a line\r")
	s.expect("in a transcript")
	s.prompt("")
	s.bye()
	if n := strings.Count(s.text(), "starts it again"); n != 1 {
		t.Errorf("it was said %d times", n)
	}
	if n := w.prompts(); n != 2 {
		t.Errorf("%d calls", n)
	}
	w.audit()
}

// TestChatSlash checks each slash command against its help. A mistyped command is not sent to the agent.
func TestChatSlash(t *testing.T) {
	w := newWorld(t)
	for name, text := range map[string]string{"my notes.txt": "hi", "the other.txt": "ho", "other.txt": "ha"} {
		if err := os.WriteFile(filepath.Join(w.project, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
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
	says("/again", "nothing was sent yet")
	says("/session current", " — predictable, 0 turns")
	says("/save", "send /save NAME")
	says("first", "You said: first")
	says("/usage", "1 turn, 1 call")
	says("/doctor", "checks passed")
	says("/attach nothing.txt", "nothing.txt is no file")
	s.press("/attach my\t")
	s.prompt("/attach my notes.txt ")
	s.press("\r")
	s.expect("+1 file ❯ ")
	s.press(`see @"my` + "\t")
	s.expect(`see @"my notes.txt" `)
	s.press("and @the\t")
	s.expect(`@"the other.txt" `)
	s.press("\r")
	s.expect("attached: my notes.txt")
	s.expect("attached: the other.txt")
	s.prompt("")
	w.logged(1, "inbound.message.received",
		`"attachments":["`+filepath.Join(w.project, "my notes.txt")+`","`+filepath.Join(w.project, "the other.txt")+`"]`)
	s.press("/again\r") // /again attaches the files of /attach again. The text itself attaches the other files.
	s.expect("attached again: my notes.txt")
	s.expect("predictable ask +1 file ❯ see @\"my notes.txt\" and @\"the other.txt\"")
	s.press("\x15/again\r") // A file is attached only once.
	s.expect("predictable ask +1 file ❯ see @\"my notes.txt\"")
	s.press("\x15and that\r")
	s.expect("attached: my notes.txt\r\n")
	s.expect("You said: and that")
	s.prompt("")
	w.logged(1, "inbound.message.received",
		`"text":"and that","attachments":["`+filepath.Join(w.project, "my notes.txt")+`"]`)
	if err := os.Remove(filepath.Join(w.project, "my notes.txt")); err != nil {
		t.Fatal(err)
	}
	s.press("/again\r")
	s.expect("my notes.txt was attached and is gone")
	s.prompt("and that")
	s.press("\x15")
	s.prompt("")
	says("/session export", "use it as /session")
	says("/session export other.txt", "other.txt is there already")
	says("/session export the record.jsonl", "exported ")
	w.run("log", "import", "the record.jsonl", "copy.db").exits(0)
	s.press("/discrad\r")
	s.expect("there is no command /discrad; did you mean /discard?")
	s.prompt("")
	says("/discard kept", "use it as /discard")
	says("//discrad", "You said: /discrad")
	s.press("/again\r")
	s.prompt("//discrad")
	s.press("\x15")
	s.prompt("")
	says("/save kept", "kept")
	held := w.run("session", "delete", "kept")
	held.exits(1)
	held.says("kept is busy: a chat (process ")
	says("/clear", "a new session with predictable")
	says("/provider", "predictable")
	says("/usage", "0 turns, 0 calls")
	says("/provider no-such", `there is no provider "no-such"`)
	says("/session use kept", "session kept, 4 turns")
	says("/provider predictable", "a new session with predictable")
	says("to be gone", "You said: to be gone")
	s.press("/discard\r")
	s.expect("the session is off every list; its events stay on the log")
	s.exits(0)
	w.logged(1, "session.deleted")
	w.logged(1, "inbound.message.received", `"to be gone"`)
	if j := w.run("session", "list", "--all", "--json"); strings.Contains(j.stdout.String(), "to be gone") {
		t.Errorf("a discarded session is listed: %s", j.stdout.String())
	}
	if n := w.prompts(); n != 5 {
		t.Errorf("%d calls", n)
	}
	w.audit()
}

// TestChatGivesUp checks that Ctrl-C ends a slash command that waits for an agent.
func TestChatGivesUp(t *testing.T) {
	w := newWorld(t)
	s := w.terminal(nil, "--agent", "perlica agent predictable --scenario '[initialize]\n@hang'")
	s.expect("perlica ❯ ")
	s.press("/mode auto\r\x03")
	s.expect("perlica: /mode was given up\r\n")
	s.expect("perlica ❯ ")
	s.bye()
	w.audit()
}

// TestChatAdHoc checks a session of an agent that --agent names. The session stays with this agent, and the user is
// told how to continue the session.
func TestChatAdHoc(t *testing.T) {
	w := newWorld(t)
	agent := `perlica agent predictable --scenario "@say it's me"`
	s := w.terminal(nil, "--agent", agent)
	s.expect("perlica ask ❯ ")
	s.press("hello\r")
	s.expect("it's me\r\n")
	s.expect("perlica ask ❯ ")
	s.press("/save my own\r")
	s.expect("\"my own\" perlica ask ❯ ")
	s.press("/save mine\r")
	s.expect("mine perlica ask ❯ ")
	s.press("/clear\r")
	s.expect("a new session with perlica")
	s.press("/session use mine\r")
	s.expect("session mine, 1 turn")
	s.bye()

	s = w.terminal(nil, "-c")
	s.exits(2)
	s.shows("the session belongs to the agent perlica, which is not known here")
	m := regexp.MustCompile(
		`hint: the session was begun with --agent; to continue it with the same agent: (perlica -s .*)\r\n`).
		FindStringSubmatch(sgr.ReplaceAllString(s.text(), ""))
	if m == nil {
		t.Fatalf("no hint in %q", s.text())
	}
	cmd := exec.Command("bash", "-c", strings.Replace(m[1], "perlica", "perlica run", 1)+" again")
	cmd.Dir, cmd.Env = w.project, w.env
	if out, err := cmd.Output(); err != nil || string(out) != "it's me" {
		t.Errorf("%s: %q, %v", m[1], out, err)
	}
	j := w.run("run", "-c", "more")
	j.exits(2)
	j.says("perlica run -s mine --agent ")
	w.audit()
}
