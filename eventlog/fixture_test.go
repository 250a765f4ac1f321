package eventlog

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/mod/sumdb/note"

	"github.com/perlica/perlica/eventlog/anchor"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/evidence"
	"github.com/perlica/perlica/eventlog/store"
	"github.com/perlica/perlica/eventlog/verify"
)

var updateFixture = flag.Bool("update-fixture", false, "write testdata/runs.db again")

// writeRuns writes three runs. One has a question, and one has no outcome.
func writeRuns(tb testing.TB, l *Log) {
	tb.Helper()
	for n := range 3 {
		id := fmt.Sprintf("01900000-0000-7000-8000-00000000000%d", n)
		refs := event.Refs{Session: "01900000-0000-7000-8000-00000000aaaa", Conversation: "sess-1", Run: event.RunID(id),
			Trace: event.TraceID(fmt.Sprintf("%032d", n+1))}
		input := refs
		input.Input = event.InputID("input-" + id[35:])
		asked := refs
		asked.Interaction = event.InteractionID("question-" + id[35:])
		frame := func(t event.Type, line string) event.Event {
			return event.Event{Type: t, Class: event.Frame, Actor: "agent", Refs: refs, Payload: []byte(line)}
		}
		story := []event.Event{
			event.NewFact(event.MessageReceived, "user", input, map[string]string{"text": "What is the answer?", "source": "run",
				"sender": "alice"}),
			frame(event.RequestSent, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}`),
			event.NewFact(event.SessionStarted, "agent", refs, map[string]string{"strategy": "fresh"}),
			event.NewFact(event.Requested, "perlica", input, map[string]any{"provider": "predictable", "llm_call_index": 1}),
			frame(event.RequestSent, `{"jsonrpc":"2.0","id":2,"method":"session/prompt","params":{"sessionId":"sess-1"}}`),
			frame(event.LineMalformed, "no JSON \x00\xff\n\u4f60\u597d"),
			frame(event.LineMalformed, ""),
		}
		for i := range 100 {
			story = append(story, frame(event.NotificationReceived, fmt.Sprintf(
				`{"jsonrpc":"2.0","method":"session/update","params":{"text":"chunk %d of run %d"}}`, i, n)))
		}
		if n == 1 {
			story = append(story,
				event.NewFact(event.InteractionRequested, "agent", asked, map[string]string{"title": "rm -rf build"}),
				event.NewFact(event.InteractionAnswered, "user", asked, map[string]string{"option": "reject", "by": "alice"}),
				event.NewFact(event.ReplySent, "perlica", asked, map[string]string{"outcome": "selected", "option": "reject",
					"by": "alice"}))
		}
		if n < 2 {
			story = append(story,
				frame(event.ResponseReceived, `{"jsonrpc":"2.0","id":2,"result":{"stopReason":"end_turn"}}`),
				event.NewFact(event.Responded, "agent", refs, map[string]string{"text": "42", "stop_reason": "end_turn"}),
				event.NewFact(event.CallEnforced, "perlica", refs, map[string]int{"calls": 1}))
		}
		write := l.Append
		if n < 2 {
			write = l.EndRun
		}
		if _, err := write(context.Background(), story...); err != nil {
			tb.Fatal(err)
		}
	}
}

// fixtureEvents is the number of events that writeRuns writes.
const fixtureEvents = 3*107 + 3 + 2*3

// fixture copies the log testdata/runs.db and its anchor to a new folder.
func fixture(t *testing.T) (path string) {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"runs.db", "runs.anchor"} {
		b, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "runs.db")
}

func verifyFile(t *testing.T, path string, opt verify.Options) verify.Report {
	t.Helper()
	r, err := store.OpenReader(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	rep, err := verify.Log(t.Context(), r, opt)
	if err != nil {
		t.Fatal(err)
	}
	return rep
}

// TestFixture verifies a stored log with its signed checkpoints.
func TestFixture(t *testing.T) {
	if *updateFixture {
		makeFixture(t)
	}
	text, err := os.ReadFile(filepath.Join("testdata", "runs.vkey"))
	if err != nil {
		t.Fatal(err)
	}
	key, err := note.NewVerifier(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	path := fixture(t)
	rep := verifyFile(t, path, verify.Options{Keys: []note.Verifier{key}})
	if !rep.OK() || rep.Events != fixtureEvents || rep.Signed != fixtureEvents || rep.Checkpoints != 3 ||
		rep.Anchors != 3 || len(rep.Warnings) > 0 {
		t.Errorf("%+v", rep)
	}
	l, err := Open(t.Context(), path, Options{Context: "default"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.Append(t.Context(), fact(event.Truncated, event.Refs{})); err != nil {
		t.Error(err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if rep := verifyFile(t, path, verify.Options{Keys: []note.Verifier{key}}); !rep.OK() || rep.Events != fixtureEvents+1 {
		t.Errorf("appended to: %+v", rep)
	}
}

func makeFixture(t *testing.T) {
	keys, err := evidence.MakeKeys(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join("testdata", "runs.db")
	for _, old := range []string{path, anchor.Path(path)} {
		if err := os.Remove(old); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
	}
	l, err := Open(t.Context(), path, Options{Context: "default", Keys: keys})
	if err != nil {
		t.Fatal(err)
	}
	writeRuns(t, l)
	c, err := l.Checkpoint(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join("testdata", "runs.vkey"), []byte(keys.VerifierKeys(c.Origin)[0]+"\n"),
		0o644); err != nil {
		t.Fatal(err)
	}
}
