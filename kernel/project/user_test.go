package project

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/kernel/config"
)

// TestUser checks that opening the user's own log for work creates it, with any configuration and in any directory.
// List must not list it as a project.
func TestUser(t *testing.T) {
	dir := t.TempDir()
	environ := []string{"PERLICA_HOME=" + filepath.Join(dir, "home"), "PERLICA_CONTEXT_DEFAULT_ID=other"}
	p, err := User(dir, environ, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := p.OpenReader(t.Context()); !errors.As(err, &NoLogError{}) {
		t.Errorf("before the first event: %v", err)
	}
	if list, err := os.ReadDir(dir); err != nil || len(list) > 0 {
		t.Errorf("reading made %v, %v", list, err)
	}
	r, done, err := p.Open(t.Context(), "test")
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Vouchers().Add(t.Context(), "a decision"); err != nil { // while this process has the log open
		t.Error(err)
	}
	e, ok, err := r.Log().Last(t.Context(), event.Query{Types: []event.Type{event.VoucherGiven}})
	if err != nil || !ok || e.Context != "user" {
		t.Errorf("%+v, %v", e, err)
	}
	if err := done(); err != nil {
		t.Error(err)
	}
	if list, err := List(p.Dirs); err != nil || len(list) > 0 {
		t.Errorf("%+v, %v", list, err)
	}
}

// TestContextOf checks that only the path of a context's log yields a project and a context.
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
	for _, path := range []string{paths.Sessions, paths.Dir, filepath.Join(dir, "eventlog.db"), "/eventlog.db",
		"eventlog.db", "", filepath.Join(dir, "conf", "contexts", "x", "eventlog.db")} {
		if root, _, ok := contextOf(path); ok {
			t.Errorf("%s is said to be a log of %s", path, root)
		}
	}
}
