package predictable

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var updateDocs = flag.Bool("update", false, "write the table of directives into docs/predictable.md")

// TestDocs checks that docs/predictable.md has the table of directives, and that a test uses each directive.
func TestDocs(t *testing.T) {
	const begin, end = "<!-- directives: begin -->\n", "<!-- directives: end -->\n"
	page := filepath.Join("..", "..", "docs", "predictable.md")
	b, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok := strings.Cut(string(b), begin)
	_, tail, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatal("no markers")
	}
	table := "| directive | what it does |\n|---|---|\n"
	for _, d := range directives {
		table += "| `" + strings.ReplaceAll(d.Usage(), "|", `\|`) + "` | " + strings.ReplaceAll(d.Help, "|", `\|`) + " |\n"
	}
	want := head + begin + table + end + tail
	if *updateDocs {
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if want != string(b) {
		t.Error("docs/predictable.md: run go test ./provider/predictable -run TestDocs -update")
	}

	tests, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	all := ""
	for _, f := range tests {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		all += string(b)
	}
	for _, d := range directives {
		if !strings.Contains(all, "@"+d.Name) {
			t.Errorf("@%s is not tested", d.Name)
		}
	}
}

// TestRecipes checks that each script in the table of misbehaviours in docs/predictable.md can be parsed.
func TestRecipes(t *testing.T) {
	b, err := os.ReadFile(filepath.Join("..", "..", "docs", "predictable.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(b), "## What clients should be tried with")
	table, _, _ := strings.Cut(rest, "\n## ")
	n := 0
	for i, code := range strings.Split(table, "`") {
		if i%2 == 0 {
			continue
		}
		n++
		scenario := code
		if strings.HasPrefix(code, "[") {
			scenario += "\n"
		}
		if _, err := readScenario(scenario); err != nil || scenario == "" {
			t.Errorf("%s: %v", code, err)
		}
	}
	if n < 60 {
		t.Errorf("only %d scripts found", n)
	}
}
