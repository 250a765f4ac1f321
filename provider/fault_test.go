package provider_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/perlica/perlica/provider"
)

// TestLeavesInTheTurn checks that if the agent ends during a turn, the error names the cause and the agent's last
// words. Earlier updates are kept, and MayHaveLeft reports true.
func TestLeavesInTheTurn(t *testing.T) {
	for name, tt := range map[string]struct {
		prompt, text string
		subtype      string
		message      []string
	}{
		"exits": {"@say partial\n@stderr first words\n@stderr out of luck\n@exit 3", "partial",
			"exited", []string{"code 3", "its last words: out of luck"}},
		"exits well": {"@exit 0", "", "exited", []string{"code 0"}},
		"in the middle of a line": {"@say partial\n@bytes {\"jsonrpc\":\n@exit 1", "partial", "exited",
			[]string{"code 1"}},
		"closes its output": {"@say partial\n@close\n@hang", "partial", "output_closed",
			[]string{"closed its output"}},
		"leaves a child that holds its output": {"@spawn 10m stdout\n@say partial\n@exit 5", "", "exited",
			[]string{"code 5"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := &watcher{}
			c := start(t, child("ok"), w)
			call := provider.NewCall("r")
			done := promptAsync(open(t, c), call, tt.prompt)
			var err error
			select {
			case got := <-done:
				err = got.err
			case <-time.After(2 * time.Minute):
				t.Fatal("the prompt does not end")
			}
			var e *provider.Error
			if !errors.As(err, &e) || !errors.Is(err, provider.ErrGone) || e.Type != provider.TypeGone ||
				e.Subtype != tt.subtype || e.Method != "session/prompt" || e.RequestID != "2" || !call.MayHaveLeft() {
				t.Fatalf("%#v", err)
			}
			for _, m := range tt.message {
				if !strings.Contains(e.Message, m) {
					t.Errorf("message %q lacks %q", e.Message, m)
				}
			}
			if !strings.HasSuffix(w.said(), tt.text) {
				t.Errorf("said %q, want %q", w.said(), tt.text)
			}
			end(t, c)
		})
	}
}

// TestAnswerWithoutLineFeed checks that the last line counts even without a line feed.
func TestAnswerWithoutLineFeed(t *testing.T) {
	w := &watcher{}
	_, got := run(t, lies(lieSay("x"), "="+lieEnd[1:], "exit 0"), w, "x")
	if got.err != nil || got.StopReason != "end_turn" || w.said() != "x" {
		t.Errorf(`got %+v, %q; want got.err == nil && got.StopReason == "end_turn" && w.said() == "x"`, got, w.said())
	}
}

// TestSlowClientOfTheGone checks that output that the agent wrote before it ended is read completely, even by a slow
// client.
func TestSlowClientOfTheGone(t *testing.T) {
	const n = 300 // lines of 200 bytes, which together fit into a pipe
	var c *provider.Conn
	w := &watcher{}
	w.update = func(provider.Update) { <-c.Exited() }
	script := []string{}
	for range n {
		script = append(script, lieSay("x"))
	}
	c = start(t, lies(append(script, lieEnd, "exit 0")...), w)
	got, err := open(t, c).Prompt(provider.NewCall("r"), text("x")).Answer()
	if err != nil || got.StopReason != "end_turn" || len(w.said()) != n {
		t.Errorf("%d of %d, %v", len(w.said()), n, err)
	}
}

// TestCancel cancels the prompt of an agent that does not answer. The agent must then answer this prompt, and also the
// next one.
func TestCancel(t *testing.T) {
	w := &watcher{}
	s := open(t, start(t, child("ok"), w))
	done := promptAsync(s, provider.NewCall("r"), "@say working\n@hang")
	w.waitFor(t, "an update", func() bool { return len(w.updates) == 1 })
	if err := s.Cancel(); err != nil {
		t.Fatal(err)
	}
	if got := <-done; got.err != nil || got.StopReason != "cancelled" {
		t.Errorf(`got %+v; want got.err == nil && got.StopReason == "cancelled"`, got)
	}
	if err := s.Cancel(); err != nil { // without a running turn this does nothing
		t.Error(err)
	}
	got, err := s.Prompt(provider.NewCall("r2"), text("@say again")).Answer()
	if err != nil || got.StopReason != "end_turn" {
		t.Errorf(`got %+v, %v; want err == nil && got.StopReason == "end_turn"`, got, err)
	}
}

// TestLastWordsAreRecorded checks that all output is recorded until the agent has ended, also during End.
func TestLastWordsAreRecorded(t *testing.T) {
	var c *provider.Conn
	w := &watcher{received: func(f provider.Frame) error {
		if f.Method == "_vendor/bye" { // block as a slow disk does, until long after the agent's end
			<-c.Exited()
			for range 10_000 {
				runtime.Gosched()
			}
		}
		return nil
	}}
	c = start(t, child("ok", "[eof]\n@notify _vendor/bye"), w)
	open(t, c)
	if err := c.End(context.Background()); err != nil {
		t.Fatal(err)
	}
	lines := w.lines(false)
	if last := lines[len(lines)-1]; !strings.Contains(last, "_vendor/bye") {
		t.Errorf("the last line is %s", last)
	}
	if e, ok := c.Exit(); !ok || e.Code != 0 || e.Forced != "" {
		t.Errorf(`got %v; want ok && e.Code == 0 && e.Forced == ""`, e)
	}
}

// TestKill checks that Kill ends a prompt at once, even if the agent ignores everything.
func TestKill(t *testing.T) {
	w := &watcher{}
	c := start(t, lies(lieSay("x"), "hang"), w, func(o *provider.Options) { o.Grace = time.Hour })
	s := open(t, c)
	call := provider.NewCall("r")
	done := promptAsync(s, call, "x")
	w.waitFor(t, "an update", func() bool { return len(w.updates) == 1 })
	sent := len(w.lines(true))
	c.Kill()
	var e *provider.Error
	if got := <-done; !errors.As(got.err, &e) || e.Type != provider.TypeStopped || !call.MayHaveLeft() {
		t.Errorf("got %+v; want errors.As(got.err, &e) && e.Type == provider.TypeStopped && call.MayHaveLeft()", got)
	}
	if err := s.Cancel(); !errors.As(err, &e) || e.Type != provider.TypeStopped {
		t.Errorf("got %v; want errors.As(err, &e) && e.Type == provider.TypeStopped", err)
	}
	if n := len(w.lines(true)); n != sent {
		t.Errorf("%d lines were sent after it", n-sent)
	}
}

// TestAnswerBeforeTheEndOfThePrompt checks that an agent may answer and exit before it has read the whole prompt. The
// answer counts, although writing the rest fails.
func TestAnswerBeforeTheEndOfThePrompt(t *testing.T) {
	w := &watcher{}
	s := open(t, start(t, child("liar",
		"<", `>{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1}}`,
		"<", `>{"jsonrpc":"2.0","id":1,"result":{"sessionId":"s"}}`,
		"peek", lieSay("enough"), lieEnd, "exit 0"), w))
	a, err := s.Prompt(provider.NewCall("run"), text(strings.Repeat("x", 4<<20))).Answer()
	if err != nil || a.StopReason != "end_turn" || w.said() != "enough" {
		t.Errorf("%+v, %v, said %q", a, err, w.said())
	}
}
