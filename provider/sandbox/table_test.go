package sandbox

import (
	"os"
	"path/filepath"
	"testing"
)

// TestShow: a shown file in a hidden folder can be read, and a shown file elsewhere loses no right.
func TestShow(t *testing.T) {
	home, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	state, work := filepath.Join(home, "state"), filepath.Join(home, "work")
	for _, dir := range []string{state, work} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "f"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	table, err := Spec{Mode: Project, Home: home, Work: []string{work}, Hide: []string{state},
		Show: []string{filepath.Join(state, "f"), filepath.Join(work, "f")}}.table()
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]access{
		state: hidden, state + "/f": read, work: write, work + "/f": write, home: read,
	} {
		if got := table.of(path); got != want {
			t.Errorf("%s: %d, want %d", path, got, want)
		}
	}
}

// TestWorktrees: the repository of a linked work tree can be written only if it names the work tree, too.
func TestWorktrees(t *testing.T) {
	dir := t.TempDir()
	own, work := filepath.Join(dir, "main", ".git", "worktrees", "w"), filepath.Join(dir, "w")
	for _, d := range []string{own, work} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	write := func(path, text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(filepath.Join(work, ".git"), "gitdir: "+own)
	if got := worktrees([]string{work}); len(got) != 0 {
		t.Errorf("a link that the agent could have written counts: %q", got)
	}
	write(filepath.Join(own, "gitdir"), filepath.Join(work, ".git"))
	if got := worktrees([]string{work, dir}); len(got) != 1 || got[0] != filepath.Join(dir, "main", ".git") {
		t.Errorf("%q", got)
	}
}
