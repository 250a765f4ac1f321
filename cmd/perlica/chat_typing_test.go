//go:build linux

package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/perlica/perlica/cmd/perlica/chat"
)

// TestChatTypingIsNoAnswer checks that a question waits until the person stops typing the next line. A letter of the
// line or a paste does not answer the question, and the line is not lost.
func TestChatTypingIsNoAnswer(t *testing.T) {
	w := newWorld(t)
	s := w.chat()
	s.press("@sleep 500ms\n" + question + "\r")
	s.expect("working")
	last, most := time.Now(), time.Now().Add(patience)
	types := func(keys string) {
		t.Helper()
		before := len(s.text())
		s.press(keys)
		w.eventually("what is typed is shown", func() error {
			shown := strings.Contains(s.text()[before:], keys)
			if time.Since(last) > chat.CalmAfter/2 { // Two such delays in a row could count as a pause in the typing.
				t.Skip("the machine stood still between two keys")
			}
			if !shown {
				return errors.New("not yet")
			}
			return nil
		})
		last = time.Now()
	}
	for !strings.Contains(s.text(), "a question waits") || strings.Count(s.text(), "y") < 8 {
		if time.Now().After(most) {
			t.Fatal("no question waits while someone types")
		}
		types("y")
	}
	types("yes")
	s.ask("Run it")
	s.press("\x1b[200~yes\r\x1b[201~\x1b[200~1\x1b[201~\x1b")
	s.expect("permission: reject-once")
	s.expect("yes\x1b[K")
	s.press("\x15")
	s.prompt("")
	s.press(question + "\r")
	s.ask("Run it")
	s.press("yes, of course\x03") // A terminal without paste marks sends a paste like this.
	s.expect("permission: cancelled")
	s.prompt("")
	s.bye()
	w.logged(1, "interaction.answered", `"reject-once"`)
	w.logged(1, "interaction.answered")
	w.audit()
}

// TestChatPasteAhead pastes during a turn. Backspace must remove the whole paste.
func TestChatPasteAhead(t *testing.T) {
	w := newWorld(t)
	s := w.chat()
	s.press("@hang\r")
	s.expect("working")
	s.press("see \x1b[200~a\rb\x1b[201~")
	s.expect("[pasted 2 lines #1]")
	s.press("\x7fthat")
	s.expect("❯ see that")
	s.press("\x03")
	s.prompt("see that")
	s.press("\x15")
	s.prompt("")
	s.bye()
	w.audit()
}

// TestChatAnswersInAFile checks that each answer ends with a newline if standard output is a file.
func TestChatAnswersInAFile(t *testing.T) {
	w := newWorld(t)
	path := filepath.Join(w.project, "answers.txt")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	s := w.terminal(func(cmd *exec.Cmd) { cmd.Stdout = f }, "chat")
	s.expect("predictable ask ❯ ") // The agent has opened its session.
	for _, line := range []string{"@say one", "@say two\\n", "@plan x", "@say three"} {
		s.press(line + "\r")
		s.prompt("")
	}
	s.bye()
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	if b, err := os.ReadFile(path); string(b) != "one\ntwo\nthree\n" || err != nil {
		t.Errorf("%q, %v", b, err)
	}
	w.audit()
}
