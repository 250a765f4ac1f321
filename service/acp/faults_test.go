package acp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gofrs/flock"

	"github.com/perlica/perlica/eventlog/event"
)

// gone fails unless every agent of this world has ended. Each agent holds a lock during its life.
func (w *world) gone() {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	lock := flock.New(w.path("read.alive"))
	if ok, err := lock.TryLockContext(ctx, 5*time.Millisecond); !ok {
		w.t.Fatalf("an agent lives on: %v", err)
	}
	if err := lock.Unlock(); err != nil {
		w.t.Error(err)
	}
}

// outcomes fails unless the log of a directory has n intents with one outcome each.
func (w *world) outcomes(name string, n int) {
	w.t.Helper()
	intents, outcomes := w.events(name, event.Requested), w.events(name, event.Responded, event.ProviderError,
		event.OutcomeUnknown)
	if len(intents) != n || len(outcomes) != n {
		w.t.Errorf("%d intents and %d outcomes, want %d", len(intents), len(outcomes), n)
	}
}

// refused fails unless the answer to a request is an error with these words.
func (w *world) refused(id string, words ...string) {
	w.t.Helper()
	m, _ := w.until(id)
	for _, word := range words {
		if m.Error == nil || !strings.Contains(m.Error.Message, word) {
			w.t.Errorf("%s does not say %q", m.line, word)
		}
	}
}

// TestAgentFaults checks the failures of an agent: the client's answers, the record, and the
// agent's processes.
func TestAgentFaults(t *testing.T) {
	for name, at := range map[string]struct {
		scenario string
		play     func(w *world)
		ends     string // words of the relay's error; empty means that the agent still works
		intents  int
	}{
		"it dies in initialize": {"[initialize]\n@stderr last words\n@exit 3", func(w *world) {
			w.refused(w.request("initialize", map[string]any{"protocolVersion": 1}), "last words")
		}, "last words", 0},
		"it dies in session/new": {"[session/new]\n@kill", func(w *world) {
			w.until(w.request("initialize", map[string]any{"protocolVersion": 1}))
			w.refused(w.request("session/new", map[string]any{"cwd": w.path("one"), "mcpServers": []any{}}), "SIGKILL")
		}, "SIGKILL", 0},
		"it dies while it is put into its mode": {"[session/new]\n@set modes.currentModeId \"auto\"\n[session/set_mode]\n@exit 4", func(w *world) {
			w.session("one")
		}, "code 4", 0},
		"it refuses its mode": {"[session/new]\n@set modes.currentModeId \"auto\"\n[session/set_mode]\n@error -32603 \"not now\"", func(w *world) {
			w.refused(w.prompt(w.session("one"), "@say never"), "not now", `editor.mode = "leave"`)
		}, "", 0},
		"it dies at a question": {"@ask execute Build command=make wait=no\n@exit 5", func(w *world) {
			w.refused(w.prompt(w.session("one"), "x"), "exited with code 5", "will not be sent again")
		}, "code 5", 1},
		"it dies, and prompts wait": {"@say a\n@sleep 500ms\n@exit 6", func(w *world) {
			s := w.session("one")
			ids := []string{w.prompt(s, "x"), w.prompt(s, "y")}
			for range ids { // the answers come in any order
				m := w.next()
				for m.Method != "" {
					m = w.next()
				}
				if !slices.Contains(ids, string(m.ID)) || m.Error == nil {
					w.t.Error(m.line)
				}
			}
		}, "code 6", 1},
		"it closes its output": {"@say a\n@close", func(w *world) {
			w.refused(w.prompt(w.session("one"), "x"), "closed its output")
		}, "closed its output", 1},
		"it answers twice": {"@answer\n@say more\n@answer", func(w *world) {
			s := w.session("one")
			id := w.prompt(s, "x")
			w.until(id)
			_, between := w.until(id) // the client gets both answers
			if text(between) != "more" {
				w.t.Error(between)
			}
			w.until(w.prompt(s, "y"))
		}, "", 2},
		"it answers what nobody asked": {"@line {\"jsonrpc\":\"2.0\",\"id\":\"none\",\"result\":{}}", func(w *world) {
			id := w.prompt(w.session("one"), "x")
			w.until(`"none"`)
			w.until(id)
		}, "", 1},
		"it floods its standard error": {"@flood 3000000\n@say a", func(w *world) {
			if _, before := w.until(w.prompt(w.session("one"), "x")); text(before) != "a" {
				w.t.Error(before)
			}
		}, "", 1},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, []string{"PERLICA_PREDICTABLE=" + at.scenario}, nil)
			at.play(w)
			var err error
			if at.ends == "" {
				err = w.hangUp()
			} else {
				err = w.wait()
			}
			if (err == nil) != (at.ends == "") || err != nil && !strings.Contains(err.Error(), at.ends) {
				t.Errorf("the relay ended with %v", err)
			}
			w.gone()
			if w.prompts() != at.intents {
				t.Errorf("the agent got %d prompts, want %d", w.prompts(), at.intents)
			}
			if at.intents > 0 {
				w.outcomes("one", at.intents)
			}
		})
	}
}

// TestClientFaults checks actions that a client may take at any time.
func TestClientFaults(t *testing.T) {
	for name, at := range map[string]struct {
		play func(w *world, session string)
		// prompts is the number of prompts that the agent gets. -1 means one, or none if the stop
		// came first.
		prompts int
		intents int
	}{
		"a thousand lines at once": {func(w *world, s string) {
			id := fmt.Sprint(w.nextID + 1)
			lines := []string{fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":"session/prompt","params":%s}`, id,
				js(promptOf(s, "@hang")))}
			for i := range 1000 {
				lines = append(lines, fmt.Sprintf(`{"jsonrpc":"2.0","method":"_x/n","params":{"n":%d}}`, i))
			}
			lines = append(lines, fmt.Sprintf(`{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":%q}}`, s))
			w.send(strings.Join(lines, "\n"))
			w.until(id)
			if got := w.agentRead(); !slices.Equal(got[len(got)-len(lines):], lines) {
				w.t.Errorf("the agent got %d lines", len(got))
			}
		}, 1, 1},
		"fifty prompts at once": {func(w *world, s string) {
			var ids []string
			for i := range 50 {
				ids = append(ids, w.prompt(s, fmt.Sprintf("@say <%d>", i)))
			}
			said := ""
			for _, id := range ids { // in their order
				_, before := w.until(id)
				said += text(before)
			}
			for i := range 50 {
				if !strings.HasPrefix(said, fmt.Sprintf("<%d>", i)) {
					w.t.Fatalf("%d: %q", i, said)
				}
				said = strings.TrimPrefix(said, fmt.Sprintf("<%d>", i))
			}
		}, 50, 50},
		"a prompt, and its cancel at once": {func(w *world, s string) {
			w.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":"p","method":"session/prompt","params":%s}`, js(promptOf(s, "@hang"))) +
				"\n" +
				fmt.Sprintf(`{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":%q}}`, s))
			if m, _ := w.until(`"p"`); m.Result.StopReason != "cancelled" {
				w.t.Error(m.line)
			}
		}, -1, -1},
		"a cancel before any prompt": {func(w *world, s string) {
			w.send(fmt.Sprintf(`{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":%q}}`, s))
			if m, _ := w.until(w.prompt(s, "@say a")); m.Result.StopReason != "end_turn" {
				w.t.Error(m.line)
			}
		}, 1, 1},
		"twenty cancels of one turn": {func(w *world, s string) {
			id := w.prompt(s, "@say a\n@hang")
			w.next()
			for range 20 {
				w.send(fmt.Sprintf(`{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":%q}}`, s))
			}
			if m, _ := w.until(id); m.Result.StopReason != "cancelled" {
				w.t.Error(m.line)
			}
			if n := len(w.events("one", event.CancelRequested)); n != 1 {
				w.t.Errorf("%d stops on record", n)
			}
		}, 1, 1},
		"lines that end as Windows ends them": {func(w *world, s string) {
			w.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":"r","method":"session/set_mode","params":{"sessionId":%q,"modeId":"ask"}}`,
				s) + "\r")
			w.until(`"r"`)
			w.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":"p","method":"session/prompt","params":%s}`, js(promptOf(s, "@say a"))) +
				"\r")
			if m, _ := w.until(`"p"`); m.Result.StopReason != "end_turn" {
				w.t.Error(m.line)
			}
		}, 1, 1},
		"two lines for those who end one at a carriage return": {func(w *world, s string) {
			w.send(`{"jsonrpc":"2.0","id":"r","method":"x/y","params":` + "\r" +
				`{"jsonrpc":"2.0","id":9,"method":"session/prompt","params":{}}` + "\r}")
			if m, _ := w.until(`"r"`); m.Error == nil {
				w.t.Error(m.line)
			}
		}, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, nil, nil)
			at.play(w, w.session("one"))
			if err := w.hangUp(); err != nil {
				t.Error(err)
			}
			w.gone()
			if at.prompts < 0 {
				at.prompts = min(w.prompts(), 1)
				at.intents = at.prompts
			}
			if w.prompts() != at.prompts {
				t.Errorf("the agent got %d prompts, want %d", w.prompts(), at.prompts)
			}
			w.outcomes("one", at.intents)
		})
	}
}

// TestClientLeavesInATurn checks that the turns of a leaving client are cancelled. The agent is
// asked to cancel, and its answer is the outcome. A waiting prompt is never sent.
func TestClientLeavesInATurn(t *testing.T) {
	w := newWorld(t, nil, nil)
	s := w.session("one")
	w.prompt(s, "@say a\n@hang")
	w.next()
	w.prompt(s, "@say never")
	if err := w.hangUp(); err != nil {
		t.Error(err)
	}
	w.gone()
	ended := w.events("one", event.Responded)
	if len(ended) != 1 || !strings.Contains(string(ended[0].Payload), `"cancelled"`) {
		t.Errorf("%v", ended)
	}
	if n := w.prompts(); n != 1 {
		t.Errorf("the agent got %d prompts", n)
	}
	w.outcomes("one", 1)
}

// stopping is a client's side that accepts nothing after stop is closed.
type stopping struct {
	io.Writer
	stop chan struct{}
}

func (s *stopping) Write(b []byte) (int, error) {
	select {
	case <-s.stop:
		select {}
	default:
		return s.Writer.Write(b)
	}
}

// TestClientStopsReading checks a client that stops reading and closes its side. Everything ends,
// although the agent has more output.
func TestClientStopsReading(t *testing.T) {
	out := &stopping{stop: make(chan struct{})}
	w := newWorld(t, nil, func(o *Options) { out.Writer, o.Out = o.Out, out })
	w.prompt(w.session("one"), "@stream 10000000 1000")
	w.next()
	close(out.stop)
	if err := w.in.Close(); err != nil {
		t.Error(err)
	}
	if err := <-w.ended; err != nil {
		t.Error(err)
	}
	w.ended <- nil
	w.gone()
	w.outcomes("one", 1)
}

// TestClientLeavesAsASessionOpens sends the agent's answer to session/new after the client has
// left.
func TestClientLeavesAsASessionOpens(t *testing.T) {
	const late = "PERLICA_PREDICTABLE=[session/new]\n@hang\n[eof]\n@line " +
		"{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{\"sessionId\":\"late\"}}"
	for range 10 {
		w := newWorld(t, []string{late}, nil)
		w.until(w.request("initialize", map[string]any{"protocolVersion": 1}))
		w.request("session/new", map[string]any{"cwd": w.path("one"), "mcpServers": []any{}})
		if err := w.hangUp(); err != nil {
			t.Error(err)
		}
		w.gone()
	}
}

// logFiles lists the files of a log's database.
var logFiles = []string{"eventlog.db", "eventlog.db-wal"}

// moveLog moves a project's log away or back. The next append to a moved log fails.
func (w *world) moveLog(back bool) {
	w.t.Helper()
	for _, name := range logFiles {
		from, to := w.path("one/.perlica_config/contexts/default/"+name), w.path(name)
		if back {
			from, to = to, from
		}
		if err := os.Rename(from, to); err != nil && !(back && errors.Is(err, os.ErrNotExist)) {
			w.t.Fatal(err)
		}
	}
}

// TestLogFailsAt checks a log that fails before a turn and during one. No line passes then. After
// the log is back, each input that may have been called has its outcome.
func TestLogFailsAt(t *testing.T) {
	t.Run("before a turn", func(t *testing.T) {
		w := newWorld(t, nil, nil)
		s := w.session("one")
		w.moveLog(false)
		w.refused(w.prompt(s, "@say never"), "nothing was sent to the agent")
		w.logGone(0)
	})
	t.Run("in a turn", func(t *testing.T) {
		w := newWorld(t, nil, nil)
		id := w.prompt(w.session("one"), "@stream 1000000 100")
		w.next()
		w.moveLog(false)
		m, before := w.until(id)
		if m.Error == nil || len(before) > 900_000 {
			t.Error(m.line, len(before))
		}
		w.logGone(1)
	})
}

// logGone waits for the end of a relay with a failed log, restores the log and starts another
// relay.
func (w *world) logGone(calls int) {
	w.t.Helper()
	var record *RecordError
	if err := w.wait(); !errors.As(err, &record) {
		w.t.Errorf("the relay ended with %v", err)
	}
	w.gone()
	if w.prompts() != calls {
		w.t.Errorf("the agent got %d prompts, want %d", w.prompts(), calls)
	}
	_ = w.done() // an error is expected, because the log has failed
	w.moveLog(true)
	w.start(nil, nil)
	w.until(w.prompt(w.session("one"), "@say again"))
	w.outcomes("one", calls+1)
}

// TestTwoConnections checks that a session belongs to one connection at a time.
func TestTwoConnections(t *testing.T) {
	state := t.TempDir()
	t.Setenv(stateVar, state)
	w := newWorld(t, []string{"PERLICA_PREDICTABLE_STATE=" + state}, nil)
	s := w.session("one")
	w.until(w.prompt(s, "@say first"))
	k := startKilled(t, w.dir)
	load := map[string]any{"sessionId": s, "cwd": w.path("one"), "mcpServers": []any{}}
	k.ask(1, "initialize", map[string]any{"protocolVersion": 1})
	if m, ok := k.ask(2, "session/load", load); !ok || m.Error != nil {
		t.Error(m.line)
	}
	if m, ok := k.ask(3, "session/prompt", promptOf(s, "@say never")); !ok || m.Error == nil ||
		!strings.Contains(m.Error.Message, "a client, tester") {
		t.Errorf("while the other has it: %s", m.line)
	}
	w.until(w.prompt(s, "@say second"))
	w.until(w.request("session/close", map[string]string{"sessionId": s}))
	k.ask(4, "session/load", load)
	if m, ok := k.ask(5, "session/prompt", promptOf(s, "@say third")); !ok || m.Result.StopReason != "end_turn" {
		t.Error(m.line)
	}
	k.end()
	w.outcomes("one", 3)
}
