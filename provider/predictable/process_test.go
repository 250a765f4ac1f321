package predictable

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
)

// TestExit checks @exit and similar directives at each point of a turn that a client can observe.
func TestExit(t *testing.T) {
	for _, tt := range []struct {
		scenario string
		requests int // number of written requests
		answers  int // number of read answers
	}{
		{"[start]\n@exit 7", 0, 0},
		{"[initialize]\n@exit 7", 1, 0},
		{"[session/new]\n@exit 7", 2, 1},
		{"[session/prompt]\n@say partial\n@exit 7\n@say never", 3, 2},
		{"[session/prompt]\n@answer\n@exit 7", 3, 3},
		{"[session/prompt]\n@kill", 3, 2},
	} {
		code := -1
		c := connect(t, Options{Scenario: tt.scenario, Exit: func(n int) { code = n }, Kill: func() { code = 7 }})
		requests := []string{"initialize {}", `session/new {"cwd":"/","mcpServers":[]}`,
			"session/prompt " + promptParams("session-1", "")}
		answers := 0
		for i, r := range requests[:tt.requests] {
			method, params, _ := strings.Cut(r, " ")
			id := c.request(method, params)
			if i < tt.answers {
				c.awaitResponse(id)
				answers++
			}
		}
		rest := ""
		for l := c.line(); l != ""; l = c.line() {
			rest += l
		}
		if err := <-c.served; err != nil || code != 7 || strings.Contains(rest, "never") ||
			strings.Contains(rest, `"result"`) {
			t.Errorf("%q: code %d, %v, %q", tt.scenario, code, err, rest)
		}
	}
}

func TestClose(t *testing.T) {
	c := open(t, Options{})
	c.request("session/prompt", promptParams(c.sid, "@say last\n@close\n@say never\n@stderr still here"))
	if got := textOf([]string{c.line()}); got != "last" {
		t.Errorf("%q", got)
	}
	if got := c.line(); got != "" {
		t.Errorf("%q", got)
	}
	if err := c.endInput(); err != nil || c.stderr.String() != "still here\n" {
		t.Errorf("%v %q", err, c.stderr.String())
	}
}

// TestIgnoreStdin checks that the agent handles no input after @ignore stdin.
func TestIgnoreStdin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		in, ours := io.Pipe()
		out, agentOut := io.Pipe()
		served := make(chan error, 1)
		go func() { served <- Serve(ctx, in, agentOut, io.Discard, Options{}) }()
		lines := bufio.NewScanner(out)
		for _, l := range []string{`"id":1,"method":"session/new","params":{"cwd":"/","mcpServers":[]}`,
			`"id":2,"method":"session/prompt","params":` + promptParams("session-1", "@ignore stdin")} {
			if _, err := io.WriteString(ours, `{"jsonrpc":"2.0",`+l+"}\n"); err != nil || !lines.Scan() {
				t.Fatal(err)
			}
		}
		unread := 2
		go func() {
			for range 2 { // a pending read takes the first line, and nothing takes the second
				if _, err := io.WriteString(ours, "\n"); err != nil {
					return
				}
				unread--
			}
		}()
		synctest.Wait()
		if unread == 0 {
			t.Error("the agent has read on")
		}
		stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
		in.Close()
	})
}

func TestIgnoreEOF(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	r, w := io.Pipe()
	served := make(chan error, 1)
	go func() {
		served <- Serve(ctx, strings.NewReader(""), w, io.Discard, Options{Scenario: "[start]\n@ignore eof\n[eof]\n@line on"})
	}()
	if l, err := bufio.NewReader(r).ReadString('\n'); l != "on\n" {
		t.Fatal(l, err)
	}
	select {
	case <-served:
		t.Error("it has left")
	default:
	}
	stop()
	if err := <-served; err != nil {
		t.Error(err)
	}
}

// TestPiped checks that all requests in an input that ends at once get responses.
func TestPiped(t *testing.T) {
	var out buffer
	in := `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}
{"jsonrpc":"2.0","id":2,"method":"session/new","params":{"cwd":"/","mcpServers":[]}}
{"jsonrpc":"2.0","id":3,"method":"session/prompt","params":{"sessionId":"session-1","prompt":[{"type":"text","text":"a\nb"}]}}`
	for range 100 {
		out.b.Reset()
		if err := Serve(t.Context(), strings.NewReader(in), &out, io.Discard, Options{}); err != nil {
			t.Fatal(err)
		}
		if got := out.String(); strings.Count(got, "\n") != 5 || !strings.Contains(got, "end_turn") {
			t.Fatal(got)
		}
	}
}

type failingReader struct{}

func (failingReader) Read([]byte) (int, error) { return 0, errors.New("bad cable") }

func TestReadFails(t *testing.T) {
	if err := Serve(t.Context(), failingReader{}, io.Discard, io.Discard, Options{}); err == nil ||
		err.Error() != "bad cable" {
		t.Error(err)
	}
}

// TestWriteFails checks that a long @stream ends after the client has closed the output.
func TestWriteFails(t *testing.T) {
	c := open(t, Options{})
	c.request("session/prompt", promptParams(c.sid, "@stream 999999999 100"))
	c.line()
	c.out.Close()
	if err := c.endInput(); err != nil {
		t.Error(err)
	}
}

func TestNotPossibleHere(t *testing.T) {
	c := open(t, Options{})
	if _, m, _ := c.prompt("@ignore term"); !strings.Contains(string(m.Error), "not possible") {
		t.Errorf("%s", m.Error)
	}
	if text, _, _ := c.prompt("@show pid"); text != "pid: "+strconv.Itoa(os.Getpid())+"\n" {
		t.Errorf("%q", text)
	}
	if _, m, _ := c.prompt("@result 5\n@set a 1"); !strings.Contains(string(m.Error), "no object") {
		t.Errorf("%s", m.Error)
	}
}
