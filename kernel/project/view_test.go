package project

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/perlica/perlica/eventlog"
	"github.com/perlica/perlica/eventlog/view"
)

// TestOpenViewWhereNothingCanBeWritten checks that a view is built in a temporary file if its folder cannot be written.
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
		return view.Open(t.Context(), &log.Reader, path, nil, view.Projection{Name: "test", Version: 1,
			Schema: `CREATE TABLE x (y) `})
	}
	view, remove, err := OpenView(filepath.Join(t.TempDir(), "no", "such", "folder", "x.db"), open)
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
