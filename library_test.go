package perlica_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestLibraryProgram builds and runs the whole program that docs/library.md prints.
func TestLibraryProgram(t *testing.T) {
	page, err := os.ReadFile("docs/library.md")
	if err != nil {
		t.Fatal(err)
	}
	_, program, ok := strings.Cut(string(page), "<!-- program: begin -->\n```go\n")
	program, _, ended := strings.Cut(program, "```\n<!-- program: end -->")
	if !ok || !ended {
		t.Fatal("docs/library.md has no program")
	}
	dir := t.TempDir()
	file, exe, agent := filepath.Join(dir, "main.go"), filepath.Join(dir, "program.exe"), filepath.Join(dir, "perlica.exe")
	if err := os.WriteFile(file, []byte(program), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, build := range [][2]string{{exe, file}, {agent, "./cmd/perlica"}} {
		if out, err := exec.Command("go", "build", "-buildvcs=false", "-o", build[0], build[1]).CombinedOutput(); err != nil {
			t.Fatalf("go build %s: %v\n%s", build[1], err, out)
		}
	}
	// The search for a configuration goes up the folders and ends at the home directory.
	home := t.TempDir()
	cmd := exec.Command(exe, "hello")
	cmd.Dir = filepath.Join(home, "project")
	if err := os.Mkdir(cmd.Dir, 0o700); err != nil {
		t.Fatal(err)
	}
	cmd.Env = append(os.Environ(), "HOME="+home, "PERLICA_HOME="+t.TempDir(), "AGENT='"+agent+"' agent predictable")
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "You said: hello") {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestLibraryExample compares the program in docs/library.md with the program that the tests of package kernel run.
func TestLibraryExample(t *testing.T) {
	read := func(name string) string {
		b, err := os.ReadFile(filepath.FromSlash(name))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	between := func(text, begin, end string) string {
		_, text, ok := strings.Cut(text, begin)
		text, _, ended := strings.Cut(text, end)
		if !ok || !ended {
			t.Fatalf("there is nothing between %q and %q", begin, end)
		}
		return strings.TrimSpace(text)
	}
	code := between(read("kernel/example_test.go"), "\tdefer os.RemoveAll(home)\n\n", "\t// Output:")
	page := between(read("docs/library.md"), "<!-- example: begin -->\n```go\n", "```\n<!-- example: end -->")
	if shown := strings.ReplaceAll(code, "\n\t", "\n"); shown != page {
		t.Errorf("the page shows\n%s\nbut the tests run\n%s", page, shown)
	}
}
