package main

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/perlica/perlica/eventlog"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/view"
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

// TestOpenViewWhereNothingCanBeWritten: a view that cannot be kept is built elsewhere.
func TestOpenViewWhereNothingCanBeWritten(t *testing.T) {
	log, err := eventlog.Open(t.Context(), filepath.Join(t.TempDir(), "log.db"), eventlog.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := log.Close(); err != nil {
			t.Error(err)
		}
	}()
	var used []string
	open := func(path string) (*view.View, error) {
		used = append(used, path)
		return view.Open(t.Context(), &log.Reader, path, view.Projection{Name: "test", Version: 1, Schema: `CREATE TABLE x (y) `})
	}
	view, remove, err := openView(filepath.Join(t.TempDir(), "no", "such", "folder", "x.db"), open)
	if err != nil {
		t.Fatal(err)
	}
	if err := view.Close(); err != nil {
		t.Error(err)
	}
	remove()
	if _, err := os.Stat(filepath.Dir(used[len(used)-1])); len(used) != 2 || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("opened %q; the last folder: %v", used, err)
	}
}

func TestMatchTypes(t *testing.T) {
	got, err := matchTypes([]string{"llm.*", "llm.responded", "policy.decided"})
	want := []event.Type{event.Requested, event.Responded, event.ProviderError, event.OutcomeUnknown, event.CallEnforced, event.PolicyDecided}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("matchTypes = %v, %v, want %v", got, err, want)
	}
	for _, bad := range []string{"", "llm", "llm.[", "nosuch.*"} {
		if _, err := matchTypes([]string{bad}); err == nil {
			t.Errorf("matchTypes(%q) is no error", bad)
		}
	}
}
