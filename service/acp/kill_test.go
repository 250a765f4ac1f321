package acp

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/perlica/perlica/eventlog/event"
)

// killed is a relay in a separate process that a test may kill.
type killed struct {
	t     *testing.T
	cmd   *exec.Cmd
	in    *os.File
	lines *bufio.Reader
	see   func(message) // called for each line that ask does not wait for; may be nil
	dies  int           // the relay is killed after the answer to the request with this number; 0 means never
}

// startKilled starts a relay in the world of a folder. The command line of the relay begins with the words in "wrap".
func startKilled(t *testing.T, dir string, wrap ...string) *killed {
	t.Helper()
	argv := append(wrap, os.Args[0], "agent", "serve", dir)
	k := &killed{t: t, cmd: exec.Command(argv[0], argv[1:]...)}
	k.cmd.Stderr = os.Stderr
	inr, inw, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	k.cmd.Stdin, k.in = inr, inw
	out, err := k.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	k.lines = bufio.NewReader(out)
	if err := k.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = inr.Close() // belongs to the process
	return k
}

// end closes the client's side and waits for the process. It reports whether the process ended
// normally.
func (k *killed) end() bool {
	_ = k.in.Close() // as an editor does
	return k.cmd.Wait() == nil
}

// ask sends a request and returns the answer. ok is false if the process ended first.
func (k *killed) ask(id int, method string, params any) (m message, ok bool) {
	if _, err := fmt.Fprintf(k.in, `{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`+"\n", id, method,
		js(params)); err != nil {
		return m, false
	}
	for {
		line, err := k.lines.ReadString('\n')
		if err != nil {
			return m, false
		}
		m = message{line: line}
		if json.Unmarshal([]byte(line), &m) == nil && m.Method == "" && string(m.ID) == fmt.Sprint(id) {
			return m, true
		}
		if k.see != nil {
			k.see(m)
		}
	}
}

// TestKilled kills Perlica repeatedly. Each input reaches the agent at most once, and the record
// agrees with the agent.
func TestKilled(t *testing.T) {
	w := newWorld(t, nil, nil)
	w.stop()
	n := max(10, *tortureKills/5)
	for i := range n {
		params := func(s string) map[string]any {
			p := promptOf(s, fmt.Sprintf("@say answer %d", i))
			p["_meta"] = map[string]any{"perlica.dev/inputId": fmt.Sprintf("input-%d", i)}
			return p
		}
		for attempt := range 3 {
			k := startKilled(t, w.dir)
			if attempt < 2 {
				after := time.Duration(rand.IntN(120)) * time.Millisecond  // at any moment of the turn
				time.AfterFunc(after, func() { _ = k.cmd.Process.Kill() }) // the process may have ended
			}
			_, ok := k.ask(1, "initialize", map[string]any{"protocolVersion": 1})
			if m, opened := k.ask(2, "session/new", map[string]any{"cwd": w.path("one"), "mcpServers": []any{}}); ok && opened {
				if m, ok := k.ask(3, "session/prompt", params(m.Result.SessionID)); attempt == 2 &&
					(!ok || m.Error == nil && m.Result.StopReason != "end_turn") {
					t.Errorf("input %d: %s", i, m.line)
				}
			} else if attempt == 2 {
				t.Errorf("input %d: no session: %s", i, m.line)
			}
			k.end()
			w.gone()
		}
	}
	for i := range n {
		text, got := fmt.Sprintf("@say answer %d\"", i), 0
		for _, line := range w.agentRead() {
			if strings.Contains(line, text) {
				got++
			}
		}
		if got > 1 {
			t.Errorf("input %d is %d times with the agent", i, got)
		}
	}
	w.start(nil, nil)
	w.session("one") // opening a session recovers the runs
	if intents, outcomes := w.events("one", event.Requested), w.events("one", event.Responded, event.ProviderError,
		event.OutcomeUnknown); len(intents) > n || len(outcomes) != len(intents) {
		t.Errorf("%d intents, %d outcomes of %d inputs", len(intents), len(outcomes), n)
	}
}
