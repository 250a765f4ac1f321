package interaction

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestTryListen(t *testing.T) {
	dir, err := os.MkdirTemp("", "p") // on some systems t.TempDir is too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := TryListen(dir); err != nil {
		t.Error(err)
	}
	if entries, err := os.ReadDir(dir); len(entries) > 0 || err != nil {
		t.Errorf("left behind: %v, %v", entries, err)
	}
	if err := TryListen(filepath.Join(dir, "none")); err != nil {
		t.Errorf("not there yet: %v", err)
	}
	if err := TryListen(filepath.Join(dir, strings.Repeat("long", 30))); err != nil {
		t.Errorf("a long path, not there yet: %v", err)
	}
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := TryListen(file); err == nil {
		t.Error("a file was taken for a folder")
	}
}
