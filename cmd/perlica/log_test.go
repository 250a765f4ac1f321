package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/perlica/perlica/eventlog/event"
)

// TestLogPageNamesEveryType keeps the table of docs/log.md equal to the types there are.
func TestLogPageNamesEveryType(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "log.md"))
	if err != nil {
		t.Fatal(err)
	}
	var listed []event.Type
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z_.]+)` \\| (?:frame|fact|fact, synced) \\|").FindAllSubmatch(page, -1) {
		listed = append(listed, event.Type(m[1]))
	}
	if !slices.Equal(listed, event.Types()) {
		t.Errorf("docs/log.md lists %v, the types are %v", listed, event.Types())
	}
}
