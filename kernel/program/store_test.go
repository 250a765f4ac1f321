package program

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestReplacedDuringTheStart checks that a change of a file after its check does not reach the start, and that every
// kind of changed file is refused.
func TestReplacedDuringTheStart(t *testing.T) {
	dir := t.TempDir()
	project := filepath.Join(dir, "project")
	path := filepath.Join(project, "judge")
	write(t, path, "good")
	s := &Store{Dir: filepath.Join(dir, "state"), Project: project, Roots: []string{project}}
	c := Command{Words: []string{"./judge", "judge", "-x", "./judge"}, Folder: project}
	files, err := s.Files(c)
	if err != nil || len(files) != 3 || files[0].Trusted {
		t.Fatalf("%+v, %v", files, err)
	}
	if _, _, err := s.prepare(c, nil); !errors.Is(err, errUntrusted) {
		t.Errorf("before trust: %v", err)
	}
	if err := s.Trust(files); err != nil {
		t.Fatal(err)
	}
	argv, _, err := s.prepare(c, nil)
	if err != nil {
		t.Fatal(err)
	}
	write(t, path, "evil") // between the check and the start
	for i, word := range argv {
		if i == 2 {
			continue
		}
		text, err := os.ReadFile(word)
		if err != nil || string(text) != "good" || strings.HasPrefix(word, project) {
			t.Errorf("word %d is %s with %q, %v", i, word, text, err)
		}
	}
	if _, _, err := s.prepare(c, nil); !errors.Is(err, errUntrusted) {
		t.Errorf("after a change: %v", err)
	}

	// A damaged copy is written again.
	write(t, path, "good")
	if err := os.WriteFile(argv[0], []byte("bad"), 0o700); err != nil {
		t.Fatal(err)
	}
	argv, _, err = s.prepare(c, nil)
	if text, rerr := os.ReadFile(argv[0]); err != nil || rerr != nil || string(text) != "good" {
		t.Errorf("%q, %v, %v", text, err, rerr)
	}
	if err := s.Untrust(files); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.prepare(c, nil); !errors.Is(err, errUntrusted) {
		t.Errorf("after the end of the trust: %v", err)
	}
	s.Pin(files)
	if _, _, err := s.prepare(c, nil); err != nil {
		t.Errorf("pinned: %v", err)
	}
}

// TestInside checks that a file counts as inside by its path and by the target of its links, and by the agent's own
// directories.
func TestInside(t *testing.T) {
	dir := t.TempDir()
	project, outside := filepath.Join(dir, "project"), filepath.Join(dir, "bin")
	write(t, filepath.Join(project, "in"), "x")
	write(t, filepath.Join(outside, "out"), "x")
	for link, to := range map[string]string{filepath.Join(outside, "to-in"): filepath.Join(project, "in"),
		filepath.Join(project, "to-out"): filepath.Join(outside, "out")} {
		if err := os.Symlink(to, link); err != nil {
			t.Skip(err)
		}
	}
	s := &Store{Dir: filepath.Join(dir, "state"), Roots: []string{project}}
	for path, want := range map[string]bool{"project/in": true, "project/to-out": true, "bin/to-in": true,
		"bin/out": false} {
		f, _, err := s.readFile(filepath.Join(dir, path), nil)
		if err != nil || f.Inside != want {
			t.Errorf("%s: %+v, %v", path, f, err)
		}
	}
	if f, _, err := s.readFile(filepath.Join(outside, "out"), []string{outside}); err != nil || !f.Inside {
		t.Errorf("%+v, %v", f, err)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
}
