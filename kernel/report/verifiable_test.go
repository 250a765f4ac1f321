package report

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/perlica/perlica/eventlog"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/evidence"
	"github.com/perlica/perlica/interaction"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/policy"
	"github.com/perlica/perlica/provider"
)

// checkReport is the script of Python that verifies a report.
const checkReport = "../../docs/check-report.py"

// signedLog is a log with a signed checkpoint.
type signedLog struct {
	*eventlog.Log
	keys *evidence.Keys
}

func newSignedLog(t testing.TB, events ...event.Event) signedLog {
	t.Helper()
	dir := t.TempDir()
	keys, err := evidence.MakeKeys(filepath.Join(dir, "keys"))
	if err != nil {
		t.Fatal(err)
	}
	l, err := eventlog.Open(t.Context(), filepath.Join(dir, "log.db"), eventlog.Options{Context: "default",
		Keys: evidence.UseKeys(filepath.Join(dir, "keys"))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	s := signedLog{l, keys}
	if len(events) > 0 {
		s.append(t, events...)
		if _, err := s.Checkpoint(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func (s signedLog) append(t testing.TB, events ...event.Event) {
	t.Helper()
	if _, err := s.Append(t.Context(), events...); err != nil {
		t.Fatal(err)
	}
}

// key returns the verifier key of the log.
func (s signedLog) key(t testing.TB) string {
	t.Helper()
	origin, err := s.Origin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return s.keys.VerifierKeys(origin)[0]
}

func (s signedLog) verifierKeys(origin string) ([]string, error) {
	return s.keys.VerifierKeys(origin), nil
}

// report writes a report of the log. It leaves out payloads with the word SECRET.
func (s signedLog) report(t testing.TB, q event.Query) []byte {
	t.Helper()
	var b bytes.Buffer
	_, err := WriteVerifiable(t.Context(), &b, &s.Reader, q, VerifiableOptions{Keys: s.verifierKeys,
		Mask: func(payload []byte) bool { return bytes.Contains(payload, []byte("SECRET")) }})
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// page returns the visible text of a report as HTML.
func page(t testing.TB, file []byte) string {
	t.Helper()
	_, rest, ok := strings.Cut(string(file), "<main id=\"main\">\n")
	body, _, end := strings.Cut(rest, "</main>")
	if !ok || !end {
		t.Fatal("the report has no text")
	}
	return body
}

// python runs code of Python after it has loaded docs/check-report.py as the module "m". The code finds the report in
// "file" and the key in "key".
func python(t *testing.T, file []byte, key, code string) (out string) {
	t.Helper()
	name, err := exec.LookPath("python3")
	if err != nil || exec.Command(name, "-c", "import sys; assert sys.version_info >= (3, 8)").Run() != nil {
		t.Skip("NOT TESTED: docs/check-report.py: Python 3.8 is not installed")
	}
	path := filepath.Join(t.TempDir(), "report.html")
	if err := os.WriteFile(path, file, 0o600); err != nil {
		t.Fatal(err)
	}
	const load = `import importlib.util, re, sys
sys.dont_write_bytecode = True
spec = importlib.util.spec_from_file_location("m", sys.argv[1])
m = importlib.util.module_from_spec(spec)
spec.loader.exec_module(m)
file, key = open(sys.argv[2], "rb").read(), sys.argv[3]
def refuses(bad):
    try: m.check(bytes(bad), key)
    except Exception: return True
`
	text, err := exec.CommandContext(t.Context(), name, "-c", load+code, checkReport, path, key).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return strings.TrimSpace(string(text))
}

// verifyReport lets docs/check-report.py verify a report.
func verifyReport(t *testing.T, file []byte, key string) {
	t.Helper()
	python(t, file, key, "m.check(file, key)")
}

// auditEvents are events of all sections of a report.
func auditEvents() []event.Event {
	r := event.Refs{Session: "s", Conversation: "c", Run: "run-4", Trace: "trace-4", Input: "in-4"}
	asked := r
	asked.Interaction = "q-3"
	card := event.Refs{Interaction: "q-3"}
	return slices.Concat(storyEvents(), failedEvents(), []event.Event{
		event.NewFact(event.MessageReceived, "user", r, fact.MessageReceived{Text: "Deploy it",
			Source: "web", Sender: "carol", Rules: []string{"deny: git push"}}),
		event.NewFact(event.Requested, "perlica", r, fact.Requested{Provider: "codex",
			Agent: []string{"codex", "acp"}}),
		event.NewFact(event.InteractionRequested, "agent", asked, interaction.Question{Title: "Deploy",
			Subject: interaction.Subject{Fields: []interaction.Field{{Name: "env.PATH", Value: "/bin"}}}}),
		event.NewFact(event.BridgeQueued, "perlica", card, fact.BridgeQueued{Peer: fact.Peer{Channel: "telegram",
			Contact: "77"}, Text: "Deploy?"}),
		event.NewFact(event.InteractionAnswered, "user", asked, interaction.Answer{Option: "yes", By: "dave",
			Where: "telegram", Shown: &interaction.Shown{Rows: 4, Of: 5}}),
		event.NewFact(event.PolicyDecided, "policy", r, fact.PolicyDecided{Effect: "allow", By: "rule", Title: "ls",
			Rule: policy.Rule{Effect: "allow", Command: "ls", Origin: "perlica.toml:3"}}),
		event.NewFact(event.PolicyDecided, "policy", r, fact.PolicyDecided{Effect: "allow", By: "rule", Title: "ls -l",
			Rule: policy.Rule{Effect: "allow", Command: "ls", Origin: "perlica.toml:3"}}),
		event.NewFact(event.OutcomeUnknown, "perlica", r, fact.Failed{Error: &provider.Error{Provider: "codex",
			Message: "it is gone"}, Known: "the prompt may have left"}),
		event.NewFact(event.CallEnforced, "perlica", r, fact.Enforced{Calls: 1}),
		event.NewFact(event.RunResolved, "user", r, fact.Resolved{By: "erin", Note: "nothing was deployed"}),
		event.NewFact(event.LogPruned, "user", event.Refs{}, event.Pruning{Until: 3, Events: 1,
			By: "erin", Why: "privacy"}),
	})
}

// TestVerifiableShell checks that docs/check-report.py knows the script and the words of the reports. With -update it
// writes their hash into the script.
func TestVerifiableShell(t *testing.T) {
	head, middle, tail := shell()
	_, middle, _ = strings.Cut(middle, "</main>")
	middle, data, _ := strings.Cut(middle, `id="data">`)
	_, tail, _ = strings.Cut(tail, "</script>")
	head, text, whole := strings.Cut(head, "<main id=\"main\">\n")
	if data != "" || text != "" || !whole {
		t.Fatal("the parts of the file are not those that the script looks for")
	}
	want := fmt.Sprintf("SHELL = \"%x\"", sha256.Sum256([]byte(head+"\x00"+middle+"\x00"+tail)))
	script, err := os.ReadFile(checkReport)
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		script = regexp.MustCompile(`SHELL = "\w+"`).ReplaceAll(script, []byte(want))
		if err := os.WriteFile(checkReport, script, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if !strings.Contains(string(script), want) {
		t.Errorf("docs/check-report.py refuses these reports; go test ./kernel/report -update writes %s into it", want)
	}
}

// TestVerifiableReport checks the sentences of a report, and that docs/check-report.py verifies it.
func TestVerifiableReport(t *testing.T) {
	l := newSignedLog(t, auditEvents()...)
	file := l.report(t, event.Query{})
	text := page(t, file)
	for _, want := range []string{
		"<p>No input was sent twice: 2 inputs, 2 calls.</p>", "<p>Calls without an end in this report: 1.</p>",
		"<dt>Questions to persons</dt><dd>3</dd>",
		"<dt>Payloads left out, reason not verified: may have a secret</dt><dd>2</dd>",
		"<dt>Cost, as agents reported it</dt><dd>0.012500 USD</dd>",
		"Outcome unknown: agent: codex; error: it is gone; known: the prompt may have left",
		"Statement of a person: by: erin; the prompt was sent: no; note: nothing was deployed",
		"Payloads removed from the log: payloads: 1;",
		"<li>allow · rule · allow, command ls, in perlica.toml:3: 2 times</li>",
		"a.go\nbefore:\none\ntwo\n\nafter:",
		"<dt>rule of this run</dt><dd>deny: git push</dd>", "<dt>rows seen</dt><dd>4</dd>",
		"<dt>field</dt><dd>env.PATH: /bin</dd>",
		"<p>The payload is left out of this file; the reason is not verified: may have a secret. It has ",
		"<dt>text</dt><dd>All 删除 done</dd>",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the report does not say %q", want)
		}
	}
	if strings.Contains(string(file), "SECRET") {
		t.Error("the secret is in the file")
	}
	if again := l.report(t, event.Query{}); !bytes.Equal(again, file) {
		t.Error("the same events give another file")
	}
	verifyReport(t, file, l.key(t))
	part := l.report(t, event.Query{Session: "s"})
	if !strings.Contains(page(t, part), "Among the events of this report, no input was sent twice: 1 input, 1 call.") {
		t.Error("a report of one session says too much")
	}
	verifyReport(t, part, l.key(t))
	if got := python(t, file, newSignedLog(t, failedEvents()...).key(t), "print(refuses(file))"); got != "True" {
		t.Error("another key verifies the report")
	}
}

// TestVerifiableCut checks that a report without the events at an end of the log says so and claims less. A person who
// cuts the file gets the same sentences, because the verifiers write them again.
func TestVerifiableCut(t *testing.T) {
	l := newSignedLog(t, auditEvents()...)
	n := event.Seq(len(auditEvents()))
	for want, q := range map[string]event.Query{
		"Not in this report: 2 later events, which the checkpoint covers.": {Until: n - 2},
		"Not in this report: 1 later event, which the checkpoint covers.":  {Until: n - 1},
		"Not in this report: 3 earlier events.":                            {After: 3},
	} {
		file := l.report(t, q)
		if text := page(t, file); !strings.Contains(text, want) || strings.Contains(text, "<p>No input was sent twice") {
			t.Errorf("the report does not say %q, or says too much", want)
		}
		verifyReport(t, file, l.key(t))
	}
}

// TestVerifiableLeftOut checks that only a pruning in the file proves the reason of a missing payload. A report
// without a number of calls must not say that no input was sent twice.
func TestVerifiableLeftOut(t *testing.T) {
	r := event.Refs{Session: "s", Run: "r", Input: "the-input"}
	l := newSignedLog(t, event.NewFact(event.Requested, "perlica", r, fact.Requested{}),
		event.NewFact(event.Responded, "agent", r, fact.Responded{Text: "Done"}),
		event.NewFact(event.CallEnforced, "perlica", r, fact.Enforced{Calls: 2}))
	const notVerified = "the reason is not verified: "
	var b bytes.Buffer
	if _, err := WriteVerifiable(t.Context(), &b, &l.Reader, event.Query{}, VerifiableOptions{Keys: l.verifierKeys,
		Mask: func(payload []byte) bool { return bytes.Contains(payload, []byte(`"calls"`)) }}); err != nil {
		t.Fatal(err)
	}
	text := page(t, b.Bytes())
	for _, want := range []string{"It is not known whether an input was sent twice", notVerified + "may have a secret",
		"Not in this file: 1 payload of the events that it shows."} {
		if !strings.Contains(text, want) {
			t.Errorf("the report does not say %q: %s", want, text)
		}
	}
	if out := python(t, b.Bytes(), l.key(t), "m.main(sys.argv[2], key)"); !strings.Contains(out,
		"VERIFIED: 3 of the 3 events") || !strings.Contains(out, "not in this file: 1. Without a verified reason: 1.") {
		t.Errorf("the verdict is %q", out)
	}
	if _, err := l.Prune(t.Context(), event.Pruning{Until: 1, By: "erin"}); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Checkpoint(t.Context()); err != nil {
		t.Fatal(err)
	}
	file := l.report(t, event.Query{})
	if text := page(t, file); !strings.Contains(text, "Event 4 records its removal from the log.") ||
		strings.Contains(text, notVerified) {
		t.Errorf("the report does not name the pruning: %s", text)
	}
	verifyReport(t, file, l.key(t))
	// A forger left out the payloads of the events 3 and 4. Event 4 is the only pruning, and it does not cover event 3. No
	// pruning can remove the payload of a pruning.
	if out := python(t, file, l.key(t), `
text = file.decode()
words = m.json.loads(text.split('id="table">')[1].split("</script>")[0])
data = m.json.loads(text.split('id="data">')[1].split("</script>")[0])
for row in data["events"][2:4]: row[5] = "pruned"
events, size, root = m.read(data, words)
print(m.render(events, size, root, "o", "", words).count("reason is not verified: removed from the log"))
print([m.pruned_by(dict(seq=1, why="pruned", type="x", session="s", run="r", **{"class": "fact"}), [dict(
    seq=by, type="log.pruned", p=p, **{"class": kind})], words) for by, p, kind in [(3, {"until": 1.0}, "fact"),
    (3, {"until": 1.0, "session": "s", "run": "r", "class": "fact"}, "fact"), (3, {"until": 1.0, "run": "q"}, "fact"),
    (3, {"until": 1.0, "session": "q"}, "fact"), (3, {"until": 1.0, "class": "frame"}, "fact"), (3, {}, "fact"),
    (3, {"until": 0.5}, "fact"), (3, {"until": 1.0}, "frame"), (3, None, "fact"), (1, {"until": 1.0}, "fact")]])
`); out != "6\n[3, 3, 0, 0, 0, 0, 0, 0, 0, 0]" {
		t.Errorf("the script of Python says: %s", out)
	}
}

// TestVerifiableTwice checks the sentence about an input with two calls.
func TestVerifiableTwice(t *testing.T) {
	r := event.Refs{Session: "s", Run: "r", Input: "the-input"}
	l := newSignedLog(t, event.NewFact(event.Requested, "perlica", r, fact.Requested{}),
		event.NewFact(event.CallEnforced, "perlica", r, fact.Enforced{Calls: 2}))
	file := l.report(t, event.Query{})
	if text := page(t, file); !strings.Contains(text, "AN INPUT WAS SENT TWICE: the-input.") ||
		strings.Contains(text, "No input was sent twice") {
		t.Errorf("the report hides a second call: %s", text)
	}
	verifyReport(t, file, l.key(t))
}

// TestVerifiableUnsigned checks that there is no report without a signed checkpoint, and that a report ends at the
// newest one.
func TestVerifiableUnsigned(t *testing.T) {
	l := newSignedLog(t)
	l.append(t, failedEvents()...)
	opt := VerifiableOptions{Keys: l.verifierKeys}
	if _, err := WriteVerifiable(t.Context(), io.Discard, &l.Reader, event.Query{},
		opt); !errors.Is(err, ErrNothingSigned) {
		t.Errorf("without a checkpoint: %v", err)
	}
	if _, err := l.Checkpoint(t.Context()); err != nil {
		t.Fatal(err)
	}
	l.append(t, storyEvents()...)
	got, err := WriteVerifiable(t.Context(), io.Discard, &l.Reader, event.Query{}, opt)
	if err != nil || got.Events != len(failedEvents()) || got.Newer != int64(len(storyEvents())) {
		t.Errorf("with newer events: %+v, %v", got, err)
	}
	if _, err := WriteVerifiable(t.Context(), io.Discard, &l.Reader, event.Query{Session: "other"},
		opt); !errors.Is(err, ErrNoEvents) {
		t.Errorf("without events: %v", err)
	}
	if _, err := WriteVerifiable(t.Context(), io.Discard, &l.Reader, event.Query{After: event.Seq(len(failedEvents()))},
		opt); !errors.Is(err, ErrNothingSigned) {
		t.Errorf("with newer events alone: %v", err)
	}
	if _, err := WriteVerifiable(t.Context(), io.Discard, &newSignedLog(t).Reader, event.Query{},
		opt); !errors.Is(err, ErrNoEvents) {
		t.Errorf("with an empty log: %v", err)
	}
	opt.Keys = func(string) ([]string, error) { return nil, evidence.ErrKey }
	if _, err := WriteVerifiable(t.Context(), io.Discard, &l.Reader, event.Query{},
		opt); !errors.Is(err, evidence.ErrKey) {
		t.Errorf("with unreadable keys: %v", err)
	}
}

// hostileEvents have texts that would run, hide or reorder something on a page, in each place of an event.
func hostileEvents() []event.Event {
	const evil = "</script></main><script>alert(1)</script><!--<img src=x onerror=alert(1)>" +
		"\u202e\u0000\r\n\u00a0&amp;\u2028\ufeff\U000e0041\x7f 日本 👩‍👩‍👧"
	r := event.Refs{Session: evil, Conversation: evil, Run: evil, Trace: evil, Input: evil, Interaction: evil}
	payloads := []string{
		`{"text":"\ud800","sender":"\udc00\ud800x","dir":"\u0000","provider":1e300}`,
		`{"attachments":["a",1,null,{"b":1},[2]]}`,
		`{"text":1,"text":"the last counts","sender":-0.0,"source":1.5,"dir":0.1234567}`,
		`{"rules":true,"provider":9007199254740993}`,
		`{"text":{"__proto__":1},"__proto__":{"sender":"no"},"constructor":2}`,
		`{"sender":false,"dir":12345678901234567890}`,
		`{"text":1e400}`, `{"text":"` + strings.Repeat("x", maxShown) + `"}`, `{"text":` + strings.Repeat("[", 60) +
			strings.Repeat("]", 60) + `}`, `[]`, `{"text":`, "{\"text\":\"\xff\"}", ``, `{"text":""}`, `null`,
		`{"text":"a\tb\nc","sender":"` + strings.Repeat("é👍", 150) + `"}`,
	}
	quoted, err := json.Marshal(evil)
	if err != nil {
		panic(err)
	}
	payloads = append(payloads, strings.ReplaceAll(`{"text":E,"sender":E,"source":E,"rules":[E,E]}`,
		"E", string(quoted)))
	var events []event.Event
	for _, p := range payloads {
		events = append(events, event.Event{Type: event.MessageReceived, Class: event.Fact, Actor: evil, Refs: r,
			Payload: []byte(p)})
	}
	for _, cost := range []string{`{"amount":0.03125,"currency":"EUR"}`, `{"amount":0.0312500001,"currency":"EUR"}`,
		`{"amount":1e-7,"currency":"2"}`, `{"amount":-1}`, `7`, `[{"amount":1,"currency":"1"},{"amount":2}]`,
		`{"amount":1e9,"currency":"x"}`, `{"amount":0.0000005,"currency":"EUR"}`,
		`{"amount":12,"currency":` + string(quoted) + `}`} {
		// An outcome is unique for its run.
		r.Run = event.RunID(fmt.Sprint(len(events)))
		events = append(events, event.Event{Type: event.Responded, Class: event.Fact, Actor: "agent", Refs: r,
			Payload: []byte(`{"cost":` + cost + `}`)},
			event.Event{Type: event.PolicyDecided, Class: event.Fact, Refs: r, Payload: []byte(`{"by":` + cost + `}`)},
			event.Event{Type: event.CallEnforced, Class: event.Fact, Refs: r,
				Payload: []byte(`{"calls":` + cost + `}`)})
	}
	return events
}

// TestVerifiableHostile checks that no text of an event becomes an element of the page. The Python script must write
// the same page for such events.
func TestVerifiableHostile(t *testing.T) {
	l := newSignedLog(t, hostileEvents()...)
	file := l.report(t, event.Query{})
	harmless(t, file)
	verifyReport(t, file, l.key(t))
}

// harmless checks that a report has only the expected elements and no hidden character.
func harmless(t *testing.T, file []byte) {
	t.Helper()
	text := page(t, file)
	d := xml.NewDecoder(strings.NewReader(text))
	d.Entity = map[string]string{"nbsp": "\u00a0"}
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if e, ok := token.(xml.StartElement); ok {
			if !slices.Contains(strings.Fields("section article h2 h3 h4 p dl dt dd ul li a"), e.Name.Local) {
				t.Errorf("there is a <%s>", e.Name.Local)
			}
			for _, a := range e.Attr {
				if !regexp.MustCompile(`^(id e\d+|href #e\d+)$`).MatchString(a.Name.Local + " " + a.Value) {
					t.Errorf("<%s> has the attribute %s=%q", e.Name.Local, a.Name.Local, a.Value)
				}
			}
		}
	}
	for _, r := range text {
		if isHidden(r) {
			t.Errorf("there is a %q on the page", r)
		}
	}
	if n := strings.Count(string(file), "<script"); n != 3 {
		t.Errorf("there are %d scripts", n)
	}
	for _, bad := range []string{"http://", "https://", "url(", "@import", "src=", "onerror=alert(1)\""} {
		if strings.Contains(strings.Replace(string(file), text, "", 1), bad) && bad != "src=" {
			t.Errorf("there is %q in the file", bad)
		}
	}
}

// TestVerifiableFlips flips a bit of each byte of a report, and exchanges each visible word. No such file verifies.
func TestVerifiableFlips(t *testing.T) {
	if testing.Short() {
		t.Skip("each byte is flipped")
	}
	l := newSignedLog(t, slices.Concat(failedEvents(), prunedEvents())...)
	file := l.report(t, event.Query{})
	out := python(t, file, l.key(t), `
m.check(file, key)
for i in range(len(file)):
    bad = bytearray(file)
    bad[i] ^= 1 << i % 7
    if not refuses(bad): print("byte", i, file[i - 20:i + 20])
    if file[i:i + 6] == b"</main": end = i
start = file.index(b"<main")
for word in re.finditer(rb"[^\s<>]+(?=[^<>]*<)", file[start:end]):
    if not refuses(file[:start + word.start()] + b"other" + file[start + word.end():]): print("word", word)
`)
	if out != "" {
		t.Errorf("these changes do not matter:\n%s", out)
	}
}

// TestVerifiableWords checks that each path in the table of words leads to a member of the payload.
func TestVerifiableWords(t *testing.T) {
	words := readWords()
	payloads := map[event.Type]any{
		event.MessageReceived: fact.MessageReceived{}, event.MessageWithdrawn: fact.MessageWithdrawn{},
		event.Truncated: fact.Truncated{}, event.BudgetRefused: fact.BudgetReached{},
		event.BudgetWarned:   fact.BudgetReached{},
		event.SessionStarted: fact.SessionStarted{}, event.SandboxEntered: fact.SandboxEntered{},
		event.Requested: fact.Requested{}, event.CancelRequested: fact.Stop{},
		event.InteractionRequested: interaction.Question{},
		event.BridgeQueued:         fact.BridgeQueued{}, event.TeamAsked: fact.TeamQuestion{},
		event.InteractionAnswered: interaction.Answer{}, event.InteractionAnswerRejected: interaction.Rejected{},
		event.InteractionLapsed: interaction.Resolution{}, event.ReplySent: fact.ReplySent{},
		event.ReplyFailed: fact.ReplySent{},
		event.PolicyDecided: struct {
			fact.PolicyDecided
			Rule policy.Rule `json:"rule"`
		}{}, event.PolicyUnasked: fact.UnaskedTool{}, event.ToolBlocked: fact.ToolBlocked{},
		event.HookFailed: fact.HookFailed{},
		event.Responded: struct {
			fact.Responded
			Usage struct {
				In  int `json:"inputTokens"`
				Out int `json:"outputTokens"`
			} `json:"usage"`
		}{}, event.ProviderError: fact.Failed{}, event.OutcomeUnknown: fact.Failed{},
		event.CallEnforced: fact.Enforced{},
		event.RunResolved:  fact.Resolved{}, event.ApprovalRemembered: policy.Approval{},
		event.ApprovalRevoked: policy.Revocation{}, event.FlowStarted: fact.FlowStarted{},
		event.FlowStepDecided: fact.FlowDecided{}, event.FlowFinished: fact.FlowFinished{},
		event.SchedulePlanned: fact.SchedulePlanned{}, event.LogPruned: event.Pruning{}, event.LogRewritten: struct{}{},
	}
	for typ, row := range words.Types {
		payload, ok := payloads[typ]
		if !ok {
			t.Errorf("the test has no payload of %s", typ)
			continue
		}
		for _, l := range row.lines {
			member := reflect.TypeOf(payload)
			for name := range strings.SplitSeq(l.path, ".") {
				member = memberOf(member, name)
			}
			if member == nil {
				t.Errorf("%s has no %s", typ, l.path)
			}
			for _, part := range l.parts {
				if memberOf(member, part[0]) == nil {
					t.Errorf("%s: %s has no %s", typ, l.path, part[0])
				}
			}
		}
	}
	for typ := range payloads {
		if slices.Contains(words.Kept, typ) != typ.Kept() {
			t.Errorf("the table does not agree that a pruning removes %s: %t", typ, !typ.Kept())
		}
	}
	for _, c := range words.Counts {
		for _, typ := range c.types {
			if _, ok := words.Types[typ]; !ok {
				t.Errorf("the count %q has the unknown type %s", c.label, typ)
			}
		}
	}
}

// memberOf returns the type of a member of an object in JSON, or nil. For a list it returns the type of the elements.
func memberOf(of reflect.Type, name string) reflect.Type {
	for of != nil && (of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice) {
		of = of.Elem()
	}
	if of == nil || of.Kind() != reflect.Struct {
		return nil
	}
	for _, f := range reflect.VisibleFields(of) {
		if tag, _, _ := strings.Cut(f.Tag.Get("json"), ","); tag == name {
			return f.Type
		}
	}
	return nil
}
