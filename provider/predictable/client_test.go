package predictable

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/perlica/perlica/provider/agentside"
)

// TestMain runs the test binary as the agent if its argument is --scenario, because @spawn starts it in this way.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == "--scenario" {
		opt := Options{Scenario: os.Args[2], IgnoreTerm: func() { signal.Ignore(syscall.SIGTERM) }}
		if err := Serve(context.Background(), os.Stdin, os.Stdout, os.Stderr, opt); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// client is a small ACP client. Its reading goroutine stores all lines at once, so the agent never waits for the test.
type client struct {
	t      testing.TB
	in     *io.PipeWriter
	out    *io.PipeReader
	stderr buffer
	served chan error
	lastID int
	sid    string
	reply  func(method string, m agentside.Message) string // the rest of a response: "result":… or "error":…

	mu    sync.Mutex
	more  *sync.Cond
	lines []string
	eof   bool
}

type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// connect starts an agent and a goroutine that reads its output. It sends no message.
func connect(t testing.TB, opt Options) *client {
	t.Helper()
	agentIn, in := io.Pipe()
	out, agentOut := io.Pipe()
	c := &client{t: t, in: in, out: out, served: make(chan error, 1)}
	c.more = sync.NewCond(&c.mu)
	c.reply = func(method string, _ agentside.Message) string {
		return `"error":{"code":-32601,"message":"Method not found"}`
	}
	go func() {
		err := Serve(t.Context(), agentIn, agentOut, &c.stderr, opt)
		agentIn.Close()
		agentOut.Close()
		c.served <- err
	}()
	read := make(chan struct{})
	go c.readLines(read)
	t.Cleanup(func() {
		in.Close()
		out.Close()
		<-read
	})
	return c
}

func (c *client) readLines(done chan<- struct{}) {
	defer close(done)
	r := bufio.NewReader(c.out)
	for {
		line, err := r.ReadString('\n')
		c.mu.Lock()
		if line != "" {
			c.lines = append(c.lines, line)
		}
		c.eof = err != nil
		c.more.Broadcast()
		c.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// open connects, sends initialize and creates a session.
func open(t testing.TB, opt Options) *client {
	t.Helper()
	c := connect(t, opt)
	c.call("initialize", `{"protocolVersion":1,"clientCapabilities":{}}`)
	c.newSession()
	return c
}

func (c *client) newSession() string {
	c.t.Helper()
	var p struct {
		SessionID string `json:"sessionId"`
	}
	decode(c.t, c.call("session/new", `{"cwd":"/work","mcpServers":[]}`).Result, &p)
	c.sid = p.SessionID
	return p.SessionID
}

func decode(t testing.TB, raw json.RawMessage, p any) {
	t.Helper()
	if err := json.Unmarshal(raw, p); err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
}

// line waits for the next line of the agent and returns it with its line ending. At the end of the output it returns
// "".
func (c *client) line() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.lines) == 0 {
		if c.eof {
			return ""
		}
		c.more.Wait()
	}
	l := c.lines[0]
	c.lines = c.lines[1:]
	return l
}

func (c *client) writeLine(line string) {
	c.t.Helper()
	if _, err := io.WriteString(c.in, line+"\n"); err != nil {
		c.t.Fatalf("write: %v", err)
	}
}

func (c *client) request(method, params string) string {
	c.t.Helper()
	c.lastID++
	id := fmt.Sprint(c.lastID)
	c.writeLine(`{"jsonrpc":"2.0","id":` + id + `,"method":"` + method + `","params":` + params + `}`)
	return id
}

// awaitResponse waits for the response with this id. Until then it answers the requests of the agent. It returns the
// response and the lines before the response.
func (c *client) awaitResponse(id string) (agentside.Message, []string) {
	c.t.Helper()
	var before []string
	for {
		l := c.line()
		if l == "" {
			c.t.Fatalf("the agent has gone; before that: %q", before)
		}
		var m agentside.Message
		if err := json.Unmarshal([]byte(l), &m); err == nil {
			switch {
			case m.Method == "" && string(m.ID) == id:
				return m, before
			case m.Method != "" && m.ID != nil:
				if r := c.reply(m.Method, m); r != "" {
					c.writeLine(`{"jsonrpc":"2.0","id":` + string(m.ID) + `,` + r + `}`)
				}
			}
		}
		before = append(before, l)
	}
}

func (c *client) call(method, params string) agentside.Message {
	c.t.Helper()
	m, _ := c.awaitResponse(c.request(method, params))
	return m
}

func promptParams(sid, text string) string {
	return `{"sessionId":` + quote(sid) + `,"prompt":[{"type":"text","text":` + quote(text) + `}]}`
}

// prompt sends a prompt and waits for its response. It returns the text of the message chunks, the response and the
// lines before the response.
func (c *client) prompt(text string) (string, agentside.Message, []string) {
	c.t.Helper()
	m, lines := c.awaitResponse(c.request("session/prompt", promptParams(c.sid, text)))
	return textOf(lines), m, lines
}

// textOf joins the texts of all message chunks in the lines.
func textOf(lines []string) string {
	var b strings.Builder
	for _, l := range lines {
		if u := updateOf(l); u.Kind == messageChunk {
			b.WriteString(u.Content.Text)
		}
	}
	return b.String()
}

type anUpdate struct {
	Kind    string `json:"sessionUpdate"`
	Content struct {
		Text string `json:"text"`
	} `json:"content"`
	Status     string `json:"status"`
	ToolCallID string `json:"toolCallId"`
	raw        json.RawMessage
}

func updateOf(line string) (u anUpdate) {
	var m struct {
		Params struct {
			Update json.RawMessage `json:"update"`
		} `json:"params"`
	}
	if json.Unmarshal([]byte(line), &m) == nil {
		u.raw = m.Params.Update
		_ = json.Unmarshal(u.raw, &u) // content may be a list, which is not text
	}
	return u
}

// endInput closes the agent's standard input and returns the result of Serve.
func (c *client) endInput() error {
	c.in.Close()
	return <-c.served
}

func stopReason(t testing.TB, m agentside.Message) string {
	t.Helper()
	var p struct {
		StopReason string `json:"stopReason"`
	}
	decode(t, m.Result, &p)
	return p.StopReason
}
