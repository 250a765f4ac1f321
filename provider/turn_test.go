package provider_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/coder/acp-go-sdk"

	"github.com/perlica/perlica/provider"
)

// TestDrained checks that Drained is called once after each burst of lines, also after an incomplete line.
func TestDrained(t *testing.T) {
	var order strings.Builder
	w := &watcher{}
	w.update = func(u provider.Update) { w.note(func() { order.WriteString(u.Text) }) }
	w.drained = func() { w.note(func() { order.WriteString("|") }) }
	burst := func(lines ...string) string { // at most as much as a pipe takes at once
		return "=" + strings.Join(lines, "\n")
	}
	a, b, c, d, e := lieSay("a")[1:], lieSay("b")[1:], lieSay("c")[1:], lieSay("d")[1:], lieSay("e")[1:]
	s := open(t, start(t, lies(burst(a, b, c, ""), "<", burst(d, e[:20]), "<", burst(e[20:], lieEnd[1:], "")), w))
	w.waitFor(t, "the set-up's two answers", func() bool { return order.String() == "||" })
	w.note(order.Reset)
	upTo := func(want string) {
		t.Helper()
		w.waitFor(t, want, func() bool { return order.Len() >= len(want) })
		if got := order.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	turn := s.Prompt(provider.NewCall("r"), text("x"))
	for _, want := range []string{"abc|", "abc|d|"} {
		upTo(want)
		if err := s.Cancel(); err != nil {
			t.Fatal(err)
		}
	}
	upTo("abc|d|e|")
	if _, err := turn.Answer(); err != nil {
		t.Error(err)
	}
}

// TestThePromptOnTheWire checks that for any content and any session id, the request is one line of JSON that contains
// the encoded prompt unchanged.
func TestThePromptOnTheWire(t *testing.T) {
	const session = "s\"\n\r\u2028<&>\x00\\"
	id, err := json.Marshal(session)
	if err != nil {
		t.Fatal(err)
	}
	w := &watcher{}
	c := start(t, child("liar", "<", `>{"id":0,"result":{"protocolVersion":1}}`, "<",
		`>{"id":1,"result":{"sessionId":`+string(id)+`}}`, "echo 8"), w)
	s := open(t, c)
	for _, said := range []string{
		"", "two\nlines\r\n", "\u2028 and \u2029", "invalid \xff\xc3 UTF-8", "<script>&amp;</script>", `"}],"sessionId":"x"}`,
		"\x00\x1f\x7f", "\u00e9\U0001f980",
	} {
		prompt := text(said)
		blocks := []acp.ContentBlock{acp.TextBlock(said), acp.ResourceLinkBlock(said, "file:///x")}
		theirs, err := json.Marshal(blocks)
		ours, oerr := provider.NewPrompt(blocks)
		var a, b any
		if errors.Join(err, oerr, json.Unmarshal(theirs, &a), json.Unmarshal(ours, &b)) != nil || !reflect.DeepEqual(a, b) {
			t.Errorf("%q: %s, the SDK writes %s", said, ours, theirs)
		}
		turn := s.Prompt(provider.NewCall(said), prompt)
		<-turn.Sent()
		line := w.lines(true)[len(w.lines(true))-1]
		var v struct {
			ID     int
			Method string
			Params map[string]json.RawMessage
		}
		if strings.ContainsAny(line, "\r\n") || json.Unmarshal([]byte(line), &v) != nil || v.Method != "session/prompt" {
			t.Errorf("%q: %q", said, line)
		}
		var to string
		if err := json.Unmarshal(v.Params["sessionId"], &to); err != nil || to != session ||
			string(v.Params["prompt"]) != string(prompt) || len(v.Params) != 2 {
			t.Errorf("%q: to %q, %v: %s", said, to, err, line)
		}
	}
	w.waitFor(t, "the echoes", func() bool { // the echoes of the received lines, byte for byte
		n := 0
		for _, f := range w.wire {
			for _, g := range w.wire {
				if f.sent && !g.sent && f.Method == "session/prompt" && strings.Contains(string(g.Line),
					`"params":`+string(f.Line)+`}`) {
					n++
				}
			}
		}
		return n == 8
	})
}

// TestNoPrompt checks that a prompt that is not JSON on one line does not leave and does not use up the call.
func TestNoPrompt(t *testing.T) {
	w := &watcher{}
	s := open(t, start(t, lies(lieEnd), w))
	call := provider.NewCall("r")
	for _, prompt := range []string{"", "]", "[}", "[\n]", `[]}}{"method":"session/prompt"`} {
		turn := s.Prompt(call, provider.Prompt(prompt))
		<-turn.Sent()
		if _, err := turn.Answer(); err == nil || call.MayHaveLeft() || w.prompts() != 0 {
			t.Errorf("%q: %v, may have left: %v", prompt, err, call.MayHaveLeft())
		}
	}
}

// TestTurn checks that Answered is closed by an answer that arrives before the prompt was read. After the agent is
// ended, the caller gets that answer, and MayHaveLeft reports true.
func TestTurn(t *testing.T) {
	w := &watcher{}
	c := start(t, child("liar",
		"<", `>{"id":0,"result":{"protocolVersion":1}}`, "<", `>{"id":1,"result":{"sessionId":"s"}}`, "peek", lieEnd, lieEnd,
		"hang"), w)
	call := provider.NewCall("r")
	turn := open(t, c).Prompt(call, text(big))
	select {
	case <-turn.Answered():
	case <-time.After(time.Minute):
		t.Fatal("no answer")
	}
	w.waitFor(t, "the second answer", func() bool { return len(w.warnings) == 1 })
	select {
	case <-turn.Sent():
		t.Error("nobody has read it")
	default:
	}
	if !call.MayHaveLeft() {
		t.Error("some of it was read")
	}
	c.Kill()
	<-turn.Sent()
	for range 2 {
		if a, err := turn.Answer(); err != nil || a.StopReason != "end_turn" || !call.MayHaveLeft() {
			t.Errorf(`got %+v, %v; want err == nil && a.StopReason == "end_turn" && call.MayHaveLeft()`, a, err)
		}
	}
}

// TestATurnWithoutAWriter checks that a prompt that was queued when the agent ended is never sent, and its turn ends.
func TestATurnWithoutAWriter(t *testing.T) {
	w := &watcher{}
	c := start(t, child("liar", "<", `>{"id":0,"result":{"protocolVersion":1}}`, "<",
		`>{"id":1,"result":{"sessionId":"s"}}`, "hang"), w)
	s := open(t, c)
	c.Kill()
	for range 50 { // the writer may have returned before or after the prompt is queued
		call := provider.NewCall("r")
		turn := s.Prompt(call, text("x"))
		<-c.Gone()
		var e *provider.Error
		if _, err := turn.Answer(); !errors.As(err, &e) || e.Type != provider.TypeStopped || call.MayHaveLeft() {
			t.Errorf("%v, may have left: %v", err, call.MayHaveLeft())
		}
	}
	if w.prompts() != 0 {
		t.Errorf("%d prompts", w.prompts())
	}
}
