package perlica_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestLibraryExample keeps the program in docs/library.md equal to the one that the tests of
// package kernel run.
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
