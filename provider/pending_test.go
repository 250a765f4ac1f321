package provider

import (
	"encoding/json"
	"testing"
)

// TestAnswerBeforeTheEnd checks that an answer counts if it arrived before the agent's end. This holds even if Perlica
// notices the end first.
func TestAnswerBeforeTheEnd(t *testing.T) {
	c := &Conn{gone: make(chan struct{}), err: &Error{Type: TypeGone}}
	close(c.gone)
	for range 100 {
		p := &pendingCall{
			conn: c, method: "session/prompt", out: unsent(nil), arrived: make(chan struct{}),
			answer: Message{Result: json.RawMessage("{}")},
		}
		close(p.arrived)
		if _, err := p.waitResponse(t.Context()); err != nil {
			t.Fatalf("got %v, want the answer", err)
		}
	}
}
