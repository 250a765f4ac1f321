package config

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
)

// TestCheckSaysWhatEnsureWould checks that Check returns an error exactly if the following Ensure does.
func TestCheckSaysWhatEnsureWould(t *testing.T) {
	for _, tt := range []struct {
		name string
		make func(t *testing.T, root string)
		bad  bool
	}{
		{"nothing", func(*testing.T, string) {}, false},
		{"a file for the workspace", func(t *testing.T, root string) { makePath(t, filepath.Join(root, DirName), false) },
			true},
		{"a file for the contexts", func(t *testing.T, root string) {
			makePath(t, filepath.Join(root, DirName, "contexts"),
				false)
		}, true},
		{"a file for the locks", func(t *testing.T, root string) {
			makePath(t, filepath.Join(root, DirName, "contexts", "default", "locks"), false)
		}, true},
		{"a link for the context", func(t *testing.T, root string) {
			makePath(t, filepath.Join(root, DirName, "contexts"), true)
			if err := os.Symlink(root, filepath.Join(root, DirName, "contexts", "default")); err != nil {
				t.Skip(err)
			}
		}, true},
		{"a link for the log", func(t *testing.T, root string) {
			makePath(t, filepath.Join(root, DirName, "contexts", "default"), true)
			if err := os.Symlink("/dev/null", filepath.Join(root, DirName, "contexts", "default", "eventlog.db")); err != nil {
				t.Skip(err)
			}
		}, true},
		{"a link for another context", func(t *testing.T, root string) {
			makePath(t, filepath.Join(root, DirName, "contexts"), true)
			if err := os.Symlink(root, filepath.Join(root, DirName, "contexts", "other")); err != nil {
				t.Skip(err)
			}
		}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ws := Workspace{Root: t.TempDir()}
			tt.make(t, ws.Root)
			_, checked := ws.Check("default")
			_, ensured := ws.Ensure("default")
			if (checked != nil) != tt.bad || (ensured != nil) != tt.bad {
				t.Errorf("Check: %v; Ensure: %v", checked, ensured)
			}
			var broken *WorkspaceError
			if tt.bad && !errors.As(checked, &broken) {
				t.Errorf("Check: %T", checked)
			}
		})
	}
}

func TestCheckListsWhatOthersCanGetAt(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("modes mean nothing")
	}
	ws := Workspace{Root: t.TempDir()}
	paths, err := ws.Ensure("default")
	if err != nil {
		t.Fatal(err)
	}
	if open, err := ws.Check("default"); len(open) > 0 || err != nil {
		t.Errorf("fresh: %v, %v", open, err)
	}
	if err := errors.Join(os.WriteFile(paths.EventLog, nil, 0o600), os.Chmod(paths.EventLog, 0o640),
		os.Chmod(paths.Locks, 0o750)); err != nil {
		t.Fatal(err)
	}
	if open, err := ws.Check("default"); !slices.Equal(open, []string{paths.EventLog, paths.Locks}) || err != nil {
		t.Errorf("got %v, %v", open, err)
	}
}
