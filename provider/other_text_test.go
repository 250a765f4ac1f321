package provider_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/perlica/perlica/provider"
)

// TestUnreadableAnswer checks an answer that is not one line with one message. The wait for the answer must end at
// once, and the error must show the line. An answer to another request or a text without a message ends no wait.
func TestUnreadableAnswer(t *testing.T) {
	const answer = `{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1}}`
	lines := func(s string) []string { return strings.Split(">"+strings.ReplaceAll(s, "\n", "\n>"), "\n") }
	indented := func(prefix string) string {
		var b bytes.Buffer
		_ = json.Indent(&b, []byte(answer), prefix, "  ") // answer is JSON
		return prefix + b.String()
	}
	for _, text := range []string{
		"Loaded cached credentials." + answer, "\x1b[?25h" + answer, "\uFEFF" + answer, answer + answer, answer + " done",
		"{config} " + answer, `level=info msg={"a":1} ` + answer, "\xff" + answer,
		`{"jsonrpc":"2.0","id":0,"id":0,"result":{"protocolVersion":1}}`,
		`{"id":0,"result":{},"result":{"protocolVersion":1}}`,
		`{"id":7,"id":0,"result":{"protocolVersion":1}}`, `{"jsonrpc":"2.0","result":{"protocolVersion":1}}`,
		`log {"id":"0","result":{"protocolVersion":1}}`, indented(""), indented("    "), indented("\t"),
		"{\n" + strings.TrimPrefix(answer, "{"),
		strings.ReplaceAll(indented(""), "\n", "\r\n"), "{ never ends\n}\n" + indented(""),
	} {
		c := start(t, child("liar", append([]string{"<"}, lines(text)...)...), &watcher{})
		_, err := c.Initialize(t.Context(), "test")
		var e *provider.Error
		if !errors.As(err, &e) || e.Subtype != "unreadable_answer" || !errors.Is(err, provider.ErrProtocol) ||
			!strings.Contains(e.Message, "protocolVersion") {
			t.Errorf("%q: %v", text, err)
		}
		end(t, c)
	}
	for _, text := range []string{
		"x" + strings.Replace(answer, `:0,`, `:7,`, 1), "Welcome {to} the agent", strings.Repeat("{", 100) + "x",
		`{"level":"info","error":"none"}`,
		`{"jsonrpc":"2.0"}`, `user {"id":0,"name":"n"}`, "{\n  \"id\": 7,\n  \"result\": {}\n}", "{\n}",
		"{\n  \"error\": 1\n}",
	} {
		c := start(t, child("liar", append(append([]string{"<"}, lines(text)...), ">"+answer)...), &watcher{})
		if _, err := c.Initialize(t.Context(), "test"); err != nil {
			t.Errorf("%q: got %v; want err == nil", text, err)
		}
		end(t, c)
	}
}

// TestAnswerWithATextID checks that an id that is written as a text names the request with these digits.
func TestAnswerWithATextID(t *testing.T) {
	c := start(t, child("liar", "<", `>{"jsonrpc":"2.0","id":"0","result":{"protocolVersion":1}}`), &watcher{})
	if _, err := c.Initialize(t.Context(), "test"); err != nil {
		t.Error(err)
	}
	end(t, c)
}

// TestRequestInOtherText checks that a request in one line with other text is refused, so that the agent does not wait
// for ever.
func TestRequestInOtherText(t *testing.T) {
	c := start(t, child("liar", "<", `>log: {"jsonrpc":"2.0","id":"q","method":"session/request_permission","params":{}}`,
		"<",
		`>{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1}}`), &watcher{})
	if _, err := c.Initialize(t.Context(), "test"); err != nil { // the agent answers after it got the refusal
		t.Error(err)
	}
	end(t, c)
}

// TestEcho checks that a program that sends Perlica's own request back does not speak the protocol, and the error says
// so.
func TestEcho(t *testing.T) {
	c := start(t, child("liar", "<", `>{"jsonrpc":"2.0","id":0,"method":"initialize","params":{}}`), &watcher{})
	_, err := c.Initialize(t.Context(), "test")
	var e *provider.Error
	if !errors.As(err, &e) || e.Subtype != "echo" || !strings.Contains(e.Message,
		"sent our own request back: it does not speak ACP") {
		t.Error(err)
	}
	end(t, c)
}
