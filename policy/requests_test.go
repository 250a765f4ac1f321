package policy

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/perlica/perlica/policy/shell"
)

// TestRequests checks the decisions about the tool calls of testdata/requests.txt, with three policies for each call.
// That file describes its format. The calls have unusual fields, paths and patches.
func TestRequests(t *testing.T) {
	rows, err := os.ReadFile(filepath.Join("testdata", "requests.txt"))
	if err != nil {
		t.Fatal(err)
	}
	place := linkedPlace(t)
	none := policyWith(t)
	denies := policyWith(t, Rule{Effect: Deny, Path: "outside"}, Rule{Effect: Deny, Command: "sudo ..."})
	count := 0
	for row := range strings.Lines(string(rows)) {
		row = strings.TrimSuffix(row, "\n")
		if row == "" || row[0] == '#' {
			continue
		}
		f := strings.SplitN(row, "|", 5)
		if len(f) != 5 || len(f[2]) != 3 {
			t.Fatalf("cannot read the row %s", row)
		}
		count++
		r := ReadToolCall(callOf(t, f, place.Dir), place).Request
		r.Options = []Option{{ID: "y", Kind: "allow_once"}, {ID: "n", Kind: "reject_once"}}
		for i, d := range []Decision{none.Decide(r, ModeAllow), none.Decide(r, ModeReads),
			denies.Decide(r, ModeAllow)} {
			if want, got := f[2][i], letter(d); !answers(want, got) {
				t.Errorf("answer %d is %c (%s): %s", i+1, got, d.Why, row)
			}
		}
	}
	if count < 200 {
		t.Errorf("only %d requests", count)
	}
}

func policyWith(t *testing.T, rules ...Rule) *Policy {
	t.Helper()
	p, err := New(rules, nil, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// linkedPlace returns a working directory with a file and with links to other directories and files.
func linkedPlace(t *testing.T) shell.Place {
	t.Helper()
	home, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(home, "proj")
	if err := os.MkdirAll(filepath.Join(dir, "src"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "src", "a.go"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for name, to := range map[string]string{"etc": "/etc", "src/pw.go": "/etc/passwd", "self": dir} {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Skip("links cannot be made here:", err)
		}
	}
	return shell.Place{Dir: dir, Home: home, Own: []string{filepath.Join(dir, ".perlica_config")}}
}

func callOf(t *testing.T, f []string, dir string) ToolCall {
	t.Helper()
	c := ToolCall{Provider: f[0], Kind: f[1], RawInput: json.RawMessage(strings.ReplaceAll(f[4], "$W", dir))}
	if len(c.RawInput) > 0 && !json.Valid(c.RawInput) {
		t.Fatalf("no JSON: %s", f[4])
	}
	for part := range strings.SplitSeq(strings.ReplaceAll(f[3], "$W", dir), ";;") {
		if p, ok := strings.CutPrefix(part, "loc="); ok {
			c.Locations = append(c.Locations, p)
		} else if p, ok := strings.CutPrefix(part, "diff="); ok {
			c.Diffs = append(c.Diffs, Diff{Path: p})
		} else {
			c.Title = part
		}
	}
	return c
}

func letter(d Decision) byte {
	switch {
	case d.Effect == Allow:
		return 'y'
	case d.Effect == Ask:
		return '?'
	case d.Tier == shell.Refused:
		return 'R'
	}
	return 'n'
}

func answers(want, got byte) bool {
	return want == '*' || want == got || want == '?' && got != 'y' || want == 'n' && got == 'R'
}

// TestEverydayCalls checks that the mode allow asks about at most 3 % of the harmless tool calls of
// testdata/everyday_requests.txt.
func TestEverydayCalls(t *testing.T) {
	rows, err := os.ReadFile(filepath.Join("testdata", "everyday_requests.txt"))
	if err != nil {
		t.Fatal(err)
	}
	place := linkedPlace(t)
	p := policyWith(t)
	count, asked := 0, 0
	for row := range strings.Lines(string(rows)) {
		row = strings.TrimSuffix(row, "\n")
		if row == "" || row[0] == '#' {
			continue
		}
		f := strings.SplitN(row, "|", 4)
		if len(f) != 4 {
			t.Fatalf("cannot read the row %s", row)
		}
		count++
		r := ReadToolCall(callOf(t, []string{f[0], f[1], "", f[2], f[3]}, place.Dir), place).Request
		r.Options = []Option{{ID: "y", Kind: "allow_once"}, {ID: "n", Kind: "reject_once"}}
		if d := p.Decide(r, ModeAllow); d.Effect != Allow {
			asked++
			t.Logf("asked needlessly (%s): %s", d.Why, row)
		}
	}
	t.Logf("%d of %d everyday calls are asked about", asked, count)
	if asked*100 > 3*count || count < 150 {
		t.Errorf("%d of %d everyday calls are asked about", asked, count)
	}
}
