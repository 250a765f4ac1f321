package acp

import (
	"bytes"
	"io"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/perlica/perlica/provider"
)

// TestDeafInFlood checks that Perlica ends when the client closes its side, although the client
// stopped reading during a flood.
func TestDeafInFlood(t *testing.T) {
	outr, out := io.Pipe()
	w := newWorld(t, nil, func(o *Options) { o.Out = out })
	client := make(chan string)
	go func() {
		b := make([]byte, 1<<16)
		text := ""
		// The client reads until the flood has begun.
		for !strings.Contains(text, "chunk") {
			n, err := outr.Read(b)
			if err != nil {
				return
			}
			text += string(b[:n])
			if strings.Contains(text, `"session-1"`) {
				select {
				case client <- "session-1":
				default:
				}
			}
		}
		close(client)
	}()
	w.request("initialize", map[string]any{"protocolVersion": 1})
	w.request("session/new", map[string]any{"cwd": w.path("one"), "mcpServers": []any{}})
	<-client
	w.prompt("session-1", "@stream 1000000 200")
	// The relay's output is full, because the client has stopped reading.
	for range client {
	}
	_ = w.in.Close() // as an editor does
	select {
	case <-w.ended:
		w.ended <- nil // the cleanup waits for this value, too
	case <-time.After(timeout):
		t.Fatal("the relay does not end")
	}
}

// TestHeldBehind checks an agent's answer that waits for room in the queue to the client. Perlica
// answers its prompt in the meantime. The later lines must not stay blocked.
func TestHeldBehind(t *testing.T) {
	var got bytes.Buffer
	open, reached := make(chan struct{}), make(chan struct{})
	r := &relay{requests: map[string]*request{}}
	r.out = newOutput(&gated{w: &got, gate: open, reached: reached}, func(error) {}, func() {})
	r.requests["1"] = &request{id: "1", prompt: &prompt{id: "1"}}
	r.out.addLine([]byte("x"), nil)
	<-reached
	// These lines fill the queue. The gate holds the line that is being written.
	for range outLines {
		r.out.addLine([]byte("x"), nil)
	}
	returned := make(chan struct{})
	go func() {
		defer close(returned)
		r.agentResponse(provider.ParseMessage([]byte(`{"id":1,"result":{}}`)).Frame)
	}()
	for b := make([]byte, 1<<20); !strings.Contains(string(b[:runtime.Stack(b, true)]), "(*output).hold"); {
		runtime.Gosched()
	}
	r.mu.Lock()
	delete(r.requests, "1") // as if Perlica had answered the prompt
	r.mu.Unlock()
	close(open)
	<-returned
	r.out.addLine([]byte("behind"), nil)
	r.out.closeQueue()
	if !strings.HasSuffix(got.String(), "x\nbehind\n") {
		t.Errorf("%q", got.String()[max(0, got.Len()-40):])
	}
}

// gated writes when the gate is open.
type gated struct {
	w       io.Writer
	gate    chan struct{}
	reached chan struct{} // closed by the first Write
	once    sync.Once
}

func (g *gated) Write(b []byte) (int, error) {
	g.once.Do(func() { close(g.reached) })
	<-g.gate
	return g.w.Write(b)
}
