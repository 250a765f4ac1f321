package project

import (
	"path/filepath"
	"testing"

	"github.com/perlica/perlica/kernel/config"
)

// TestContextOf: a log's path names its project and its context, and no other file's does.
func TestContextOf(t *testing.T) {
	dir := t.TempDir()
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	ws := config.Workspace{Root: filepath.Join(dir, "gone")}
	paths, err := ws.Context("other")
	if err != nil {
		t.Fatal(err)
	}
	if root, context, ok := contextOf(paths.EventLog); root != ws.Root || context != "other" || !ok {
		t.Errorf("%q %q %t", root, context, ok)
	}
	for _, path := range []string{paths.Sessions, paths.Dir, filepath.Join(dir, "eventlog.db"), "/eventlog.db", "eventlog.db", "", filepath.Join(dir, "conf", "contexts", "x", "eventlog.db")} {
		if root, _, ok := contextOf(path); ok {
			t.Errorf("%s is said to be a log of %s", path, root)
		}
	}
}
