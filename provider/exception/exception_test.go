package exception

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the table of exceptions into docs/acp.md")

// TestTable checks that each method of a sender has one row, and that no row with a * hides a later row. Each row with
// a Line must have a reason and must name existing tests.
func TestTable(t *testing.T) {
	tests := testsOfTheTree(t)
	for i, r := range table {
		for _, method := range r.Methods {
			if got := Of(r.From, strings.TrimSuffix(method, "*")); !slices.Equal(got.Methods, r.Methods) {
				t.Errorf("%s of the %s has the row of %s", method, r.From, got.Methods)
			}
		}
		if r.Line == "" {
			if i == 0 || len(r.Methods) == 0 || r.Effect+r.Why != "" || r.Tests != nil {
				t.Errorf("row %d has no line, or no methods, or text without a line", i)
			}
			continue
		}
		if r.Effect == "" || r.Why == "" || len(r.Tests) == 0 {
			t.Errorf("%s: no effect, no reason or no test", r.Line)
		}
		for _, name := range r.Tests {
			if !tests[name] {
				t.Errorf("%s: there is no test %s", r.Line, name)
			}
		}
	}
	for _, side := range []Side{Client, Agent} {
		for _, method := range []string{"session/update", "session/list", "_vendor/x", "", "fs", "_perlica.devil/x"} {
			if got := Of(side, method); got.Does != "" {
				t.Errorf("%s of the %s: %s, want that it passes", method, side, got.Does)
			}
		}
	}
}

// testsOfTheTree returns the names of all test functions in the repository.
func testsOfTheTree(t *testing.T) map[string]bool {
	t.Helper()
	tests, declared := map[string]bool{}, regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	for _, folder := range []string{"../../service/acp", "../../service/web", "../../cmd/perlica"} {
		files, err := filepath.Glob(folder + "/*_test.go")
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range declared.FindAllStringSubmatch(string(text), -1) {
				tests[m[1]] = true
			}
		}
	}
	return tests
}

// TestDocument checks that docs/acp.md has the rows of the table. With -update it writes them.
func TestDocument(t *testing.T) {
	const file, begin, end = "../../docs/acp.md", "-update -->\n", "<!-- end of the exceptions"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok := strings.Cut(string(text), begin)
	got, tail, ended := strings.Cut(rest, end)
	if !ok || !ended {
		t.Fatalf("%s has no marks around the exceptions", file)
	}
	want := "| line | effect | why |\n|---|---|---|\n"
	for _, r := range table {
		if r.Line != "" {
			want += "| " + r.Line + " | " + r.Effect + " | " + r.Why + " |\n"
		}
	}
	if *update {
		if err := os.WriteFile(file, []byte(head+begin+want+end+tail), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if got != want {
		t.Errorf("the table of %s differs from exception.Table: run go test ./provider/exception -update", file)
	}
}

// BenchmarkOf measures Of for a method without a row.
func BenchmarkOf(b *testing.B) {
	for b.Loop() {
		Of(Agent, "session/update")
	}
}
