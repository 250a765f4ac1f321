package model

import (
	"bufio"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/perlica/perlica/provider/agentside"
)

const hello = `data: {"choices":[{"index":0,"delta":{"content":"Hello"}}]}

`

const whole = hello + `data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}

data: [DONE]

`

const streamHead = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"

// fault is one way in which a request ends.
type fault struct {
	name    string
	read    reading // how much of the request the server reads
	answer  string  // the server writes this text and closes the connection
	reset   bool    // the server resets the connection
	secure  *secure // the TLS setup; nil means without TLS
	outcome string
	text    string // the received text of the answer
	why     string // part of the expected message
}

// reading is the part of a request that a server reads.
type reading int

const (
	all     reading = iota
	nothing         // no part
	head            // the header; the request is longer than the system's buffers
	unsent          // no request arrives
)

// serveFault is the server side of the fault.
func (f fault) serveFault(s *server, c net.Conn, r *bufio.Reader) {
	if f.reset {
		if tcp, ok := c.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0) // the connection may be gone
		}
	}
	switch f.read {
	case nothing:
		if f.reset { // without this wait, the reset could come before the connection exists
			_, _ = r.Peek(1)
		}
		return
	case head:
		if _, err := http.ReadRequest(r); err != nil {
			s.Error(err)
		}
		return
	}
	if s.readRequest(r) != nil {
		_, _ = io.WriteString(c, f.answer) // the agent may have closed the connection
	}
}

// checkOutcome compares the outcome with the expected one.
func (f fault) checkOutcome(t *testing.T, m message, p *peer, s *server) {
	t.Helper()
	if got := outcome(m); got != f.outcome || p.text() != f.text && !f.reset { // a reset loses data that is on the way
		t.Errorf("%s with the text %q, want %s with %q: %+v", got, p.text(), f.outcome, f.text, m.Error)
	}
	if m.Error != nil && (!strings.Contains(m.Error.Message, f.why) || strings.Contains(m.Error.Message, "sk-a-secret")) {
		t.Errorf("%q lacks %q, or has the key", m.Error.Message, f.why)
	}
	connections, requests := s.counts()
	want := 1
	if f.read != all {
		want = 0
	}
	if connections > 1 || connections == 0 && f.read != unsent || requests != want {
		t.Errorf("%d connections, %d requests", connections, requests)
	}
}

// status returns a response with a status, a header and a body.
func status(line, header, body string) string {
	return "HTTP/1.1 " + line + "\r\n" + header + fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(body), body)
}

// zipped returns a compressed text.
func zipped(text string) string {
	var b strings.Builder
	w := gzip.NewWriter(&b)
	_, _ = io.WriteString(w, text) // a Builder accepts all
	_ = w.Close()
	return b.String()
}

const apiFailure = `{"error":{"type":"overloaded_error","message":"Overloaded"}}`

var faults = []fault{
	{name: "a close before the request", read: nothing, outcome: "unknown"},
	{name: "a reset before the request", read: nothing, reset: true, outcome: "unknown"},
	{name: "a close in the request", read: head, outcome: "unknown"},
	{name: "a reset in the request", read: head, reset: true, outcome: "unknown"},
	{name: "a close without an answer", outcome: "unknown"},
	{name: "a reset without an answer", reset: true, outcome: "unknown"},
	{name: "half a status line", answer: "HTTP/1.1 20", outcome: "unknown"},
	{name: "half a header", answer: "HTTP/1.1 200 OK\r\nContent-Ty", outcome: "unknown"},
	{name: "a reset in the header", answer: "HTTP/1.1 200 OK\r\nContent-Ty", reset: true, outcome: "unknown"},
	{name: "no HTTP", answer: "SSH-2.0-x\r\n\r\n", outcome: "unknown"},
	{name: "a stream without an event", answer: streamHead + "\r\n", outcome: "unknown",
		why: "ended before the answer did"},
	{name: "a stream that ends in the answer", answer: streamHead + "\r\n" + hello, outcome: "unknown", text: "Hello"},
	{name: "a stream that breaks in the answer", answer: streamHead + "Content-Length: 1000\r\n\r\n" + hello,
		outcome: "unknown", text: "Hello", why: "broke"},
	{name: "a reset in the answer", answer: streamHead + "\r\n" + hello, reset: true, outcome: "unknown"},
	{name: "an event that is no JSON", answer: streamHead + "\r\n" + hello + "data: {x\n\n", outcome: "unknown",
		text: "Hello"},
	{name: "an error in the stream", answer: streamHead + "\r\n" + hello + "data: " + apiFailure + "\n\n",
		outcome: "provider error", text: "Hello", why: "Overloaded"},
	{name: "the finish reason `error`", answer: streamHead + "\r\n" + hello +
		`data: {"choices":[{"finish_reason":"error"}]}` + "\n\n", outcome: "provider error", text: "Hello"},
	{name: "a finish reason like `network_error`", answer: streamHead + "\r\n" + hello +
		`data: {"choices":[{"finish_reason":"network_error"}]}` + "\n\n", outcome: "provider error", text: "Hello",
		why: `says "network_error"`},
	{name: "a stream without a `content-type`", answer: "HTTP/1.1 200 OK\r\n\r\n" + whole, outcome: "answered",
		text: "Hello"},
	{name: "a stream called `application/json`", answer: status("200 OK", "Content-Type: application/json\r\n", whole),
		outcome: "answered", text: "Hello"},
	{name: "events without data, and pings", answer: streamHead +
		"\r\n\uFEFF\n:\n\ndata:\n\ndata\n\nevent: ping\ndata: ping\n\nevent: x\n\n" + whole, outcome: "answered",
		text: "Hello"},
	{name: "counts of tokens that are not numbers", answer: streamHead + "\r\n" +
		strings.Replace(whole, "data: [DONE]",
			`data: {"choices":[],"usage":{"prompt_tokens":[],"completion_tokens":"many","prompt_tokens_details":3}}`+
				"\n\ndata: [DONE]", 1), outcome: "answered", text: "Hello"},
	{name: "an event that is no JSON after the finish reason", answer: streamHead + "\r\n" +
		strings.Replace(whole, "[DONE]", "{x", 1), outcome: "answered", text: "Hello"},
	{name: "a stream that breaks after the answer", answer: streamHead + "Content-Length: 1000\r\n\r\n" +
		strings.TrimSuffix(whole, "data: [DONE]\n\n"), outcome: "answered", text: "Hello"},
	{name: "`[DONE]` without a reason", answer: streamHead + "\r\n" + hello + "data: [DONE]\n\n", outcome: "answered",
		text: "Hello"},
	{name: "two answers to one request", answer: status("200 OK", "Content-Type: text/event-stream\r\n", whole) +
		status("200 OK", "Content-Type: text/event-stream\r\n", whole), outcome: "answered", text: "Hello"},
	{name: "an offer to keep the connection", answer: status("200 OK",
		"Content-Type: text/event-stream\r\nConnection: keep-alive\r\n", whole), outcome: "answered", text: "Hello"},
	{name: "two answers to one request, without a length", answer: streamHead + "\r\n" + whole + streamHead + "\r\n" +
		whole, outcome: "answered", text: "Hello"},
	{name: "100 and 103 before the answer",
		answer:  "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" + streamHead + "\r\n" + whole,
		outcome: "answered", text: "Hello"},
	{name: "103 alone", answer: "HTTP/1.1 103 Early Hints\r\n\r\n", outcome: "unknown"},
	{name: "101", answer: "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: h2c\r\n\r\n",
		outcome: "unknown"},
	{name: "200 with JSON", answer: status("200 OK", "Content-Type: application/json\r\n", `{"choices":[]}`),
		outcome: "unknown", why: "no event stream"},
	{name: "200 with the whole answer as JSON", answer: status("200 OK", "Content-Type: application/json\r\n",
		`{"choices":[{"index":0,"message":{"content":"Hello"},"finish_reason":"stop"}]}`), outcome: "answered",
		text: "Hello"},
	{name: "200 with half the answer as JSON", answer: status("200 OK", "Content-Type: application/json\r\n",
		`{"choices":[{"index":0,"message":{"content":"Hel`), outcome: "unknown"},
	{name: "a stream compressed with `gzip` unasked", answer: status("200 OK",
		"Content-Type: text/event-stream\r\nContent-Encoding: GZip\r\n", zipped(whole)), outcome: "answered", text: "Hello"},
	{name: "a stream called `gzip` that is not", answer: status("200 OK", "Content-Encoding: gzip\r\n", whole),
		outcome: "answered", text: "Hello"},
	{name: "a stream called `deflate` and `gzip` that is neither",
		answer: status("200 OK", "Content-Encoding: deflate, gzip\r\n", whole), outcome: "answered", text: "Hello"},
	{name: "half a stream compressed with `gzip`", answer: status("200 OK", "Content-Encoding: gzip\r\n",
		zipped(whole)[:40]), outcome: "unknown"},
	{name: "a stream called `br` that is not", answer: status("200 OK",
		"Content-Type: text/event-stream\r\nContent-Encoding: br\r\n", whole), outcome: "answered", text: "Hello"},
	{name: "a stream compressed with `br` unasked", answer: status("200 OK",
		"Content-Type: text/event-stream\r\nContent-Encoding: br\r\n", "\x1b\x0f\x00\xf8\xa5"), outcome: "unknown",
		why: `the encoding "br", which was not asked for`},
	{name: "400 with the API's error, called `br`", answer: status("400 Bad Request", "Content-Encoding: br\r\n",
		apiFailure), outcome: "provider error", why: "Overloaded"},
	{name: "a finish reason that is no text", answer: streamHead + "\r\n" + hello +
		`data: {"choices":[{"finish_reason":5}]}` + "\n\ndata: [DONE]\n\n", outcome: "provider error", text: "Hello",
		why: `says "5"`},
	{name: "301", answer: status("301 Moved Permanently", "Location: /elsewhere\r\n", ""), outcome: "provider error",
		why: "not followed"},
	{name: "307", answer: status("307 Temporary Redirect", "Location: /elsewhere\r\n", ""), outcome: "provider error",
		why: "not followed"},
	{name: "308", answer: status("308 Permanent Redirect", "Location: /elsewhere\r\n", ""), outcome: "provider error",
		why: "not followed"},
	{name: "400 with the API's error", answer: status("400 Bad Request", "", `{"error":{"message":"unknown member"}}`),
		outcome: "provider error", why: "unknown member"},
	{name: "401", answer: status("401 Unauthorized", "", ""), outcome: "provider error"},
	{name: "401 with a challenge", answer: status("401 Unauthorized", "WWW-Authenticate: Bearer\r\n", ""),
		outcome: "provider error"},
	{name: "404 with a page", answer: status("404 Not Found", "Content-Type: text/html\r\n", "<h1>no</h1>"),
		outcome: "provider error"},
	{name: "408", answer: status("408 Request Timeout", "Connection: close\r\n", ""), outcome: "unknown"},
	{name: "429 with `retry-after`", answer: status("429 Too Many Requests", "Retry-After: 30\r\nX-Request-Id: req_1\r\n",
		""), outcome: "provider error", why: "request id req_1; retry after 30"},
	{name: "499", answer: status("499 Client Closed Request", "", ""), outcome: "unknown"},
	{name: "500 with a page", answer: status("500 Internal Server Error", "Content-Type: text/html\r\n", "<h1>oops</h1>"),
		outcome: "unknown", why: "oops"},
	{name: "500 with the API's error", answer: status("500 Internal Server Error", "", apiFailure),
		outcome: "provider error", why: "Overloaded"},
	{name: "503 with `retry-after`", answer: status("503 Service Unavailable", "Retry-After: 1\r\n", ""),
		outcome: "unknown", why: "retry after 1"},
	{name: "504 with a page", answer: status("504 Gateway Timeout", "", "nginx"), outcome: "unknown"},
	{name: "529 with the API's error", answer: status("529 Overloaded", "", apiFailure), outcome: "provider error",
		why: "Overloaded"},
	{name: "HTTP/2 and HTTP/1.1 offered", secure: &secure{protocols: []string{"h2", "http/1.1"}},
		answer: streamHead + "\r\n" + whole, outcome: "answered", text: "Hello"},
	{name: "HTTP/2 alone offered", secure: &secure{demand: "h2"}, read: unsent, outcome: "provider error", why: "tls"},
	{name: "an untrusted certificate", secure: &secure{distrusted: true}, read: unsent, outcome: "provider error",
		why: "certificate"},
	{name: "a proxy", secure: &secure{proxy: "200 Connection established"}, answer: streamHead + "\r\n" + whole,
		outcome: "answered", text: "Hello"},
	{name: "a proxy that refuses (403)", secure: &secure{proxy: "403 Forbidden"}, read: unsent, outcome: "provider error",
		why: "Forbidden"},
	{name: "a proxy that wants a password (407)", secure: &secure{proxy: "407 Proxy Authentication Required"},
		read: unsent, outcome: "provider error", why: "Proxy Authentication Required"},
	{name: "a proxy that closes the connection", secure: &secure{breaks: true}, read: unsent, outcome: "provider error"},
	{name: "a proxy, and no answer", secure: &secure{proxy: "200 Connection established"}, outcome: "unknown"},
}

// TestOnce checks that at most one request reaches the server, even after a failure, and that the outcome matches the
// known facts. docs/models.md shows the cases.
func TestOnce(t *testing.T) {
	for _, f := range faults {
		if f.secure != nil {
			continue // TestSecure checks these cases
		}
		t.Run(f.name, func(t *testing.T) {
			s := listen(t, f.serveFault)
			p := connect(t, Settings{API: openAIChat, Model: "m", BaseURL: s.url, Key: "sk-a-secret"}, true)
			text := "Hi"
			if f.read == head {
				text = strings.Repeat("Hi ", 1<<20)
			}
			f.checkOutcome(t, p.awaitAnswer(p.sendPrompt(p.session(), text), nil), p, s)
		})
	}
}

// TestNothingListens checks that without a connection nothing was sent.
func TestNothingListens(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	p := connect(t, Settings{API: anthropic, Model: "m", BaseURL: "http://" + l.Addr().String()}, false)
	if m := p.awaitAnswer(p.sendPrompt(p.session(), "Hi"), nil); outcome(m) != "provider error" {
		t.Errorf(`got %+v; want outcome(m) == "provider error"`, m)
	}
}

// TestEachTurnOnce checks that each turn of a session is one request on its own connection and contains the earlier
// turns.
func TestEachTurnOnce(t *testing.T) {
	s := listen(t, func(s *server, c net.Conn, r *bufio.Reader) {
		for s.readRequest(r) != nil { // as long as the connection is used
			if _, err := io.WriteString(c, status("200 OK", "Content-Type: text/event-stream\r\nConnection: keep-alive\r\n",
				whole)); err != nil {
				return
			}
		}
	})
	p := connect(t, Settings{API: openAIChat, Model: "m", BaseURL: s.url}, true)
	id := p.session()
	for _, text := range []string{"one", "two", "three"} {
		if m := p.awaitAnswer(p.sendPrompt(id, text), nil); outcome(m) != "answered" {
			t.Fatalf(`got %+v; want outcome(m) == "answered"`, m.Error)
		}
	}
	connections, requests := s.counts()
	if connections != 3 || requests != 3 {
		t.Errorf("%d connections, %d requests", connections, requests)
	}
	for _, word := range []string{`"one"`, `"Hello"`, `"two"`, `"three"`} {
		if !strings.Contains(s.bodies[2], word) {
			t.Errorf("%s lacks %s", s.bodies[2], word)
		}
	}
}

// TestNoLeave checks that nothing leaves before the client agrees, and the client is told about the request before it
// leaves.
func TestNoLeave(t *testing.T) {
	s := listen(t, func(s *server, c net.Conn, r *bufio.Reader) {
		if s.readRequest(r) != nil {
			_, _ = io.WriteString(c, streamHead+"\r\n"+whole)
		}
	})
	p := connect(t, Settings{API: openAIChat, Model: "m", BaseURL: s.url}, true)
	id := p.session()
	p.agree = func(json.RawMessage) *agentside.Error {
		if c, _ := s.counts(); c != 0 {
			t.Error("a connection before the client's word")
		}
		return &agentside.Error{Code: -32800, Message: "the log failed"}
	}
	if m := p.awaitAnswer(p.sendPrompt(id, "Hi"), nil); outcome(m) != "provider error" ||
		!strings.Contains(m.Error.Message, "nothing was sent") {
		t.Errorf(`got %+v; want outcome(m) == "provider error" && strings.Contains(m.Error.Message, "nothing was sent")`, m)
	}
	p.agree = func(json.RawMessage) *agentside.Error { // the cancel arrives while the client is asked
		p.writeLine(fmt.Sprintf(`{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":%q}}`, id))
		return nil
	}
	if m := p.awaitAnswer(p.sendPrompt(id, "Hi"), nil); outcome(m) != "cancelled" {
		t.Errorf(`got %+v; want outcome(m) == "cancelled"`, m)
	}
	if c, n := s.counts(); n > 1 || c > 1 {
		t.Errorf("%d connections, %d requests", c, n)
	}
}

// cancels are the points at which a cancel arrives. If the agent has sent a text before that point, text is
// that text.
var cancels = []struct {
	name     string
	scheme   string
	read     reading
	answer   string
	text     string
	requests int
}{
	{name: "in the TLS handshake", scheme: "https", read: unsent},
	{name: "in the request", read: head},
	{name: "before the answer", requests: 1},
	{name: "behind an early answer", answer: "HTTP/1.1 103 Early Hints\r\n\r\n", requests: 1},
	{name: "in the header", answer: streamHead, requests: 1},
	{name: "before the first event", answer: streamHead + "\r\n: ping\n\n", requests: 1},
	{name: "in the stream", answer: streamHead + "\r\n" + hello, text: "Hello", requests: 1},
	{name: "in an event", answer: streamHead + "\r\n" + hello + "data: {", text: "Hello", requests: 1},
	{name: "behind the reason to stop", answer: streamHead + "\r\n" + strings.TrimSuffix(whole, "data: [DONE]\n\n"),
		text: "Hello", requests: 1},
	{name: "in the body of an error", answer: "HTTP/1.1 500 x\r\nContent-Length: 100\r\n\r\noops", requests: 1},
}

// TestCancel checks that a cancel closes the connection in every phase of the request, and the prompt is answered.
func TestCancel(t *testing.T) {
	for _, c := range cancels {
		t.Run(c.name, func(t *testing.T) {
			closed, there := make(chan error, 1), make(chan struct{})
			s := listen(t, func(s *server, conn net.Conn, r *bufio.Reader) {
				switch c.read {
				case unsent:
					_, _ = r.Peek(1)
				case head:
					_, _ = http.ReadRequest(r)
				default:
					s.readRequest(r)
				}
				_, _ = io.WriteString(conn, c.answer)
				close(there)
				_, err := io.Copy(io.Discard, r) // until the agent closes the connection
				closed <- err
			})
			p := connect(t, Settings{API: openAIChat, Model: "m", BaseURL: cmp.Or(c.scheme, "http") +
				strings.TrimPrefix(s.url, "http")}, false)
			session, text := p.session(), "Hi"
			if c.read == head {
				text = strings.Repeat("Hi ", 1<<20)
			}
			id := p.sendPrompt(session, text)
			<-there
			if c.text != "" {
				p.awaitAnswer("", func() bool { return p.text() == c.text })
			}
			for range 2 {
				p.writeLine(fmt.Sprintf(`{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":%q}}`, session))
			}
			if m := p.awaitAnswer(id, nil); outcome(m) != "cancelled" {
				t.Errorf(`got %+v; want outcome(m) == "cancelled"`, m.Error)
			}
			<-closed
			if connections, n := s.counts(); connections != 1 || n != c.requests || p.text() != c.text {
				t.Errorf("%d connections, %d requests, the text %q", connections, n, p.text())
			}
		})
	}
}

// TestTable checks that docs/models.md shows the cases of TestOnce.
func TestTable(t *testing.T) {
	const path, begin, end = "../../docs/models.md", "<!-- outcomes: begin -->\n", "<!-- outcomes: end -->\n"
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok1 := strings.Cut(string(b), begin)
	table, after, ok2 := strings.Cut(rest, end)
	if !ok1 || !ok2 {
		t.Fatal("the marks around the table are gone")
	}
	var w strings.Builder
	w.WriteString("| outcome | causes |\n|---|---|\n")
	causes := map[string][]string{"provider error": {"no connection"}}
	for _, f := range faults {
		causes[f.outcome] = append(causes[f.outcome], f.name)
	}
	for _, outcome := range slices.Sorted(maps.Keys(causes)) {
		fmt.Fprintf(&w, "| %s | %s |\n", outcome, strings.Join(causes[outcome], "; "))
	}
	if *update {
		if err := os.WriteFile(path, []byte(before+begin+w.String()+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if table != w.String() {
		t.Error("the table is stale: go test ./provider/model -run TestTable -update")
	}
}
