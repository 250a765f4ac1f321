package acp

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/interaction"
	"github.com/perlica/perlica/kernel"
)

// TestDismissed checks a client that closes a question without choosing an option. This is not an answer: neither the
// record nor the agent gets a no.
func TestDismissed(t *testing.T) {
	for name, result := range map[string]string{
		"cancelled":              `"result":{"outcome":{"outcome":"cancelled"},"_meta":{"x":1}}`,
		"an error":               `"error":{"code":-32603,"message":"no"}`,
		"an option that is none": `"result":{"outcome":{"outcome":"selected","optionId":"perlica:remember-session"}}`,
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, nil, nil)
			id, q := w.ask("@ask execute Build command=make")
			answer := fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,%s}`, q.ID, result)
			w.send(answer)
			if _, before := w.until(id); strings.Contains(text(before), "allow") || strings.Contains(text(before), "reject") {
				t.Error(before)
			}
			if slices.Contains(w.agentRead(), answer) == strings.Contains(name, "option") {
				t.Errorf("the agent got %q", w.agentRead())
			}
			if n := len(w.events("one", event.InteractionAnswered)); n != 0 {
				t.Errorf("%d answers on record", n)
			}
			lapsed := w.events("one", event.InteractionLapsed)
			if len(lapsed) != 1 || !strings.Contains(string(lapsed[0].Payload), string(interaction.Dismissed)) {
				t.Error(lapsed)
			}
		})
	}
}

// TestDeafClient checks that Perlica ends although the client stops reading.
func TestDeafClient(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	out := &deaf{reached: make(chan struct{})}
	o := newOutput(out, func(error) {}, func() {})
	defer context.AfterFunc(ctx, o.liftLimits)()
	added := make(chan struct{})
	go func() {
		defer close(added)
		for range 2 * outLines {
			o.addLine([]byte("x"), nil)
		}
	}()
	<-out.reached
	cancel()
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		<-added
		o.closeQueue()
	}()
	select {
	case <-closed:
	case <-time.After(timeout):
		t.Fatal("the queue to a client that does not read is not closed")
	}
}

// deaf never accepts a byte.
type deaf struct{ reached chan struct{} }

func (d *deaf) Write([]byte) (int, error) {
	close(d.reached)
	select {}
}

var _ io.Writer = (*deaf)(nil)

// TestClosed checks that a session closed by the client is free. The chat can continue it, and the
// client can continue the chat's session.
func TestClosed(t *testing.T) {
	env := []string{"PERLICA_PREDICTABLE_STATE=" + t.TempDir()}
	w := newWorld(t, env, nil)
	s := w.session("one")
	w.until(w.prompt(s, "@say first"))
	intents := w.events("one", event.Requested)
	w.mu.Lock()
	place := w.places[w.path("one")]
	w.mu.Unlock()
	setup := place.Setup(w.path("one"))
	setup.Session, setup.Limit = intents[0].Session, "ask"
	if _, err := place.Runner.Converse(t.Context(), setup, 0, "chat"); err == nil {
		t.Error("the session is the client's and the chat's at once")
	}
	w.until(w.request("session/close", map[string]string{"sessionId": s}))
	c, err := place.Runner.Converse(t.Context(), setup, 0, "chat")
	if err != nil {
		t.Fatal(err)
	}
	res, err := c.Run(t.Context(), kernel.Turn{Input: kernel.Input{ID: "chat-1", Text: "@say second", Source: "chat"}})
	if err != nil || res.Text != "second" {
		t.Error(res, err)
	}
	var talks []string
	for _, e := range w.events("one", event.Requested) {
		talks = append(talks, string(e.Session)+string(e.Conversation))
	}
	if len(talks) != 2 || talks[0] != talks[1] {
		t.Errorf("the agent's session is another: %q", talks)
	}
	load := map[string]any{"sessionId": s, "cwd": w.path("one"), "mcpServers": []any{}}
	w.until(w.request("session/load", load))
	if m, _ := w.until(w.prompt(s, "@say never")); m.Error == nil || !strings.Contains(m.Error.Message, "chat") {
		t.Errorf("while the chat has it: %s", m.line)
	}
	if err := c.Close(t.Context()); err != nil {
		t.Error(err)
	}
	w.until(w.request("session/load", load))
	if m, before := w.until(w.prompt(s, "@say third")); m.Result.StopReason != "end_turn" || text(before) != "third" {
		t.Error(m.line, before)
	}
}

// TestForeignID checks that a session named during another session's turn does not belong to that
// turn.
func TestForeignID(t *testing.T) {
	env := []string{"PERLICA_PREDICTABLE_STATE=" + t.TempDir()}
	w := newWorld(t, env, nil)
	s := w.session("one")
	w.until(w.prompt(s, "@say old"))
	w.stop()
	w.start(env, nil)
	other := w.session("two")
	turn, _ := w.prompt(other, "@say now\n@hang"), w.next()
	// This request names the session s during the other session's turn. Its lines must not be recorded in that turn.
	w.until(w.request("session/set_mode", map[string]string{"sessionId": s, "modeId": "ask"}))
	w.until(w.request("session/load", map[string]any{"sessionId": s, "cwd": w.path("one"), "mcpServers": []any{}}))
	w.send(fmt.Sprintf(`{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":%q}}`, other))
	w.until(turn)
	for _, e := range w.events("two", event.NotificationReceived) {
		if e.Run != "" && strings.Contains(string(e.Payload), s) {
			t.Errorf("the turn has a line of another session: %s", e.Payload)
		}
	}
}
