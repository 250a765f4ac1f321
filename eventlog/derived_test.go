package eventlog

import (
	"bytes"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/perlica/perlica/eventlog/anchor"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/evidence"
	"github.com/perlica/perlica/eventlog/verify"
)

// TestNothingIsWithheldFromALog checks that a row of the table "withheld" explains a missing payload in an import.
// In the log itself it explains nothing. There a person with access to the file could hide payloads with such rows.
func TestNothingIsWithheldFromALog(t *testing.T) {
	for _, tc := range []struct {
		sql      string
		bad      event.Seq // the expected finding if the file is not an import
		withheld int64
	}{
		{`UPDATE events SET payload = NULL WHERE seq = 7; INSERT INTO withheld VALUES (7, 'masked')`, 7, 1},
		{`INSERT INTO withheld VALUES (9, 'masked')`, 9, 0},
	} {
		v := newVictim(t, 50)
		if err := forgeFile(v.path, loosen+tc.sql); err != nil {
			t.Fatal(err)
		}
		rep := verifyFile(t, v.path, verify.Options{Keys: v.verifiers})
		if !rep.OK() || rep.Withheld != tc.withheld {
			t.Errorf("%s: an import: %+v", tc.sql, rep)
		}
		rep = verifyFile(t, v.path, verify.Options{Keys: v.verifiers, NoImport: true})
		if len(rep.Findings) != 1 || rep.FirstBad != tc.bad || rep.Findings[0].Kind != verify.Deleted || rep.Withheld > 0 {
			t.Errorf("%s: the log itself: %+v", tc.sql, rep)
		}
	}
	v := newVictim(t, 50)
	if rep := verifyFile(t, v.path, verify.Options{Keys: v.verifiers, NoImport: true}); !rep.OK() ||
		len(rep.Warnings) > 0 {
		t.Errorf("a log as it was: %+v", rep)
	}
}

// TestOpenRunsFollowFromTheEvents checks that Verify compares the stored list of open runs with the events. Recovery
// uses the list.
func TestOpenRunsFollowFromTheEvents(t *testing.T) {
	for sql, bad := range map[string]event.Seq{
		``:                      0,
		`DELETE FROM open_runs`: 221,
		`INSERT INTO open_runs VALUES ('01900000-0000-7000-8000-000000000000', 4)`: 0,
		`INSERT INTO open_runs VALUES ('nobody', 1)`:                               0,
		`UPDATE open_runs SET seq = seq + 1`:                                       0,
	} {
		path := fixture(t)
		if err := forgeFile(path, sql); err != nil {
			t.Fatal(err)
		}
		rep := verifyFile(t, path, verify.Options{})
		switch {
		case sql == ``:
			if !rep.OK() {
				t.Errorf("as it was: %+v", rep)
			}
		case len(rep.Findings) != 1 || rep.Findings[0].Kind != verify.Tree || (bad == 0) != (rep.FirstBad == 0):
			t.Errorf("%s: %+v", sql, rep)
		}
	}
	// If events are missing, they cannot prove a fault of the list, so Verify must not report one.
	path := fixture(t)
	if err := forgeFile(path, loosen+`DELETE FROM events WHERE type = 'llm.requested'`); err != nil {
		t.Fatal(err)
	}
	for _, f := range verifyFile(t, path, verify.Options{}).Findings {
		if f.Kind != verify.Deleted {
			t.Errorf("%+v", f)
		}
	}
}

// unsign removes the signature from one line of an anchor.
func unsign(t *testing.T, path string, n int) {
	t.Helper()
	b, err := os.ReadFile(anchor.Path(path))
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.SplitAfter(b, []byte("\n"))
	at := bytes.LastIndexByte(lines[n-1], ' ')
	lines[n-1] = append(slices.Clone(lines[n-1][:at]), " -\n"...)
	if err := os.WriteFile(anchor.Path(path), bytes.Join(lines, nil), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestASignatureThatIsMissing checks the warnings for unsigned lines of the anchor. They are not damage, because the
// user may have had no key. A warning comes only if other evidence shows that there was a key.
func TestASignatureThatIsMissing(t *testing.T) {
	v := newVictim(t, 50) // five checkpoints, each stored and anchored
	const drop = loosen + `DELETE FROM checkpoints WHERE size = `
	for _, tc := range []struct {
		line int
		sql  string
		want string // empty means no warning
	}{
		{2, ``, "line 2 of the anchor is not signed, although the log contains a signed checkpoint of the same number"},
		{2, drop + `20`, "line 2 of the anchor is not signed, although the lines before and after it are"},
		{1, drop + `10`, ""}, // as if the key had been made later, so no checkpoint before it needs a signature
		{5, ``, "line 5 of the anchor is not signed, although the log contains a signed checkpoint of the same number"},
		{5, drop + `50`,
			"no known key signed the newest checkpoint (50 events), although older checkpoints up to event 40 are"},
	} {
		path := v.copyLog(t)
		unsign(t, path, tc.line)
		if err := forgeFile(path, tc.sql); err != nil {
			t.Fatal(err)
		}
		rep := verifyFile(t, path, verify.Options{Keys: v.verifiers})
		rows := 0 // number of warnings about the rows that tc.sql removed
		warned := slices.DeleteFunc(rep.WarningTexts(), func(w string) bool {
			ofRows := strings.Contains(w, "checkpoints are missing from the file")
			if ofRows {
				rows++
			}
			return ofRows || strings.Contains(w, "can be changed")
		})
		if (rows == 1) != (tc.sql != "" && tc.line < 5) { // For line 5, tc.want is a warning about the checkpoint.
			t.Errorf("line %d, %s: %q", tc.line, tc.sql, rep.Warnings)
		}
		if !rep.OK() || (tc.want == "") != (len(warned) == 0) || len(warned) > 1 || len(warned) == 1 &&
			!strings.Contains(warned[0], tc.want) {
			t.Errorf("line %d, %s: %q, %+v", tc.line, tc.sql, warned, rep.Findings)
		}
		for _, w := range verifyFile(t, path, verify.Options{}).WarningTexts() { // without a known key
			if strings.Contains(w, "not signed") {
				t.Errorf("line %d, without a key: %s", tc.line, w)
			}
		}
	}
	// A checkpoint that was signed later, when the key existed, gives no warning.
	path := v.copyLog(t)
	l, err := Open(t.Context(), path, Options{Context: "default"})
	if err != nil {
		t.Fatal(err)
	}
	mustEndRun(t, l, fact(event.CallEnforced, event.Refs{}))
	_ = l.Anchored() // the log has no key
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	l, err = Open(t.Context(), path, Options{Context: "default", Keys: v.keys})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.Checkpoint(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if rep := verifyFile(t, path, verify.Options{Keys: v.verifiers}); !rep.OK() || len(rep.Warnings) > 0 {
		t.Errorf("signed later: %+v", rep)
	}
}

// TestEvidenceThatIsGone checks that every run leaves a line of the anchor, with and without a key.
func TestEvidenceThatIsGone(t *testing.T) {
	l := openTest(t)
	run := event.Refs{Run: "r", Input: "i"}
	mustEndRun(t, l, fact(event.Requested, run), fact(event.Responded, run), fact(event.CallEnforced, run))
	if err := l.Anchored(); err != nil && !errors.Is(err, evidence.ErrKey) {
		t.Fatal(err)
	}
	if rep, err := verify.Log(t.Context(), &l.Reader, verify.Options{NoImport: true}); err != nil || !rep.OK() ||
		len(rep.Warnings) > 0 {
		t.Errorf("as it was: %+v, %v", rep, err)
	}
	if err := os.Remove(anchor.Path(l.Path())); err != nil {
		t.Fatal(err)
	}
	rep, err := verify.Log(t.Context(), &l.Reader, verify.Options{NoImport: true})
	if err != nil || len(rep.Warnings) != 1 || !strings.Contains(rep.Warnings[0].Text,
		"neither a checkpoint nor an anchor") {
		t.Errorf("without its anchor: %+v, %v", rep, err)
	}
}
