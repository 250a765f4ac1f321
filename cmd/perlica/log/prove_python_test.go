package log

import (
	"encoding/base64"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/mod/sumdb/note"

	"github.com/perlica/perlica/eventlog"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/evidence"
)

// TestCheckProofInPython has docs/check-proof.py, which knows nothing of this code, check proofs of
// every kind of event, and refuse them when they were changed.
func TestCheckProofInPython(t *testing.T) {
	if _, err := exec.LookPath("openssl"); err != nil {
		t.Skip("there is no openssl")
	}
	// python3 may be a script that chooses one and takes longer than the check.
	python, err := exec.Command("python3", "-c", "import sys; print(sys.executable)").Output()
	if err != nil {
		t.Skip("there is no python3:", err)
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
	defer log.Close()
	refs := event.Refs{Session: "s", Run: "ünï", Input: "a \"leaf\":\"b\" <c>"}
	for _, e := range []event.Event{
		event.NewFact(event.ToolBlocked, "user", refs, map[string]string{"leaf": "x", "payload": "<&>\u2028", "ü": "ß"}),
		{Type: event.LineMalformed, Class: event.Frame, Payload: []byte("plain\x00\u2028\n")},
		{Type: event.LineMalformed, Class: event.Frame, Payload: []byte{0xff, 0xfe}},
		{Type: event.LineMalformed, Class: event.Frame},
		{Type: event.ToolBlocked, Class: event.Fact, Payload: []byte(`{ "spaced": 1 }`)},
	} {
		if _, err := log.Append(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := log.Checkpoint(t.Context()); err != nil {
		t.Fatal(err)
	}
	name, err := log.Origin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	check := func(text string) error {
		file := filepath.Join(dir, "proof")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command(strings.TrimSpace(string(python)), filepath.Join("..", "..", "..", "docs", "check-proof.py"), file, keys.VerifierKeys(name)[0]).CombinedOutput()
		if err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	}
	verifier, err := evidence.NewVerifier(keys.VerifierKeys(name)[0])
	if err != nil {
		t.Fatal(err)
	}
	own := func(text string) error { // as log verify --proof --key does
		return (&app{}).checkProof(&checkedProof{}, asWritten([]byte(text)), []note.Verifier{verifier})
	}
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
			continue // each start of another program takes its time
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
			// What a reader could take for a part of the proof.
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

func marshalled(t *testing.T, p eventlog.Proof) string {
	t.Helper()
	text, err := p.MarshalText()
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
