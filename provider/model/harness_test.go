package model

import (
	"bufio"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/perlica/perlica/provider/agentside"
)

// patience is the time that a test waits for an expected event.
const patience = 2 * time.Minute

// message is a line of the agent.
type message struct {
	ID     json.RawMessage
	Method string
	Params json.RawMessage
	Result json.RawMessage
	Error  *agentside.Error
}

// peer is the client of an agent that is served in this process.
type peer struct {
	t     *testing.T
	in    io.Writer
	lines chan message
	ids   int

	updates []object
	// agree answers _perlica.dev/http/send. nil means that the client agrees.
	agree    func(params json.RawMessage) *agentside.Error
	sent     []json.RawMessage // the descriptions in _perlica.dev/http/send
	received []json.RawMessage
}

// connect serves the agent and initializes it. wantsHTTP makes the client ask for the exchanges.
func connect(t *testing.T, s Settings, wantsHTTP bool) *peer {
	t.Helper()
	if err := s.Check(); err != nil {
		t.Fatal(err)
	}
	toAgent, in := io.Pipe()
	out, fromAgent := io.Pipe()
	served := make(chan error, 1)
	go func() {
		served <- Serve(t.Context(), toAgent, fromAgent, s)
		_ = fromAgent.Close() // never fails
	}()
	return speak(t, in, out, served, wantsHTTP)
}

// speak initializes the agent that reads from the pipe "in" and writes to the pipe "out". served receives the result of
// Serve.
func speak(t *testing.T, in io.WriteCloser, out io.Reader, served <-chan error, wantsHTTP bool) *peer {
	t.Helper()
	p := &peer{t: t, in: in, lines: make(chan message, 100)}
	go func() {
		defer close(p.lines)
		for r := bufio.NewReader(out); ; {
			line, err := r.ReadBytes('\n')
			if err != nil {
				return
			}
			var m message
			if err := json.Unmarshal(line, &m); err != nil {
				t.Errorf("%s: got %v; want err == nil", line, err)
			}
			p.lines <- m
		}
	}()
	t.Cleanup(func() {
		_ = in.Close()
		for range p.lines {
		}
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	p.call("initialize", fmt.Sprintf(`{"protocolVersion":1,"clientCapabilities":{"_meta":{"perlica.dev":{"http":%v}}}}`,
		wantsHTTP))
	return p
}

func (p *peer) writeLine(line string) {
	if _, err := io.WriteString(p.in, line+"\n"); err != nil {
		p.t.Error(err)
	}
}

// sendRequest sends a request and returns its id.
func (p *peer) sendRequest(method, params string) string {
	p.ids++
	p.writeLine(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, p.ids, method, params))
	return fmt.Sprint(p.ids)
}

// awaitAnswer reads lines until the answer to a request arrives or the function "done" returns true.
func (p *peer) awaitAnswer(id string, done func() bool) message {
	p.t.Helper()
	for late := time.After(patience); ; {
		select {
		case m, ok := <-p.lines:
			if !ok {
				p.t.Fatal("the agent has left")
			}
			switch {
			case m.Method == "session/update":
				var v struct{ Update object }
				if err := json.Unmarshal(m.Params, &v); err != nil {
					p.t.Error(err)
				}
				p.updates = append(p.updates, v.Update)
			case m.Method == "_perlica.dev/http/received":
				p.received = append(p.received, m.Params)
			case m.Method == "_perlica.dev/http/send":
				p.sent = append(p.sent, m.Params)
				answer := object{"jsonrpc": "2.0", "id": m.ID, "result": object{}}
				if p.agree != nil {
					if e := p.agree(m.Params); e != nil {
						answer = object{"jsonrpc": "2.0", "id": m.ID, "error": e}
					}
				}
				p.writeLine(string(agentside.Encode(answer)))
			case string(m.ID) == id:
				return m
			}
			if done != nil && done() {
				return message{}
			}
		case <-late:
			p.t.Fatal("no answer")
		}
	}
}

func (p *peer) call(method, params string) message {
	p.t.Helper()
	return p.awaitAnswer(p.sendRequest(method, params), nil)
}

func (p *peer) session() string {
	p.t.Helper()
	var v struct{ SessionID string }
	if err := json.Unmarshal(p.call("session/new", `{"cwd":"/","mcpServers":[]}`).Result, &v); err != nil {
		p.t.Fatal(err)
	}
	return v.SessionID
}

// sendPrompt sends a prompt and returns its id.
func (p *peer) sendPrompt(session, text string) string {
	return p.sendRequest("session/prompt", string(agentside.Encode(object{"sessionId": session,
		"prompt": []object{{"type": "text", "text": text}}})))
}

// text returns the text of the agent's message chunks.
func (p *peer) text() string {
	var b strings.Builder
	for _, u := range p.updates {
		if c, ok := u["content"].(map[string]any); ok && u["sessionUpdate"] == "agent_message_chunk" {
			fmt.Fprint(&b, c["text"])
		}
	}
	return b.String()
}

// outcome returns Perlica's outcome for an answer.
func outcome(m message) string {
	var data struct {
		Outcome string `json:"perlica.dev/outcome"`
	}
	var result struct{ StopReason string }
	switch {
	case m.Error != nil && json.Unmarshal(m.Error.Data, &data) == nil && data.Outcome == "unknown":
		return "unknown"
	case m.Error != nil:
		return "provider error"
	case json.Unmarshal(m.Result, &result) == nil && result.StopReason == cancelled:
		return "cancelled"
	}
	return "answered"
}

// server is a server of raw connections that counts its connections and requests.
type server struct {
	*testing.T
	url string

	mu          sync.Mutex
	connections int
	requests    int
	bodies      []string
}

// listen serves connections, each with the function "serve".
func listen(t *testing.T, serve func(s *server, c net.Conn, r *bufio.Reader)) *server {
	t.Helper()
	return listenTLS(t, nil, serve)
}

// listenTLS is listen with TLS. A nil configuration means without TLS.
func listenTLS(t *testing.T, config *tls.Config, serve func(s *server, c net.Conn, r *bufio.Reader)) *server {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &server{T: t, url: "http://" + l.Addr().String()}
	if config != nil {
		s.url = "https" + strings.TrimPrefix(s.url, "http")
		l = tls.NewListener(l, config)
	}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s.mu.Lock()
			s.connections++
			s.mu.Unlock()
			all.Go(func() {
				defer func() { _ = c.Close() }()
				serve(s, c, bufio.NewReader(c))
			})
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		all.Wait()
	})
	return s
}

// readRequest reads one request and counts it.
func (s *server) readRequest(r *bufio.Reader) *http.Request {
	req, err := http.ReadRequest(r)
	if err != nil {
		return nil
	}
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil
	}
	s.mu.Lock()
	s.requests++
	s.bodies = append(s.bodies, string(body))
	s.mu.Unlock()
	return req
}

func (s *server) counts() (connections, requests int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.connections, s.requests
}
