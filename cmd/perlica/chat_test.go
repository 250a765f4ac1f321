//go:build linux

package main

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// chat starts a chat on a terminal and waits for its first prompt.
func (w *world) chat(args ...string) *terminal {
	w.t.Helper()
	s := w.terminal(nil, append([]string{"chat"}, args...)...)
	s.expect("predictable ask ❯ \x1b[K") // The agent has opened its session.
	return s
}

// prompt waits for a prompt that contains the text.
func (s *terminal) prompt(text string) {
	s.w.t.Helper()
	s.finds(`predictable( [a-z]+)?( \d+%)?( \+?\d+ [a-z]+)* ❯ ` + regexp.QuoteMeta(text) + `\x1b\[K`)
}

// send types a line and Enter and waits for the answer.
func (s *terminal) send(line, answer string) {
	s.w.t.Helper()
	s.press(line)
	s.press("\r")
	s.expect(answer)
	s.prompt("")
}

// bye leaves the chat with Ctrl-D.
func (s *terminal) bye() {
	s.w.t.Helper()
	s.press("\x04")
	s.exits(0)
}

// TestChatTalks checks that each line is one call in one session of one running agent. A person can edit lines with
// characters of any width. The history of the next chat contains the lines.
func TestChatTalks(t *testing.T) {
	w := newWorld(t)
	s := w.chat()
	before := termios(t, s.pty)
	s.press("hello 中文 😀!")
	s.prompt("hello 中文 😀!")
	s.press("\x1b[D\x1b[D\x1b[D\x1b[Dx")           // moves between the two wide characters
	s.expect("hello 中x文 😀!\x1b[K\x1b[J\r\x1b[32C") // The cursor stands after the x.
	s.press("\r")
	s.expect("You said: hello 中x文 😀!\r\n")
	s.prompt("")
	s.send("@show pid", "\r\n")
	s.bye()
	s.shows("continue it with: perlica -s ")
	w.logged(1, "session.created")
	w.logged(1, "acp.request.sent", `"method":"session/new"`)
	w.logged(2, "acp.request.sent", `"method":"session/prompt"`)
	if termios(t, s.pty) == before {
		t.Error("the mode of the terminal was not restored")
	}
	w.audit()

	s = w.chat("-c")
	s.press("\x1b[A\x1b[A")
	s.prompt("hello 中x文 😀!")
	s.press("\x03")
	s.prompt("")
	s.press("\x12pid")
	s.expect("search back: pid @show pid")
	s.press("\r")
	s.expect("in a transcript")
	s.prompt("")
	s.bye()
	w.logged(3, "acp.request.sent", `"method":"session/prompt"`)
	if found, _ := filepath.Glob(filepath.Join(w.project, ".perlica_config", "*history*")); len(found) > 0 {
		t.Errorf("the history is in the repository: %q", found)
	}
	w.audit()
}

// TestChatQuestion answers a question with a key in the chat, and another question with another front end. Text that
// is typed at the question is in no history.
func TestChatQuestion(t *testing.T) {
	w := newWorld(t)
	s := w.chat()
	s.press(question + "\r")
	s.ask("Run it", "  runs    │ make all\r\n", "1 ✓ once      “Allow once”")
	s.press("y")
	s.expect("permission: allow-once")
	s.prompt("")
	s.press(question + "\r")
	s.ask("Run it")
	id := pendingID.FindAllStringSubmatch(s.text(), -1)
	w.run("pending", "deny", id[len(id)-1][1]).exits(0)
	s.expect("pending)")
	s.expect("permission: reject-once")
	s.prompt("")
	s.press(`@ask execute "Clean up" command="rm -rf /"` + "\r")
	s.ask("Clean up")
	s.press("y")
	s.expect("Esc to go back: ")
	s.press("secretword\r")
	s.expect("to allow this, type the exact word")
	s.press("n")
	s.expect("permission: reject-once")
	s.prompt("")
	s.bye()
	if !strings.Contains(s.text(), "\a") {
		t.Error("no bell")
	}
	if strings.Contains(readHistory(t, w), "secretword") {
		t.Error("what was typed at a question is in the history")
	}
	w.audit()
}

func readHistory(t *testing.T, w *world) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(w.home, ".perlica", "state", "history", "*"))
	if err != nil || len(found) != 1 {
		t.Fatalf("history files: %q, %v", found, err)
	}
	b, err := os.ReadFile(found[0])
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestChatCancel checks that Ctrl-C cancels the turn. Text that was typed before, and an Enter, move to the next
// prompt and are not sent.
func TestChatCancel(t *testing.T) {
	w := newWorld(t)
	s := w.chat()
	s.press("@hang\r")
	w.until(1, "acp.request.sent", `"method":"session/prompt"`)
	s.press("later 中\rmore\r")
	s.sees("\n❯ later 中\nmore\n")
	s.press("\x03")
	s.expect("stopped: interrupted")
	s.prompt("later 中\x1b[K\r\n  more")
	w.logged(1, "llm.responded", `"stop_reason":"cancelled"`)
	s.press("\r")
	s.sees("You said: later 中\nmore")
	s.prompt("")
	if n := w.prompts(); n != 2 {
		t.Errorf("%d calls", n)
	}
	s.press("@ignore cancel\x0a@hang\r")
	w.until(3, "acp.request.sent", `"method":"session/prompt"`)
	s.press("\x03")
	s.expect("Ctrl-C ends it at once")
	s.press("\x03")
	s.expect("the outcome is unknown")
	s.prompt("")
	s.send("@say I am back", "I am back\r\n") // A new agent answers.
	s.press("half a line\x03")
	s.prompt("")
	s.press("\x03")
	s.expect("once more leaves")
	s.prompt("")
	s.press("\x03")
	s.exits(0)
	w.audit()
}

// TestChatPaste checks that a paste is not sent by itself and does not slow down the line.
func TestChatPaste(t *testing.T) {
	w := newWorld(t)
	s := w.chat()
	begun := s.worked()
	s.press("\x1b[200~" + strings.Repeat(strings.Repeat("x", 99)+"\r", 10_000) + "\x1b[201~")
	s.prompt("[pasted 10000 lines #1]")
	if took := s.worked() - begun; took > 2*time.Second {
		t.Errorf("a paste of 1 MB took %s", took)
	}
	s.press("\x7f") // Backspace removes the whole paste.
	s.prompt("")
	s.press("say \x1b[200~one\r中\rthree\x1b[201~ ok")
	s.prompt("say [pasted 3 lines #2] ok")
	s.press("\r")
	s.sees("You said: say one\n中\nthree ok")
	s.prompt("")
	s.press("\x1b[200~one\x1b[201~ line")
	s.prompt("one line")
	// A terminal without paste marks delivers the whole paste at once, because the paste fits into its 4,095 bytes.
	s.press("\x15" + strings.Repeat("a line without marks\r", 190))
	s.expect("[pasted 190 lines #3]")
	s.press("\x03")
	s.prompt("")
	s.press("two\r\tlines\r") // This also works for a few lines.
	s.prompt("two\x1b[K\r\n   lines\x1b[K\r\n  ")
	s.press("\x7f and more\r")
	s.sees("You said: two\nlines and more")
	s.prompt("")
	w.logged(1, "inbound.message.received", `"two\n\tlines and more"`)
	s.bye()
	if n := w.prompts(); n != 2 {
		t.Errorf("%d calls", n)
	}
	w.audit()
}

// TestChatCompletes checks the completion of commands, arguments and paths. The file of a path is attached if it
// exists. A line with a mistyped path is not sent.
func TestChatCompletes(t *testing.T) {
	w := newWorld(t)
	if err := os.WriteFile(filepath.Join(w.project, "notes.txt"), []byte("hi"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := w.chat()
	s.press("/sess\t")
	s.prompt("/session ")
	s.press("\t")
	s.expect("current  delete   export   list     new      rename   show     use")
	s.press("\x15see @no\t")
	s.prompt("see @notes.txt ")
	s.press("and @nothing\r")
	s.expect("attached: notes.txt")
	s.expect("You said: see @notes.txt and @nothing")
	s.prompt("")
	w.logged(1, "inbound.message.received", filepath.Join(w.project, "notes.txt")+`"]`)
	s.press("/hepl\r")
	s.expect("did you mean /help?")
	s.prompt("") // The line of a mistyped path is empty again.
	s.press("//hepl\r")
	s.expect("You said: /hepl")
	s.prompt("")
	s.press("/again\r")
	s.prompt("//hepl")
	s.press("\x15/exit mine\r")
	s.exits(0)
	if n := w.prompts(); n != 2 {
		t.Errorf("%d calls", n)
	}
	w.run("session", "show", "mine").exits(0)
	w.audit()
}

// TestChatLines checks three ways to a line of several rows: a backslash at the end, Ctrl-J, and the user's own
// editor.
func TestChatLines(t *testing.T) {
	w := newWorld(t)
	w.env = append(w.env, "EDITOR=sed -i s/foo/bar/")
	s := w.chat()
	s.press(`one\`)
	s.press("\r")
	s.prompt("one\x1b[K\r\n  ")
	s.press("two\x0athree\x1b[A\x1b[AX")
	s.prompt("oneX\x1b[K\r\n  two\x1b[K\r\n  three")
	s.press("\r")
	s.sees("You said: oneX\ntwo\nthree")
	s.prompt("")
	s.press("foo\x07")
	s.prompt("bar")
	s.press(" foo\x18\x05")
	s.prompt("bar bar")
	s.press("\x03")
	s.prompt("")
	s.bye()
	w.audit()
}

// aWhile matches the duration of a turn that took some time.
const aWhile = `(\d+m)?\d+s`

// TestChatEnds ends a chat in every possible way. The turn must be on record, and no agent may remain.
func TestChatEnds(t *testing.T) {
	t.Run("SIGTERM in a turn", func(t *testing.T) {
		w := newWorld(t)
		s := w.chat()
		s.press("@hang\r")
		w.until(1, "acp.request.sent", `"method":"session/prompt"`)
		s.signal(syscall.SIGTERM)
		s.exits(143)
		w.logged(1, "llm.responded", `"stop_reason":"cancelled"`)
		w.audit()
	})
	t.Run("SIGTERM at the prompt", func(t *testing.T) {
		w := newWorld(t)
		s := w.chat()
		s.signal(syscall.SIGTERM)
		s.exits(143)
		w.audit()
	})
	t.Run("the terminal is closed", func(t *testing.T) {
		w := newWorld(t)
		s := w.chat()
		s.press("@hang\r")
		w.until(1, "acp.request.sent", `"method":"session/prompt"`)
		s.signal(syscall.SIGHUP)
		s.exits(143)
		w.logged(1, "llm.responded", `"stop_reason":"cancelled"`)
		w.audit()
	})
	t.Run("kill -9", func(t *testing.T) {
		w := newWorld(t)
		s := w.chat()
		s.send("hello", "You said")
		s.press(question + "\r")
		s.ask("Run it")
		s.signal(syscall.SIGKILL)
		s.wait()
		w.gone()
		w.run("log", "verify").exits(0)
		s = w.chat("-c")
		s.shows("its outcome is unknown")
		s.send("@say I am back", "I am back\r\n")
		s.bye()
		w.logged(1, "llm.outcome_unknown")
		w.audit()
	})
}

// TestChatBusy checks that a second chat in the same session names the process that uses the session.
func TestChatBusy(t *testing.T) {
	w := newWorld(t)
	s := w.chat()
	s.send("hello", "You said")
	other := w.terminal(nil, "-c")
	other.exits(4)
	other.shows("a chat (process")
	other.shows("perlica watch ")
	s.bye()
	w.audit()
}

// TestChatNeedsTerminal checks that the command chat fails without a terminal.
func TestChatNeedsTerminal(t *testing.T) {
	w := newWorld(t)
	j := w.run("chat")
	j.exits(2)
	j.says("the chat needs a terminal")
	if _, err := os.Stat(filepath.Join(w.project, ".perlica_config")); !errors.Is(err, os.ErrNotExist) {
		t.Error("it left something")
	}
}
