package log

import (
	"encoding/base64"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/mod/sumdb/note"

	"github.com/perlica/perlica/eventlog"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/evidence"
)

// checked is a log. Two programs check its proofs: Perlica and docs/check-proof.py.
type checked struct {
	*eventlog.Log
	file   string // path of the file with a proof
	python string
	keys   *evidence.Keys
	key    string // verifier key of the log, known after the first append
	known  note.Verifier
}

func openChecked(t *testing.T) *checked {
	t.Helper()
	if _, err := exec.LookPath("openssl"); err != nil {
		t.Skip("NOT TESTED: a proof with other programs: openssl is not installed")
	}
	// python3 may be a script that chooses an interpreter. This script can take longer than the check.
	python, err := exec.Command("python3", "-c", "import sys; print(sys.executable)").Output()
	if err != nil {
		t.Skip("NOT TESTED: a proof with other programs: python3 is not installed:", err)
	}
	dir := t.TempDir()
	keys, err := evidence.MakeKeys(filepath.Join(dir, "keys"))
	if err != nil {
		t.Fatal(err)
	}
	log, err := eventlog.Open(t.Context(), filepath.Join(dir, "e.db"), eventlog.Options{Context: "default", Keys: keys})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = log.Close() }) // The files are removed with the test's folder.
	return &checked{Log: log, file: filepath.Join(dir, "proof"), python: strings.TrimSpace(string(python)), keys: keys}
}

// appendEvents appends events to the log, and a checkpoint that covers them.
func (c *checked) appendEvents(t *testing.T, events ...event.Event) {
	t.Helper()
	for _, e := range events {
		if _, err := c.Log.Append(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	_, err := c.Checkpoint(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	name, err := c.Origin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	c.key = c.keys.VerifierKeys(name)[0]
	if c.known, err = evidence.NewVerifier(c.key); err != nil {
		t.Fatal(err)
	}
}

// byPython checks a proof with docs/check-proof.py. This program shares no code with Perlica.
func (c *checked) byPython(t *testing.T, text string) error {
	t.Helper()
	if err := os.WriteFile(c.file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(c.python, filepath.Join("..", "..", "..", "docs", "check-proof.py"), c.file,
		c.key).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

// byPerlica checks a proof as the command log verify --proof --key does.
func (c *checked) byPerlica(text string) error {
	return (&app{}).checkProof(&checkedProof{}, normalizeNote([]byte(text)), []note.Verifier{c.known})
}

// TestCheckProofInPython checks that both programs accept a proof of each kind of event and refuse a changed proof.
func TestCheckProofInPython(t *testing.T) {
	log := openChecked(t)
	refs := event.Refs{Session: "s", Run: "ünï", Input: "a \"leaf\":\"b\" <c>"}
	log.appendEvents(t,
		event.NewFact(event.ToolBlocked, "user", refs, map[string]string{"leaf": "x", "payload": "<&>\u2028", "ü": "ß"}),
		event.Event{Type: event.LineMalformed, Class: event.Frame, Payload: []byte("plain\x00\u2028\n")},
		event.Event{Type: event.LineMalformed, Class: event.Frame, Payload: []byte{0xff, 0xfe}},
		event.Event{Type: event.LineMalformed, Class: event.Frame},
		event.Event{Type: event.ToolBlocked, Class: event.Fact, Payload: []byte(`{ "spaced": 1 }`)})
	check := func(text string) error { return log.byPython(t, text) }
	own := log.byPerlica
	for seq := event.Seq(1); seq <= 5; seq++ {
		p, err := eventlog.Prove(t.Context(), &log.Reader, seq)
		if err != nil {
			t.Fatal(err)
		}
		good := marshalled(t, p)
		if err := check(good); err != nil {
			t.Errorf("event %d: %v", seq, err)
		}
		if seq > 1 {
			continue // Starting Python for each change would take too long.
		}
		edited := p
		edited.Event.Actor = "x"
		withheld := p
		withheld.Event.Payload, withheld.Event.Withheld = nil, event.Masked
		if err := check(marshalled(t, withheld)); err != nil {
			t.Errorf("event %d, withheld: %v", seq, err)
		}
		crlf := strings.ReplaceAll(good, "\n", "\r\n")
		for what, text := range map[string]string{"CRLF": crlf, "empty lines around": "\n\n" + good + "\n\n"} {
			if py, ours := check(text), own(text); py != nil || ours != nil {
				t.Errorf("%s: check-proof.py: %v; log verify: %v", what, py, ours)
			}
		}
		json, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(strings.SplitN(good, "\n", 3)[1], "extra "))
		if err != nil {
			t.Fatal(err)
		}
		with := func(member string) string {
			extra := base64.StdEncoding.EncodeToString([]byte("{" + member + "," + string(json[1:])))
			return strings.Replace(good, base64.StdEncoding.EncodeToString(json), extra, 1)
		}
		sig := good[strings.LastIndexByte(good, ' ')+1:]
		for what, bad := range map[string]string{
			"header":    marshalled(t, edited),
			"path":      strings.Replace(good, p.Path[0].String()+"\n", "", 1),
			"root":      strings.Replace(good, p.Checkpoint.Root.String(), p.Path[0].String(), 1),
			"signature": strings.Replace(good, sig, sig[:20]+"AAAA"+sig[24:], 1),
			// A checker could mistake these texts for a part of the proof.
			"text behind it":      good + "and more\n",
			"paragraph behind it": good + "\nand more\n",
			"text ahead of it":    "see:\n" + good,
			"unknown member":      with(`"verdict":"good"`),
			"double member":       with(`"actor":"somebody"`),
			"member in capitals":  with(`"ACTOR":"somebody"`),
		} {
			if py, ours := check(bad), own(bad); py == nil || ours == nil {
				t.Errorf("event %d: another %s is taken: check-proof.py: %v; log verify: %v", seq, what, py, ours)
			}
		}
	}
}

// TestProofsOfAQuestion checks that both programs accept the proofs of a question only as a whole. Each proof must
// be valid. The request, its end and the reply must all be there and in order. It is not enough to check only the
// first proof, or each proof alone.
func TestProofsOfAQuestion(t *testing.T) {
	log, other := openChecked(t), openChecked(t)
	question := func(id event.InteractionID) []event.Event {
		refs := event.Refs{Session: "s", Run: "r" + event.RunID(id), Interaction: id}
		return []event.Event{
			event.NewFact(event.InteractionRequested, "agent", refs, map[string]string{"title": "rm -rf build"}),
			event.NewFact(event.InteractionAnswered, "user", refs, map[string]string{"option": "reject"}),
			event.NewFact(event.ReplySent, "perlica", refs, map[string]string{"outcome": "selected"}),
		}
	}
	log.appendEvents(t, append(question("q1"), question("q2")...)...)
	other.appendEvents(t, question("q1")...)
	prove := func(log *checked, seq event.Seq) eventlog.Proof {
		p, err := eventlog.Prove(t.Context(), &log.Reader, seq)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	var texts []string
	for seq := event.Seq(1); seq <= 6; seq++ {
		texts = append(texts, marshalled(t, prove(log, seq)))
	}
	files := func(texts ...string) string { return strings.Join(texts, "\n") }
	for what, good := range map[string]string{"a question": files(texts[:3]...), "another": files(texts[3:]...),
		"a request alone": texts[0]} {
		if py, ours := log.byPython(t, good), log.byPerlica(good); py != nil || ours != nil {
			t.Errorf("%s: check-proof.py: %v; log verify: %v", what, py, ours)
		}
	}
	forged := func(n int, change func(p *eventlog.Proof)) string {
		p := prove(log, event.Seq(n+1))
		change(&p)
		list := slices.Clone(texts[:3])
		list[n] = marshalled(t, p)
		return files(list...)
	}
	bad := map[string]string{
		"the end before the request": files(texts[1], texts[0], texts[2]),
		"the reply before the end":   files(texts[0], texts[2], texts[1]),
		"no end":                     files(texts[0], texts[2]),
		"no reply":                   files(texts[:2]...),
		"no request":                 files(texts[1:3]...),
		"the end twice":              files(texts[0], texts[1], texts[1], texts[2]),
		"the request as its end":     files(texts[0], texts[0], texts[2]),
		"a fourth proof":             files(texts[:4]...),
		"two questions":              files(texts...),
		"the end of another":         files(texts[0], texts[4], texts[2]),
		"the reply to another":       files(texts[0], texts[1], texts[5]),
		"a later request":            files(texts[3], texts[1], texts[2]),
	}
	for n := range 3 {
		bad[fmt.Sprint("payload ", n)] = forged(n, func(p *eventlog.Proof) { p.Event.Payload = []byte(`{"option":"allow"}`) })
		bad[fmt.Sprint("header ", n)] = forged(n, func(p *eventlog.Proof) { p.Event.Actor = "mallory" })
		bad[fmt.Sprint("question ", n)] = forged(n, func(p *eventlog.Proof) { p.Event.Interaction = "q2" })
		bad[fmt.Sprint("path ", n)] = forged(n, func(p *eventlog.Proof) { p.Path = p.Path[1:] })
		bad[fmt.Sprint("empty ", n)] = forged(n, func(p *eventlog.Proof) { p.Checkpoint.Note = "" })
		list := slices.Clone(texts[:3])
		list[n] = marshalled(t, prove(other, event.Seq(n+1)))
		bad[fmt.Sprint("another log ", n)] = files(list...)
	}
	for what, text := range bad {
		if py, ours := log.byPython(t, text), log.byPerlica(text); py == nil || ours == nil {
			t.Errorf("%s is taken: check-proof.py: %v; log verify: %v", what, py, ours)
		}
	}
}

func marshalled(t *testing.T, p eventlog.Proof) string {
	t.Helper()
	text, err := p.MarshalText()
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
