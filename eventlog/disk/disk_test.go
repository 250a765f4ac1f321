package disk

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// TestWriteFile checks that WriteFile writes a whole file or none, and leaves no temporary file.
func TestWriteFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, ".key")
	if err := WriteFile(path, []byte("one"), 0o600, os.Link); err != nil {
		t.Fatal(err)
	}
	if err := WriteFile(path, []byte("two"), 0o600, os.Link); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a second one with the name: %v", err)
	}
	if b, err := os.ReadFile(path); string(b) != "one" {
		t.Errorf("%q, %v", b, err)
	}
	if err := WriteFile(path, []byte("three"), 0o600, os.Rename); err != nil {
		t.Fatal(err)
	}
	fi, err := os.Stat(path)
	if err != nil || os.PathSeparator == '/' && fi.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", fi, err)
	}
	if b, err := os.ReadFile(path); string(b) != "three" {
		t.Errorf("%q, %v", b, err)
	}
	if left, err := os.ReadDir(dir); len(left) != 1 || err != nil {
		t.Errorf("left are %v, %v", left, err)
	}
	if err := WriteFile(filepath.Join(dir, "no", "folder"), nil, 0o600, os.Rename); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("where there is no folder: %v", err)
	}
}
