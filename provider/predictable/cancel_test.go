package predictable

import (
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/perlica/perlica/provider/agentside"
)

func (c *client) cancel() {
	c.t.Helper()
	c.writeLine(`{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":` + quote(c.sid) + `}}`)
}

// TestCancelAtOnce checks that a cancel immediately after its prompt always cancels the turn, in 500 tries.
func TestCancelAtOnce(t *testing.T) {
	c := open(t, Options{})
	for _, script := range []string{"@hang", "@sleep 1h", "@stream 999999999 200 every=1ms", "@request nobody wait=yes"} {
		c.reply = respond("") // the client never answers the request
		for range 125 {
			id := c.request("session/prompt", promptParams(c.sid, script))
			c.cancel()
			if m, _ := c.awaitResponse(id); stopReason(t, m) != "cancelled" {
				t.Fatalf("%s: %s", script, m.Result)
			}
		}
	}
}

// TestCancelAnswersOnce sends cancels at the end of short turns. It checks that each prompt gets exactly one response,
// and that the session accepts the next prompt.
func TestCancelAnswersOnce(t *testing.T) {
	c := open(t, Options{})
	for range 500 {
		id := c.request("session/prompt", promptParams(c.sid, "hello"))
		c.cancel()
		m, _ := c.awaitResponse(id)
		if r := stopReason(t, m); r != "cancelled" && r != "end_turn" {
			t.Fatalf("%s", m.Result)
		}
	}
	c.in.Close()
	if l := c.line(); l != "" {
		t.Errorf("more: %q", l)
	}
}

func TestCancelWhileAsking(t *testing.T) {
	c := open(t, Options{})
	c.reply = func(_ string, m agentside.Message) string {
		c.cancel()
		return `"result":{"outcome":{"outcome":"cancelled"}}`
	}
	text, m, _ := c.prompt("@ask execute ls\n@say never")
	if text != "permission: cancelled\n" || stopReason(t, m) != "cancelled" {
		t.Errorf("%q %s", text, m.Result)
	}
}

func TestCancelIgnored(t *testing.T) {
	c := open(t, Options{})
	id := c.request("session/prompt", promptParams(c.sid, "@request hello\n@ignore cancel"))
	c.cancel()
	c.reply = func(string, agentside.Message) string { c.cancel(); return `"result":1` }
	if m, _ := c.awaitResponse(id); stopReason(t, m) != "end_turn" {
		t.Errorf("%s", m.Result)
	}
}

func TestCancelCaught(t *testing.T) {
	c := open(t, Options{})
	id := c.request("session/prompt", promptParams(c.sid, "@hang\n@cancelled\n@say sorry\n@error 5 aborted"))
	c.cancel()
	m, lines := c.awaitResponse(id)
	if textOf(lines) != "sorry" || string(m.Error) != `{"code":5,"message":"aborted"}` {
		t.Errorf("%q %s", textOf(lines), m.Error)
	}
}

// TestCancelScripted checks that a script for session/cancel replaces the default effect of a cancel.
func TestCancelScripted(t *testing.T) {
	c := open(t, Options{Scenario: "[session/cancel 1]\n@say not yet\n[session/cancel 2]\n@cancel"})
	id := c.request("session/prompt", promptParams(c.sid, "@hang"))
	c.cancel()
	if got := textOf([]string{c.line()}); got != "not yet" {
		t.Errorf("%q", got)
	}
	c.cancel()
	if m, _ := c.awaitResponse(id); stopReason(t, m) != "cancelled" {
		t.Errorf("%s", m.Result)
	}
}

func TestCancelNothing(t *testing.T) {
	c := open(t, Options{})
	c.cancel()
	c.writeLine(`{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"other"}}`)
	c.writeLine(`{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":1}}`)
	c.writeLine(`{"jsonrpc":"2.0","method":"_unknown","params":{}}`)
	if text, _, _ := c.prompt("hello"); text != "You said: hello" {
		t.Errorf("%q", text)
	}
}

// TestSecondPrompt checks that a second prompt in a session is refused. The first prompt continues and can still be
// cancelled. Another session is not delayed.
func TestSecondPrompt(t *testing.T) {
	c := open(t, Options{})
	first := c.sid
	id := c.request("session/prompt", promptParams(first, "@say up\n@hang"))
	if got := textOf([]string{c.line()}); got != "up" {
		t.Fatalf("%q", got)
	}
	if _, m, _ := c.prompt("second"); !strings.Contains(string(m.Error), "already running") {
		t.Errorf("second: %s %s", m.Result, m.Error)
	}
	c.newSession()
	if text, _, _ := c.prompt("other"); text != "You said: other" {
		t.Errorf("other session: %q", text)
	}
	c.sid = first
	c.cancel()
	if m, _ := c.awaitResponse(id); stopReason(t, m) != "cancelled" {
		t.Errorf("first: %s", m.Result)
	}
}

// TestSessionsAtOnce checks turns that run in many sessions at the same time.
func TestSessionsAtOnce(t *testing.T) {
	c := open(t, Options{})
	var sids []string
	for range 50 {
		sids = append(sids, c.newSession())
	}
	left := map[string]bool{}
	for i, sid := range sids {
		left[c.request("session/prompt", promptParams(sid, "@stream 20 30\nturn "+strconv.Itoa(i)))] = true
	}
	for len(left) > 0 {
		var m agentside.Message
		decode(t, []byte(c.line()), &m)
		if m.Method == "" {
			delete(left, string(m.ID))
		}
	}
}

// TestTime checks the durations of directives such as @sleep and @delay on a fake clock.
func TestTime(t *testing.T) {
	for _, tt := range []struct {
		scenario, prompt string
		want             time.Duration
	}{
		{"", "@sleep 10s", 10 * time.Second},
		{"", "@delay 2s\none\ntwo\n@say three", 6 * time.Second},
		{"", "@stream 5 10 every=1s", 5 * time.Second},
		{"[start]\n@delay 3s", "one\ntwo", 6 * time.Second},
		{"", "@delay 1s\n@tool read R", 3 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			c := open(t, Options{Scenario: tt.scenario})
			begin := time.Now()
			_, m, _ := c.prompt(tt.prompt)
			if got := time.Since(begin); got != tt.want || stopReason(t, m) != "end_turn" {
				t.Errorf("%q: %v, want %v; %s", tt.prompt, got, tt.want, m.Result)
			}
		})
	}
}
