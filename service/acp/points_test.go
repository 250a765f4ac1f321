package acp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/perlica/perlica/eventlog/event"
)

// point names the moment at which Perlica is killed: when a line with this text passes.
type point struct {
	// Where is "client" after the client has written the line, and "agent" after the agent has read it. "before" and
	// "behind" are the moments around the write to the client.
	Where string
	Text  string
}

// pointFile is the file in a world that holds the point.
const pointFile = "point"

func readPoint(path string) (p point) {
	b, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(b, &p)
	}
	if err != nil {
		// Without this file the test kills nothing: the zero point names no place.
		return point{}
	}
	return p
}

func (p point) at(where string, lines []byte) bool {
	return p.Where == where && bytes.Contains(lines, []byte(p.Text))
}

// kill kills a process.
func kill(pid int) {
	if p, err := os.FindProcess(pid); err == nil {
		_ = p.Kill() // the process may have ended
	}
}

func die() {
	kill(os.Getpid())
	select {}
}

// mortal is the client's side of a relay. It kills this process when the line of the point passes.
type mortal struct {
	point
	in  io.Reader
	out io.Writer
}

func (m mortal) Read(b []byte) (int, error) {
	n, err := m.in.Read(b)
	if m.at("client", b[:n]) {
		die()
	}
	return n, err
}

func (m mortal) Write(b []byte) (int, error) {
	if m.at("before", b) {
		die()
	}
	n, err := m.out.Write(b)
	if m.at("behind", b) {
		die()
	}
	return n, err
}

// witness stores the lines that the agent reads. It kills Perlica, its parent, when the agent has
// read the point's line.
type witness struct {
	point
	file io.Writer
}

func (w witness) Write(b []byte) (int, error) {
	n, err := w.file.Write(b)
	if w.at("agent", b) {
		kill(os.Getppid())
	}
	return n, err
}

// asks and cancels are the scripts of the turns in which Perlica is killed. The client answers
// questions, and it cancels at "stop".
const (
	asks    = "@say <%s>\n@ask execute Build command=make\n@say done"
	cancels = "@say <%s> stop\n@hang"
)

// turn runs a conversation with a relay up to the answer to its one prompt, which has the input id.
func (k *killed) turn(cwd, id, script string) (m message, ok bool) {
	if _, ok = k.ask(1, "initialize", map[string]any{"protocolVersion": 1}); !ok {
		return m, false
	}
	if m, ok = k.ask(2, "session/new", map[string]any{"cwd": cwd, "mcpServers": []any{}}); !ok {
		return m, false
	}
	if k.dies == 2 {
		_, _ = io.Copy(io.Discard, k.lines)
		return m, false
	}
	session := m.Result.SessionID
	params := promptOf(session, fmt.Sprintf(script, id))
	params["_meta"] = map[string]any{metaPrefix + "inputId": id}
	k.see = func(m message) {
		switch {
		case m.Method == "session/request_permission":
			fmt.Fprintf(k.in, `{"jsonrpc":"2.0","id":%s,"result":{"outcome":{"outcome":"selected","optionId":"allow-once"}}}`+
				"\n", m.ID)
		case strings.Contains(m.Params.Update.Content.Text, "stop"):
			fmt.Fprintf(k.in, `{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":%q}}`+"\n", session)
		}
	}
	return k.ask(3, "session/prompt", params)
}

// These are the results of an input that is sent again.
const fresh, replayed, unknown = "is called now", "has its answer", "is unknown"

// became returns the result of a repeated input from its answer.
func became(m message) string {
	switch {
	case m.Result.Meta[metaPrefix+"replayed"] == true:
		return replayed
	case m.Error != nil && strings.Contains(m.Error.Message, "was called before"):
		return unknown
	case m.Result.StopReason != "":
		return fresh
	}
	return m.line
}

// TestDeathAtEachPoint kills Perlica at each line of a turn. The agent ends with it. The next
// Perlica records the outcome and makes no second call.
func TestDeathAtEachPoint(t *testing.T) {
	w := newWorld(t, nil, nil)
	w.stop()
	all := []struct {
		point
		script, becomes string
	}{
		{point{"client", `"initialize"`}, asks, fresh},
		{point{"agent", `"initialize"`}, asks, fresh},
		{point{"before", `"id":1,"result"`}, asks, fresh},
		{point{"behind", `"id":1,"result"`}, asks, fresh},
		{point{"client", "session/new"}, asks, fresh},
		{point{"agent", "session/new"}, asks, fresh},
		{point{"before", `"id":2,"result"`}, asks, fresh},
		{point{"behind", `"id":2,"result"`}, asks, fresh},
		{point{"client", "session/prompt"}, asks, fresh},
		{point{"agent", "session/prompt"}, asks, unknown},
		{point{"before", "<input-"}, asks, unknown},
		{point{"behind", "<input-"}, asks, unknown},
		{point{"before", "session/request_permission"}, asks, unknown},
		{point{"behind", "session/request_permission"}, asks, unknown},
		{point{"client", `"outcome"`}, asks, unknown},
		{point{"agent", `"outcome"`}, asks, unknown},
		{point{"client", "session/cancel"}, cancels, unknown},
		{point{"agent", "session/cancel"}, cancels, unknown},
		{point{"before", `"id":3,"result"`}, asks, replayed},
		{point{"behind", `"id":3,"result"`}, asks, replayed},
		{point{"before", `"id":3,"result"`}, cancels, replayed},
	}
	for i, at := range all {
		id := fmt.Sprintf("input-%d", i)
		name := at.Where + " " + at.Text
		if err := os.WriteFile(w.path(pointFile), []byte(js(at.point)), 0o600); err != nil {
			t.Fatal(err)
		}
		k := startKilled(t, w.dir)
		if at.Where == "behind" {
			// If this line is an answer, Perlica is killed just after writing it. The client then sends no prompt,
			// because the prompt could arrive before the kill.
			_, _ = fmt.Sscanf(at.Text, `"id":%d`, &k.dies)
		}
		if m, ok := k.turn(w.path("one"), id, at.script); ok && at.Where != "behind" {
			t.Errorf("%s: it was not killed: %s", name, m.line)
		}
		if err := k.cmd.Wait(); err == nil { // a normal end is an error, because the client's side is still open
			t.Errorf("%s: it was not killed", name)
		}
		w.gone()
		if err := os.Remove(w.path(pointFile)); err != nil {
			t.Fatal(err)
		}
		k = startKilled(t, w.dir)
		m, ok := k.turn(w.path("one"), id, at.script)
		k.end()
		w.gone()
		if !ok || became(m) != at.becomes {
			t.Errorf("%s: the input %s, want %s: %s", name, became(m), at.becomes, m.line)
		}
	}
	w.audit(len(all))
}

// audit checks the lines that agents have read, and the log. Each input was called at most once,
// and each call has its outcome.
func (w *world) audit(inputs int) {
	w.t.Helper()
	calls := map[string]int{}
	for _, line := range w.agentRead() {
		_, rest, ok := strings.Cut(line, "@say <")
		if id, _, found := strings.Cut(rest, ">"); ok && found {
			calls[id]++
		}
	}
	for id, n := range calls {
		if n > 1 {
			w.t.Errorf("%s is %d times with the agent", id, n)
		}
	}
	w.start(nil, nil)
	w.session("one") // opening a session recovers the runs
	intents, outcomes := map[string]int{}, map[string]int{}
	for _, e := range w.events("one", event.Requested) {
		intents[string(e.Run)]++
	}
	for _, e := range w.events("one", event.Responded, event.ProviderError, event.OutcomeUnknown) {
		outcomes[string(e.Run)]++
	}
	for run := range intents {
		if intents[run] != 1 || outcomes[run] != 1 {
			w.t.Errorf("run %s has %d intents and %d outcomes", run, intents[run], outcomes[run])
		}
	}
	if len(outcomes) != len(intents) || len(calls) > len(intents) || len(intents) > inputs {
		w.t.Errorf("%d inputs, %d intents, %d outcomes, %d calls", inputs, len(intents), len(outcomes), len(calls))
	}
}
