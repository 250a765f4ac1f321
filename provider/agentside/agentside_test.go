package agentside_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"testing/synctest"

	"github.com/perlica/perlica/provider/agentside"
)

// serve gives input to a connection that answers a request with its params. It returns the agent's lines and the
// methods of all handled messages.
func serve(t *testing.T, input string) (lines, handled string) {
	t.Helper()
	var out bytes.Buffer
	c := agentside.New(&out)
	err := c.Serve(t.Context(), strings.NewReader(input), func(m agentside.Message) {
		handled += m.Method + " "
		if m.ID != nil {
			if err := c.Send(agentside.Message{ID: m.ID, Result: m.Params}); err != nil {
				t.Error(err)
			}
		}
	})
	if err != nil {
		t.Error(err)
	}
	return out.String(), strings.TrimSpace(handled)
}

func TestServe(t *testing.T) {
	const invalid = `"error":{"code":-32600,"message":"not a message of JSON-RPC 2.0"}`
	long := strings.Repeat("x", 1<<20)
	for name, tt := range map[string]struct{ input, lines, handled string }{
		"order": {
			`{1,"method":"a","params":1}` + "\n\r\n" + `{2,"method":"b","params":{"a": 2}}` + "\r\n" +
				`{3,"method":"c","params":3}`,
			`{1,"result":1}{2,"result":{"a": 2}}{3,"result":3}`, "a b c",
		},
		"a long line":    {`{1,"method":"a","params":"` + long + `"}`, `{1,"result":"` + long + `"}`, "a"},
		"a notification": {`{"jsonrpc":"2.0","method":"a"}`, "", "a"},
		"an id of null":  {`{null,"method":"a"}`, "", "a"},
		"no JSON":        {`{1,`, `{null,"error":{"code":-32700,"message":"not JSON: unexpected end of JSON input"}}`, ""},
		"no object":      {"[]", "{null," + invalid + "}", ""},
		"another form":   {`{1,"method":5}`, "{1," + invalid + "}", ""},
		"no method":      {`{"jsonrpc":"2.0"}`, "{null," + invalid + "}", ""},
		"no version": {
			`{"id":1,"method":"a"}`, `{1,"error":{"code":-32600,"message":"\"jsonrpc\" is not \"2.0\""}}`, "",
		},
		"a stray answer":  {`{7,"result":{}}`, "", ""},
		"an answer to no": {`{null,"error":{}}`, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			lines, handled := serve(t, heads.ReplaceAllString(tt.input, `{"jsonrpc":"2.0","id":$1,`))
			want := heads.ReplaceAllString(strings.ReplaceAll(tt.lines, "}{", "}\n{"), `{"jsonrpc":"2.0","id":$1,`)
			if strings.TrimSpace(lines) != want || handled != tt.handled {
				t.Errorf("the agent says %.300q and handles %q, want %.300q and %q", lines, handled, want, tt.handled)
			}
		})
	}
}

// heads matches the beginning of a message in the short notation of TestServe.
var heads = regexp.MustCompile(`\{(\d|null),`)

// TestResponses checks that each response goes to one request with its id, the oldest first.
func TestResponses(t *testing.T) {
	var out bytes.Buffer
	c := agentside.New(&out)
	var got string
	ask := func(name, id string) {
		received := func(m agentside.Message) { got += name + string(m.Result) + string(m.Error) + " " }
		if err := c.Request("ask", json.RawMessage(`{}`), id, received); err != nil {
			t.Error(err)
		}
	}
	ask("a", "")
	ask("b", "")
	ask("c", `"x"`)
	ask("d", `"x"`)
	input := `{"jsonrpc":"2.0","id":1,"result":1}
{"jsonrpc":"2.0","id":"x","error":{"code":1}}
{"jsonrpc":"2.0","id":0,"result":2,"error":null}
{"jsonrpc":"2.0","id":1,"result":3}
{"jsonrpc":"2.0","id":"x","result":4}
{"jsonrpc":"2.0","id":"x","result":5}`
	if err := c.Serve(t.Context(), strings.NewReader(input), func(agentside.Message) {}); err != nil {
		t.Error(err)
	}
	if want := `b1 c{"code":1} a2 d4 `; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if want := `{"jsonrpc":"2.0","id":0,"method":"ask","params":{}}`; !strings.HasPrefix(out.String(), want+"\n") {
		t.Errorf("got %s, want first %s", out.String(), want)
	}
}

// TestWholeLines checks that each line of several senders is one Write.
func TestWholeLines(t *testing.T) {
	var writes []string // guarded by the connection
	c := agentside.New(writerFunc(func(p []byte) (int, error) {
		writes = append(writes, string(p))
		return len(p), nil
	}))
	var senders sync.WaitGroup
	for range 8 {
		senders.Go(func() {
			for range 100 {
				if err := c.Send(agentside.Message{Method: "a", Params: json.RawMessage(`"b"`)}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	senders.Wait()
	if len(writes) != 800 {
		t.Errorf("%d writes, want 800", len(writes))
	}
	for _, w := range writes {
		if w != `{"jsonrpc":"2.0","method":"a","params":"b"}`+"\n" {
			t.Fatalf("got %q", w)
		}
	}
}

type writerFunc func(p []byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// TestLine checks that the members keep their bytes, also bytes that are no JSON.
func TestLine(t *testing.T) {
	m := agentside.Message{ID: json.RawMessage("1.0"), Method: "a\"\\\n\x01\xff<"}
	m.Params, m.Result = json.RawMessage(" {} \xfe"), json.RawMessage("?")
	want := `{"jsonrpc":"2.0","id":1.0,"method":"a\"\\\n\u0001` + "\xff" + `<","params": {} ` + "\xfe" + `,"result":?}`
	if got := string(m.Line()); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestEnds checks that Serve returns the error of reading. After its context has ended, it returns and handles no
// further line.
func TestEnds(t *testing.T) {
	broken := errors.New("broken")
	if err := agentside.New(io.Discard).Serve(t.Context(), iotest.ErrReader(broken), nil); !errors.Is(err, broken) {
		t.Errorf("got %v, want %v", err, broken)
	}
	synctest.Test(t, func(t *testing.T) {
		ctx, end := context.WithCancel(t.Context())
		in, client := io.Pipe()
		served := make(chan error, 1)
		go func() {
			served <- agentside.New(io.Discard).Serve(ctx, in, func(m agentside.Message) {
				t.Errorf("%s is handled after the end", m.Method)
			})
		}()
		synctest.Wait()
		end()
		if err := <-served; err != nil {
			t.Error(err)
		}
		if _, err := io.WriteString(client, `{"jsonrpc":"2.0","id":1,"method":"late"}`+"\n"); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	})
}
