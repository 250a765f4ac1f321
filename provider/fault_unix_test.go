//go:build unix

package provider_test

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/perlica/perlica/provider"
)

func mustPipe(t *testing.T) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	return r, w
}

// tapInput replaces the agent's input with a pipe of the test. The function "waiting" reports whether the pipe contains
// bytes.
func tapInput(t *testing.T, c *provider.Conn) (r *os.File, waiting func() bool) {
	t.Helper()
	r, w := mustPipe(t)
	c.ReplaceInput(w) // the agent exits at the end of its input
	t.Cleanup(func() { r.Close() })
	return r, func() bool {
		fds := []unix.PollFd{{Fd: int32(r.Fd()), Events: unix.POLLIN}}
		must(unix.Poll(fds, 0))
		return fds[0].Revents&unix.POLLIN != 0
	}
}

func TestKilledBySignal(t *testing.T) {
	_, got := run(t, child("ok"), &watcher{}, "@stderr before the end\n@kill")
	var e *provider.Error
	if !errors.As(got.err, &e) || e.Subtype != "killed" || !strings.Contains(e.Message, "SIGKILL") ||
		!strings.Contains(e.Message, "before the end") {
		t.Errorf("%#v", got.err)
	}
}

// TestSentBeforeBytes checks that a line is recorded before its first byte leaves, and the record keeps it if writing
// fails.
func TestSentBeforeBytes(t *testing.T) {
	w := &watcher{}
	c := start(t, child("liar", "hang"), w)
	r, waiting := tapInput(t, c)
	w.sent = func(f provider.Frame) error {
		if waiting() {
			t.Errorf("bytes left before %s was recorded", f.Line)
		}
		if strings.Contains(string(f.Line), "second") {
			return errors.New("disk full")
		}
		return nil
	}
	first := `{"jsonrpc":"2.0","method":"_first"}`
	if err := c.SendLine(first); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 100)
	if n, err := r.Read(b); string(b[:n]) != first+"\n" {
		t.Errorf(`got %q, %v; want string(b[:n]) == first + "\n"`, b[:n], err)
	}
	if err := c.SendLine(`{"jsonrpc":"2.0","method":"_second"}`); !errors.Is(err, provider.ErrRecord) {
		t.Errorf("got %v; want errors.Is(err, provider.ErrRecord)", err)
	}
	if waiting() {
		t.Error("bytes left though the record had failed")
	}
}

// TestReceivedFailsNothingIsWritten checks that if a line of the agent cannot be recorded, nothing more is written, not
// even an answer.
func TestReceivedFailsNothingIsWritten(t *testing.T) {
	ready := make(chan struct{})
	w := &watcher{received: func(provider.Frame) error { <-ready; return errors.New("disk full") }}
	c := start(t, child("liar", `>{"id":0,"method":"fs/read_text_file","params":{}}`, "hang"), w)
	_, waiting := tapInput(t, c)
	close(ready)
	<-c.Gone()
	if err := c.SendLine(`{"jsonrpc":"2.0","method":"_x"}`); !errors.Is(err, provider.ErrRecord) {
		t.Errorf("got %v; want errors.Is(err, provider.ErrRecord)", err)
	}
	end(t, c)
	if waiting() || len(w.lines(true)) != 0 {
		t.Error("something was written")
	}
}

// TestDeafFromTheFirstByte checks that a prompt has not left if the pipe had no room for a single byte.
func TestDeafFromTheFirstByte(t *testing.T) {
	w := &watcher{}
	c := start(t, child("liar", "hang"), w)
	tapInput(t, c)
	deafSoon(c)
	in := c.Input()
	for full := 0; full < 3; { // three failures in a row, because one deadline may have passed before its write began
		in.SetWriteDeadline(time.Now().Add(100 * time.Millisecond)) // each attempt has its own
		if _, err := in.Write(make([]byte, 1)); err == nil {
			full = -1
		}
		full++
	}
	in.SetWriteDeadline(time.Time{})
	s := c.OpenedSession("s")
	call := provider.NewCall("r")
	_, err := s.Prompt(call, text(big)).Answer()
	isDeaf(t, "prompt", err)
	if call.MayHaveLeft() || w.prompts() != 1 {
		t.Errorf("may have left: %v", call.MayHaveLeft())
	}
}
