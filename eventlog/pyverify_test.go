package eventlog

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/perlica/perlica/eventlog/event"
)

// python returns the path of a Python that can run docs/verify.py. python3 itself may be a slow script that starts
// the real program.
func python(t *testing.T) string {
	t.Helper()
	name, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("NOT TESTED: docs/verify.py: python3 is not installed")
	}
	out, err := exec.Command(name, "-c",
		"import sqlite3, sys; assert sys.version_info >= (3, 8); print(sys.executable)").Output()
	if err != nil {
		t.Skipf("NOT TESTED: docs/verify.py: %s is too old, or lacks sqlite3: %v", name, err)
	}
	return strings.TrimSpace(string(out))
}

// pyVerify runs docs/verify.py and returns its finding.
func pyVerify(t *testing.T, python, path string, options ...string) (kind string, first event.Seq) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), python, append([]string{filepath.Join("..", "docs", "verify.py"), path},
		options...)...)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	switch verdict := lines[len(lines)-1]; {
	case err == nil && verdict == "OK":
		return "", 0
	case errors.As(err, &exit) && exit.ExitCode() == 1:
		if _, err := fmt.Sscanf(verdict, "DAMAGED: %s at event %d", &kind, &first); err == nil {
			return kind, first
		}
	}
	t.Errorf("docs/verify.py: %v\n%s", err, out)
	return "none", -1
}

// TestAStrangerNeedsNoMore checks that docs/verify.py is short. An auditor reads this program before running it.
func TestAStrangerNeedsNoMore(t *testing.T) {
	b, err := os.ReadFile(filepath.Join("..", "docs", "verify.py"))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(string(b), "\n"), "\n")
	if len(lines) > 150 {
		t.Errorf("docs/verify.py has %d lines; 150 are promised", len(lines))
	}
	for i, line := range lines {
		if len(line) > 120 {
			t.Errorf("docs/verify.py: line %d has %d characters", i+1, len(line))
		}
	}
}

// TestAStrangerAgrees checks that Verify and docs/verify.py give the same result. docs/verify.py was written only
// from docs/log-format.md.
func TestAStrangerAgrees(t *testing.T) {
	py := python(t)
	path, vkey, last := soundLog(t)
	since := filepath.Join(t.TempDir(), "checkpoint")
	if err := os.WriteFile(since, []byte(last.Note), 0o600); err != nil {
		t.Fatal(err)
	}
	h := readerOf(t, path).Hashes(context.Background())
	list := damages()
	for _, part := range []struct {
		level int
		n     int64
		kind  string // the expected finding if the hash is wrong
	}{{5, 8, "checkpoint"}, {8, 0, "checkpoint"}, {1, 5, "tree"}} {
		hash, err := h.Subtree(part.level, part.n)
		if err != nil {
			t.Fatal(err)
		}
		first := part.n<<part.level + 1
		without := loose + fmt.Sprintf(
			`INSERT INTO absent VALUES (%d, %d, x'%x'); DELETE FROM events WHERE seq BETWEEN %d AND %d;`,
			first, part.level, hash[:], first, part.n<<part.level+1<<part.level)
		name := fmt.Sprintf("2^%d events absent from %d on", part.level, first)
		// As after the import of a part of a log, one checkpoint remains, and there is no anchor.
		imported := without + `DELETE FROM checkpoints WHERE size < 300;`
		bare := func(string) string { return "" }
		list = append(list, damage{name: name, sql: imported, anchor: bare},
			damage{name: name + ", with another hash", sql: imported + `UPDATE absent SET hash = sha256(hash)`, anchor: bare,
				kind: part.kind, first: 1},
			damage{name: name + ", with checkpoints", sql: without, anchor: bare, kind: "deleted", first: event.Seq(first)},
			damage{name: name + ", with an anchor", sql: imported, kind: "deleted", first: event.Seq(first)})
	}
	for _, d := range list {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			var options []string
			if d.kind == "" || d.kind == "checkpoint" || d.kind == "anchor" { // only these need signatures, which take long
				options = append(options, "--key", vkey)
			}
			if d.since {
				options = append(options, "--since", since)
			}
			kind, first := pyVerify(t, py, d.inflict(t, path), options...)
			if kind != d.kind || first != d.first {
				t.Errorf("%q at event %d, not %q at %d", kind, first, d.kind, d.first)
			}
		})
	}
}
