package eventlog

import (
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/mod/sumdb/note"

	"github.com/perlica/perlica/eventlog/anchor"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/verify"
)

// golden unpacks a log of testdata/golden and its anchor into a new folder. The command wrote these files in whole
// runs. No test writes them.
func golden(t *testing.T, name string) (path string) {
	t.Helper()
	packed, err := os.Open(filepath.Join("testdata", "golden", name+".db.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer packed.Close()
	r, err := gzip.NewReader(packed)
	if err != nil {
		t.Fatal(err)
	}
	db, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	lines, err := os.ReadFile(filepath.Join("testdata", "golden", name+".anchor"))
	if err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(t.TempDir(), "eventlog.db")
	for file, b := range map[string][]byte{path: db, anchor.Path(path): lines} {
		if err := os.WriteFile(file, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return path
}

// TestGoldenLogs opens and verifies stored logs and appends to them.
func TestGoldenLogs(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("testdata", "golden", "signed.vkey"))
	if err != nil {
		t.Fatal(err)
	}
	key, err := note.NewVerifier(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name     string
		want     verify.Report
		bad      verify.Damage
		appended int64 // number of events after the test's run
	}{
		{"plain", verify.Report{Events: 52, Anchors: 3}, "", 54},
		{"signed", verify.Report{Events: 62, Signed: 51, Checkpoints: 3, Anchors: 3}, "", 64},
		{"pruned", verify.Report{Events: 56, Checkpoints: 7, Anchors: 7, Pruned: 29}, "", 58},
		{"damaged", verify.Report{Events: 52, Checkpoints: 3, Anchors: 3}, verify.Edited, 54},
	} {
		t.Run(tc.name, func(t *testing.T) {
			path := golden(t, tc.name)
			check := func(when string, events int64) {
				rep := verifyFile(t, path, verify.Options{Keys: []note.Verifier{key}, NoImport: true})
				bad := verify.Damage("")
				if len(rep.Findings) > 0 {
					bad = rep.Findings[0].Kind
				}
				if rep.Events != events || bad != tc.bad || rep.Pruned != tc.want.Pruned || rep.Signed != tc.want.Signed {
					t.Errorf("%s: %+v", when, rep)
				}
				if when == "as it is" && (rep.Checkpoints != tc.want.Checkpoints || rep.Anchors != tc.want.Anchors) {
					t.Errorf("%d checkpoints, %d lines of the anchor: %+v", rep.Checkpoints, rep.Anchors, rep)
				}
			}
			check("as it is", tc.want.Events)
			l, err := Open(t.Context(), path, Options{Context: "default"})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := l.EndRun(t.Context(), fact(event.Truncated, event.Refs{}),
				fact(event.CallEnforced, event.Refs{})); err != nil {
				t.Error(err)
			}
			if _, err := l.Append(t.Context(), fact(event.Requested, event.Refs{Run: "once more", Input: "one"})); err == nil {
				t.Error("a second call for an input that was called")
			}
			if err := l.Close(); err != nil {
				t.Error(err)
			}
			check("appended to", tc.appended)
		})
	}
}

// TestPlantedNode checks that the log can be written if another program put a row into the table nodes.
func TestPlantedNode(t *testing.T) {
	path := golden(t, "plain")
	if err := execFile(path, `INSERT INTO nodes VALUES (8, 0, zeroblob(32))`); err != nil {
		t.Fatal(err)
	}
	l, err := Open(t.Context(), path, Options{Context: "default"})
	if err != nil {
		t.Fatal(err)
	}
	for range 300 {
		if _, err := l.Append(t.Context(), fact(event.Truncated, event.Refs{})); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if rep := verifyFile(t, path, verify.Options{}); !rep.OK() {
		t.Errorf("%+v", rep)
	}
}
