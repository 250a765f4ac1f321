//go:build linux

package main

import (
	"os"
	"path/filepath"
	"testing"
)

// TestChatQueue checks that inputs which are sent during a turn are recorded as queued. The key Up takes one back.
// After the answer, the others are sent in order, each with one call.
func TestChatQueue(t *testing.T) {
	w := newWorld(t)
	open := w.gated("You said: one")
	s := w.chat()
	s.press("one\r")
	s.expect("working")
	s.press("second\r")
	s.expect("queued, sent after this turn: second (Up takes it back)")
	s.press("wrong\r")
	s.expect("queued after 1: wrong (Up takes it back)")
	s.press("\x1b[A")
	s.expect("taken back: wrong")
	s.press("\x15third\r")
	s.expect("queued after 1: third")
	s.press("wrong again\r")
	s.expect("queued after 2: wrong again")
	s.press("/unqueue 3\r")
	s.expect("taken back: wrong again")
	s.press("/queue\r")
	s.expect("2: third")
	s.press("/model x\r")
	s.expect("/model has to wait for the end of the turn")
	s.press("/usage\r")
	s.expect("calls")
	s.press("/hepl\r")
	s.expect("did you mean /help?")
	w.logged(4, "inbound.message.queued")
	w.logged(2, "inbound.message.withdrawn")
	w.logged(0, "llm.responded")
	open("You said: one")
	s.expect("You said: one")
	s.expect("second\r\n")
	s.expect("You said: second")
	s.expect("third\r\n")
	s.expect("You said: third")
	s.prompt("wrong again")
	s.press("\x15")
	s.prompt("")
	s.bye()
	if n := w.prompts(); n != 3 {
		t.Errorf("%d prompts left", n)
	}
	w.audit()
}

// TestChatQueueHeld checks that queued inputs wait for Enter after a cancel, after an error and after a restart.
func TestChatQueueHeld(t *testing.T) {
	w := newWorld(t)
	s := w.chat()
	s.press("@hang\r")
	s.expect("working")
	s.press("next\r")
	s.expect("queued, sent after this turn: next")
	s.press("\x1b") // The key Esc cancels the turn.
	s.expect("1 queued input held (the turn was stopped): Enter sends it, /unqueue takes the last back")
	s.expect("1: next")
	s.queued("1 queued ❯ ")
	s.press("/unqueue\r")
	s.prompt("next")
	s.press("\x15@hang\r")
	s.expect("working")
	s.press("again\r")
	s.expect("queued, sent after this turn: again")
	s.press("\x03")
	s.expect("1 queued input held")
	s.press("\x04")
	s.expect("1 queued input stay")
	s.exits(0)
	before := w.prompts()
	s = w.terminal(nil, "chat", "-c")
	s.expect("1 queued input held (queued before this chat was opened)")
	s.queued("1 queued ❯ ")
	if n := w.prompts(); n != before {
		t.Errorf("%d prompts left without an Enter", n-before)
	}
	s.press("/send\r") // /send confirms the queue, as Enter on an empty line does.
	s.expect("You said: again")
	s.prompt("")
	s.press("@error auth\r")
	s.prompt("")
	s.bye()
	w.logged(2, "inbound.message.queued")
	w.logged(1, "inbound.message.withdrawn")
	w.audit()
}

// TestChatQueueOff checks that with chat.queue = false the chat does not send lines that were typed during a turn.
func TestChatQueueOff(t *testing.T) {
	w := newWorld(t)
	w.config("[chat]\nqueue = false\n")
	s := w.chat()
	s.press("@hang\r")
	s.expect("working")
	s.press("next\r")
	s.expect("❯ next")
	s.press("\x1b")
	s.prompt("next")
	s.press("\x15")
	s.prompt("")
	s.bye()
	w.logged(0, "inbound.message.queued")
}

// queued waits for a prompt that shows the queue. text is the end of this prompt.
func (s *terminal) queued(text string) {
	s.w.t.Helper()
	s.expect("predictable ask " + text)
}

// TestSend checks that an open chat sends the input of another terminal. The line that the person types stays.
func TestSend(t *testing.T) {
	w := newWorld(t)
	s := w.chat()
	s.send("hello", "You said: hello")
	s.send("/save talk", "kept")
	s.press("half a li")
	s.expect("half a li")
	j := w.run("send", "--input-id", "mine", "talk", "from", "elsewhere")
	j.exits(0)
	s.expect("You said: from elsewhere")
	s.expect("❯ half a li")
	w.logged(1, "inbound.message.queued", `"send"`)
	w.run("send", "--input-id", "mine", "talk", "from", "elsewhere").exits(1)
	s.press("\x15")
	s.prompt("")
	s.bye()
	again := w.run("send", "talk", "to nobody")
	again.exits(1)
	again.says("is not open in a chat; nothing was queued")
	again.says("perlica run -s")
	if n := w.prompts(); n != 2 {
		t.Errorf("%d prompts left", n)
	}
	w.audit()
}

// TestChatQueuedFiles checks that the prompt for a queued input names only the files of this input.
func TestChatQueuedFiles(t *testing.T) {
	w := newWorld(t)
	if err := os.WriteFile(filepath.Join(w.project, "a.txt"), []byte("hi"), 0o600); err != nil {
		t.Fatal(err)
	}
	open := w.gated("You said: one")
	s := w.chat()
	s.press("/attach a.txt\r")
	s.queued("+1 file ❯ ")
	s.press("one\r")
	s.expect("working")
	s.press("second\r")
	s.expect("queued, sent after this turn: second")
	s.press("third @a.txt\r")
	s.expect("queued after 1: third @a.txt")
	open("You said: one")
	s.expect("You said: one")
	s.queued("1 queued ❯ second\r\n")
	s.expect("You said: second")
	s.queued("+1 file ❯ third @a.txt\r\n")
	s.expect("You said: third @a.txt")
	s.prompt("")
	s.bye()
	w.audit()
}
