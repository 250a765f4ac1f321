package provider

import (
	"errors"
	"strings"
	"testing"
)

// TestAnswerInOtherText: an answer in one line with other text ends the wait for it at once, and the error
// shows the line. An answer to another request or a text without a message ends no wait.
func TestAnswerInOtherText(t *testing.T) {
	const answer = `{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1}}`
	for _, line := range []string{
		"Loaded cached credentials." + answer, "\x1b[?25h" + answer, "\uFEFF" + answer, answer + answer, answer + " done",
		"{config} " + answer, `level=info msg={"a":1} ` + answer, "\xff" + answer,
	} {
		c := start(t, child("liar", "<", ">"+line), &watcher{})
		_, err := c.Initialize(t.Context(), "test")
		var e *Error
		if !errors.As(err, &e) || e.Subtype != "answer_in_other_text" || !errors.Is(err, ErrProtocol) || !strings.Contains(e.Message, "protocolVersion") {
			t.Errorf("%q: %v", line, err)
		}
		end(t, c)
	}
	for _, line := range []string{"x" + strings.Replace(answer, `:0,`, `:7,`, 1), "Welcome {to} the agent", strings.Repeat("{", 100) + "x"} {
		c := start(t, child("liar", "<", ">"+line, ">"+answer), &watcher{})
		if _, err := c.Initialize(t.Context(), "test"); err != nil {
			t.Errorf("%q: %v", line, err)
		}
		end(t, c)
	}
}

// TestRequestInOtherText: a request in one line with other text is refused, so that the agent does not wait
// for ever.
func TestRequestInOtherText(t *testing.T) {
	c := start(t, child("liar", "<", `>log: {"jsonrpc":"2.0","id":"q","method":"session/request_permission","params":{}}`, "<",
		`>{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1}}`), &watcher{})
	if _, err := c.Initialize(t.Context(), "test"); err != nil { // the agent answers after it got the refusal
		t.Error(err)
	}
	end(t, c)
}

// TestEcho: a program that sends Perlica's own request back does not speak the protocol, and the error says
// so.
func TestEcho(t *testing.T) {
	c := start(t, child("liar", "<", `>{"jsonrpc":"2.0","id":0,"method":"initialize","params":{}}`), &watcher{})
	_, err := c.Initialize(t.Context(), "test")
	var e *Error
	if !errors.As(err, &e) || e.Subtype != "echo" || !strings.Contains(e.Message, "sent our own request back: it does not speak ACP") {
		t.Error(err)
	}
	end(t, c)
}
