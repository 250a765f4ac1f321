package report

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/perlica/perlica/eventlog"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/store"
	"github.com/perlica/perlica/eventlog/store/storetest"
	"github.com/perlica/perlica/interaction"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/provider"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// storyLog returns a log with three kinds of runs. One run has tools and questions, and its texts contain code that a
// browser would execute. One run failed, with a secret in its text. One run was pruned. The clock advances a quarter of
// a second per event.
func storyLog(t *testing.T) *eventlog.Log {
	t.Helper()
	now := time.Date(2026, 11, 21, 6, 30, 0, 0, time.UTC)
	path := filepath.Join(t.TempDir(), "log.db")
	log, err := eventlog.Open(t.Context(), path, eventlog.Options{Context: "default", Now: func() time.Time {
		now = now.Add(250 * time.Millisecond)
		return now
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := log.Close(); err != nil {
			t.Error(err)
		}
	})
	for _, e := range slices.Concat(storyEvents(), failedEvents(), prunedEvents()) {
		if _, err := log.Append(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	db, err := sqlx.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	db.MustExec(storetest.Editable)
	for _, statement := range []string{
		`INSERT INTO withheld SELECT seq, 'pruned' FROM events WHERE run_id = ?`, // as an import does
		`UPDATE events SET payload = NULL WHERE run_id = ?`,
	} {
		if _, err := db.Exec(statement, string(prunedRefs.Run)); err != nil {
			t.Fatal(err)
		}
	}
	return log
}

var (
	storyRefs = event.Refs{
		Session: "spine", Conversation: "agent-1", Run: "run-1", Trace: "0af7651916cd43dd8448eb211c80319c", Input: "in-1",
	}
	failedRefs = event.Refs{Session: "spine", Conversation: "agent-1", Run: "run-2", Trace: "no trace", Input: "in-2"}
	prunedRefs = event.Refs{Session: "spine", Conversation: "agent-1", Run: "run-3",
		Trace: "0bf7651916cd43dd8448eb211c80319c", Input: "in-3"}
)

func frame(r event.Refs, update string) event.Event {
	line := `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"agent-1","update":` + update + `}}`
	return event.Event{Type: event.NotificationReceived, Class: event.Frame, Actor: "agent", Refs: r,
		Payload: []byte(line)}
}

func storyEvents() []event.Event {
	r := storyRefs
	asking := func(id event.InteractionID) event.Refs { q := r; q.Interaction = id; return q }
	options := []interaction.Option{
		{ID: "yes", Label: "Allow once", Kind: "allow_once"}, {ID: "no", Label: "Reject", Kind: "reject_once"},
	}
	return []event.Event{
		event.NewFact(event.SessionCreated, "user", event.Refs{Session: r.Session},
			fact.SessionCreated{Name: "my-session", Provider: "claude"}),
		event.NewFact(event.MessageReceived, "user", r, fact.MessageReceived{
			Text: "Fix <script>alert(1)</script> & the parser\nplease", Attachments: []string{"a.go"}, Source: "run",
			Sender: "alice", Dir: "/src", Provider: "claude",
		}),
		event.NewFact(event.Requested, "perlica", r, fact.Requested{Provider: "claude", Bytes: 40, CallIndex: 1}),
		frame(r, `{"sessionUpdate":"agent_thought_chunk","content":{"type":"text","text":"How to begin"}}`),
		frame(r, `{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"I will </pre><img src=x onerror=alert(1)> run\u001b[31m the \u202etests"}}`),
		frame(r, `{"sessionUpdate":"tool_call","toolCallId":"t1","title":"go test ./...","kind":"execute","status":"pending"}`),
		event.NewFact(event.InteractionRequested, "agent", asking("q-1"), interaction.Question{
			Title: "Run the tests", Options: options, Why: "no rule says anything of it",
			Subject: interaction.Subject{
				Provider: "claude", Kind: "execute", Commands: []string{"go test ./... && echo \"</article>\""},
				Diffs: []interaction.Diff{{Path: "a.go", Old: "one\ntwo\n", New: "one\n<three>\n"}},
			},
		}),
		event.NewFact(event.InteractionAnswered, "user", asking("q-1"),
			interaction.Answer{Option: "yes", By: "alice", Where: "terminal"}),
		event.NewFact(event.InteractionRequested, "agent", asking("q-2"), interaction.Question{
			Title: "Remove it", Options: options, Subject: interaction.Subject{Provider: "claude", Kind: "delete",
				Paths: []string{"/src/a.go"}},
		}),
		event.NewFact(event.InteractionLapsed, "perlica", asking("q-2"), interaction.Resolution{Reason: interaction.TimeUp}),
		frame(r, `{"sessionUpdate":"tool_call_update","toolCallId":"t1","status":"completed"}`),
		frame(r, `{"sessionUpdate":"tool_call","toolCallId":"t2","title":"Read b.go","kind":"read","status":"failed"}`),
		event.NewFact(event.PolicyDecided, "policy", r, fact.PolicyDecided{Title: "Read b.go", Effect: "allow", By: "rule",
			Why: "reading is fine"}),
		event.NewFact(event.PolicyUnasked, "agent", r, fact.UnaskedTool{ToolSeen: fact.ToolSeen{ID: "t3", Title: "rm -rf tmp", Kind: "execute", Status: "completed"}, Why: "nobody was asked"}),
		{Type: event.LineMalformed, Class: event.Frame, Actor: "agent", Refs: r, Payload: []byte("\xff no message")},
		{Type: event.LineMalformed, Class: event.Frame, Actor: "agent", Refs: r, Payload: []byte("plain text")},
		event.NewFact(event.Responded, "agent", r, fact.Responded{
			Provider: "claude", Text: "All 删除 done", StopReason: "end_turn",
			Usage: json.RawMessage(`{"inputTokens":1200,"outputTokens":34}`),
			Cost:  &fact.Cost{Amount: 0.0125, Currency: "USD"}, DurationMS: 3500, FirstMS: 500,
		}),
	}
}

func failedEvents() []event.Event {
	r := failedRefs
	return []event.Event{
		event.NewFact(event.MessageReceived, "user", r, fact.MessageReceived{Text: "use token SECRET", Source: "run",
			Sender: "bob", Dir: "/src", Provider: "codex"}),
		event.NewFact(event.ProviderError, "perlica", r, fact.Failed{
			Error:      &provider.Error{Provider: "codex", Message: "it does not know SECRET", Type: provider.TypeAgent},
			DurationMS: 200,
		}),
	}
}

func prunedEvents() []event.Event {
	r := prunedRefs
	return []event.Event{
		event.NewFact(event.MessageReceived, "user", r, fact.MessageReceived{Text: "gone", Provider: "claude"}),
		event.NewFact(event.OutcomeUnknown, "perlica", r, fact.Failed{Known: "gone"}),
	}
}

// varies has the patterns of texts that differ from log to log, and their replacements.
var varies = []struct {
	pattern *regexp.Regexp
	with    string
}{
	{regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}`), "UUID"},
	{regexp.MustCompile(`("perlicaleaf":"|<code>)[^"<]{40,}=`), "${1}HASH"},
}

// golden compares a writer's output with a file in testdata. With -update it writes the file.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	for _, v := range varies {
		got = v.pattern.ReplaceAll(got, []byte(v.with))
	}
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if want = bytes.ReplaceAll(want, []byte("\r\n"), []byte("\n")); !bytes.Equal(got, want) {
		t.Errorf("%s is not what is written now; go test ./kernel/report -update rewrites it, then read the diff", path)
	}
}

type formatWriter func(context.Context, io.Writer, *store.Reader, event.Query, FormatOptions) error

func written(t *testing.T, write formatWriter, q event.Query, mask bool) []byte {
	t.Helper()
	opt := FormatOptions{Version: "test"}
	if mask {
		opt.Mask = func(s string) string { return strings.ReplaceAll(s, "SECRET", "[redacted]") }
	}
	var b bytes.Buffer
	if err := write(t.Context(), &b, &storyLog(t).Reader, q, opt); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestFormats(t *testing.T) {
	for name, write := range map[string]formatWriter{"story.html": WriteHTML, "story.otel.jsonl": WriteOTel,
		"story.cloudevents.jsonl": WriteCloudEvents} {
		masked := written(t, write, event.Query{}, true)
		golden(t, name, masked)
		if bytes.Contains(masked, []byte("SECRET")) {
			t.Errorf("%s: the secret is not masked", name)
		}
		if !bytes.Contains(written(t, write, event.Query{}, false), []byte("SECRET")) {
			t.Errorf("%s: without a mask there is no secret to be seen", name)
		}
		one := written(t, write, event.Query{Run: "run-2"}, true)
		if bytes.Contains(one, []byte("run-1")) || !bytes.Contains(one, []byte("run-2")) {
			t.Errorf("%s: of one run there is %s", name, one)
		}
		if err := write(t.Context(), brokenWriter{}, &storyLog(t).Reader, event.Query{}, FormatOptions{}); !errors.Is(err,
			errBroken) {
			t.Errorf("%s: to what cannot be written: %v", name, err)
		}
	}
}

var errBroken = errors.New("broken pipe")

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errBroken }

// TestPageIsHarmless checks that the page has only expected elements, each properly closed, and loads nothing. The
// texts in the log contain HTML.
func TestPageIsHarmless(t *testing.T) {
	text := written(t, WriteHTML, event.Query{}, false)
	d := xml.NewDecoder(bytes.NewReader(text))
	d.Strict, d.AutoClose, d.Entity = false, xml.HTMLAutoClose, xml.HTMLEntity
	allowed := strings.Fields(
		"html head meta title style body header main footer article h1 h2 p dl dt dd ol li time div pre span code " +
			"details summary")
	var open []string
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		switch e := token.(type) {
		case xml.StartElement:
			open = append(open, e.Name.Local)
			if !slices.Contains(allowed, e.Name.Local) {
				t.Errorf("there is a <%s>", e.Name.Local)
			}
			for _, a := range e.Attr {
				if !slices.Contains([]string{"lang", "charset", "name", "content", "http-equiv", "class", "id"}, a.Name.Local) {
					t.Errorf("<%s> has the attribute %s", e.Name.Local, a.Name.Local)
				}
			}
		case xml.EndElement:
			if len(open) == 0 || open[len(open)-1] != e.Name.Local {
				t.Fatalf("</%s> closes %v", e.Name.Local, open)
			}
			open = open[:len(open)-1]
		}
	}
	if len(open) > 0 {
		t.Errorf("%v are left open", open)
	}
	for _, bad := range []string{"\x1b", "\u202e", "<script", "<img", "url(", "@import"} {
		if bytes.Contains(text, []byte(bad)) {
			t.Errorf("there is %q on the page", bad)
		}
	}
}

// TestCloudEventsAreValid checks the names and values of attributes against the CloudEvents specification.
func TestCloudEventsAreValid(t *testing.T) {
	name := regexp.MustCompile(`^[a-z0-9]{1,20}$`)
	ids := map[string]bool{}
	for line := range bytes.Lines(written(t, WriteCloudEvents, event.Query{}, true)) {
		var v map[string]any
		if err := json.Unmarshal(line, &v); err != nil {
			t.Fatal(err)
		}
		for key, value := range v {
			if _, text := value.(string); key != "data" && key != "data_base64" &&
				(!name.MatchString(key) || !text || value == "") {
				t.Errorf("attribute %s is %v", key, value)
			}
		}
		_, data := v["data"]
		_, raw := v["data_base64"]
		if v["specversion"] != "1.0" || v["source"] == nil || ids[v["id"].(string)] || data && raw ||
			(data || raw) == (v["perlicawithheld"] != nil) {
			t.Errorf("%s", line)
		}
		ids[v["id"].(string)] = true
	}
	if len(ids) != len(storyEvents())+len(failedEvents())+len(prunedEvents()) {
		t.Errorf("%d events", len(ids))
	}
}

// TestSpansAreValid checks the ids, parents and times of spans against the OTLP specification.
func TestSpansAreValid(t *testing.T) {
	hexID := regexp.MustCompile(`^[0-9a-f]+$`)
	seen := map[string]bool{}
	for line := range bytes.Lines(written(t, WriteOTel, event.Query{}, true)) {
		var req otelRequest
		if err := json.Unmarshal(line, &req); err != nil {
			t.Fatal(err)
		}
		spans := req.ResourceSpans[0].ScopeSpans[0].Spans
		for i, s := range spans {
			if len(s.TraceID) != 32 || len(s.SpanID) != 16 || !hexID.MatchString(s.TraceID+s.SpanID) || seen[s.SpanID] {
				t.Errorf("ids of %s: %s %s", s.Name, s.TraceID, s.SpanID)
			}
			seen[s.SpanID] = true
			if s.TraceID != spans[0].TraceID || (i == 0) != (s.Parent == "") || i > 0 && s.Parent != spans[0].SpanID {
				t.Errorf("parent of %s is %q", s.Name, s.Parent)
			}
			if s.Start > s.End || s.Start < spans[0].Start {
				t.Errorf("%s lasts from %s to %s", s.Name, s.Start, s.End)
			}
		}
	}
}
