//go:build unix

package worktree

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/perlica/perlica/kernel/fact"
)

// git runs git in a folder and returns its output.
func git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "user.name=a", "-c", "user.email=a@example.org"}, args...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_SYSTEM="+os.DevNull)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// repository returns a repository with a commit of three files.
func repository(t *testing.T) string {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("there is no git")
	}
	dir := t.TempDir()
	git(t, dir, "init", "-q", "-b", "main")
	write(t, dir, "a.txt", "a\n")
	write(t, dir, "sub/b.txt", "b\n")
	write(t, dir, "sub/deep/c.txt", "c\n")
	git(t, dir, "add", ".")
	git(t, dir, "commit", "-q", "-m", "first")
	return dir
}

func observe(t *testing.T, dir string) *Tree {
	t.Helper()
	tree, err := Observe(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

// paths returns the paths of files, with - before a missing file.
func paths(files []fact.TreeFile) string {
	var list []string
	for _, f := range files {
		if f.Mode == "" {
			f.Path = "-" + f.Path
		}
		list = append(list, f.Path)
	}
	return strings.Join(list, " ")
}

// TestObserve compares the state of a repository with git's, for each version of the index.
func TestObserve(t *testing.T) {
	for _, version := range []string{"2", "3", "4"} {
		t.Run(version, func(t *testing.T) {
			dir := repository(t)
			git(t, dir, "update-index", "--index-version", version)
			if version == "3" { // Only an extended flag makes git write this version.
				write(t, dir, "later.txt", "x")
				git(t, dir, "add", "-N", "later.txt")
				git(t, dir, "reset", "-q", "later.txt")
				git(t, dir, "update-index", "--skip-worktree", "sub/deep/c.txt")
				if err := os.Remove(filepath.Join(dir, "later.txt")); err != nil {
					t.Fatal(err)
				}
			}
			before := observe(t, filepath.Join(dir, "sub"))
			if before.Root != dir || before.Head != git(t, dir, "rev-parse", "HEAD") || len(before.Dirty) > 0 {
				t.Errorf("%+v", before)
			}
			write(t, dir, "a.txt", "A\n") // of the same size
			write(t, dir, "sub/new.txt", "new\n")
			if err := os.Remove(filepath.Join(dir, "sub", "b.txt")); err != nil {
				t.Fatal(err)
			}
			after := observe(t, dir)
			if got := paths(after.Dirty); got != "a.txt -sub/b.txt sub/new.txt" {
				t.Errorf("dirty: %s", got)
			}
			if got := paths(after.Since(before)); got != "a.txt -sub/b.txt sub/new.txt" {
				t.Errorf("changed: %s", got)
			}
			if f := after.Dirty[0]; f.Blob != git(t, dir, "hash-object", "a.txt") || f.Mode != "100644" || f.Size != 2 {
				t.Errorf("%+v", f)
			}
			git(t, dir, "add", "-A")
			git(t, dir, "commit", "-q", "-m", "second")
			committed := observe(t, dir)
			if got := paths(committed.Since(after)); got != "" || len(committed.Dirty) > 0 || committed.Head == after.Head {
				t.Errorf("a commit changes %q, dirty %s", got, paths(committed.Dirty))
			}
		})
	}
}

// TestHead reads HEAD from a branch without a commit, from packed references, from a detached HEAD and in a second work
// tree.
func TestHead(t *testing.T) {
	dir := repository(t)
	want := git(t, dir, "rev-parse", "HEAD")
	git(t, dir, "pack-refs", "--all")
	if got := observe(t, dir).Head; got != want {
		t.Errorf("packed: %q, want %q", got, want)
	}
	second := filepath.Join(t.TempDir(), "second")
	git(t, dir, "worktree", "add", "-q", second)
	if got := observe(t, second); got.Head != want || len(got.Dirty) > 0 {
		t.Errorf("a second work tree: %+v", got)
	}
	git(t, dir, "checkout", "-q", "--detach")
	if got := observe(t, dir).Head; got != want {
		t.Errorf("detached: %q, want %q", got, want)
	}
	empty := t.TempDir()
	git(t, empty, "init", "-q")
	write(t, empty, "x", "x")
	if got := observe(t, empty); got.Head != "" || paths(got.Dirty) != "x" {
		t.Errorf("%+v", got)
	}
	if _, err := Observe(t.Context(), t.TempDir()); !errors.Is(err, errNoTree) {
		t.Errorf("%v, want %v", err, errNoTree)
	}
}

// TestHostileRepository checks that no setting and no hook of a repository starts a program, and that no link and no
// pipe misleads an observation.
func TestHostileRepository(t *testing.T) {
	dir := repository(t)
	outside := t.TempDir()
	started := filepath.Join(outside, "started")
	run := "touch " + started
	write(t, dir, "extra.config", "[core]\n\tfsmonitor = "+run+"\n")
	write(t, dir, ".gitattributes", "* filter=evil diff=evil\n")
	write(t, dir, ".git/config", "[core]\n\tfsmonitor = "+run+"\n\tpager = "+run+"\n\tsshCommand = "+run+
		"\n\teditor = "+run+"\n\thooksPath = hooks\n\tuntrackedCache = true\n[filter \"evil\"]\n\tclean = "+run+
		"\n\tprocess = "+run+"\n\trequired = true\n[diff]\n\texternal = "+run+"\n[diff \"evil\"]\n\tcommand = "+run+
		"\n\ttextconv = "+run+"\n[include]\n\tpath = ../extra.config\n[includeIf \"gitdir:/\"]\n\tpath = ../extra.config\n"+
		"[alias]\n\tstatus = !"+run+"\n[extensions]\n\tpartialClone = origin\n[remote \"origin\"]\n\turl = ext::"+run+"\n")
	for _, hook := range []string{"post-index-change", "fsmonitor-watchman", "query-watchman", "post-checkout",
		"pre-commit"} {
		for _, at := range []string{".git/hooks/", "hooks/"} {
			write(t, dir, at+hook, "#!/bin/sh\n"+run+"\n")
			if err := os.Chmod(filepath.Join(dir, at+hook), 0o755); err != nil {
				t.Fatal(err)
			}
		}
	}
	write(t, outside, "secret", "secret\n")
	if err := os.RemoveAll(filepath.Join(dir, "sub")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(dir, "sub")); err != nil {
		t.Fatal(err)
	}
	write(t, outside, "b.txt", "outside\n")
	if err := os.Remove(filepath.Join(dir, "a.txt")); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(dir, "a.txt"), 0o600); err != nil {
		t.Skip("there are no pipes")
	}
	tree := observe(t, dir)
	for _, f := range tree.Dirty {
		if strings.HasPrefix(f.Path, "sub/") && f.Mode != "" || f.Path == "a.txt" && f.Blob != "" {
			t.Errorf("%+v", f)
		}
	}
	if _, err := os.Stat(started); !errors.Is(err, os.ErrNotExist) {
		t.Error("a program was started")
	}
	for _, name := range []string{"index", "HEAD"} { // A pipe in the place of a file of git ends the observation.
		path := filepath.Join(dir, ".git", name)
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Mkfifo(path, 0o600); err != nil {
			t.Fatal(err)
		}
		if tree, err := Observe(t.Context(), dir); err == nil {
			t.Errorf("a pipe as %s: %+v", name, tree)
		}
	}
}

// FuzzIndex checks that no index leads to a panic.
func FuzzIndex(f *testing.F) {
	f.Add([]byte("DIRC\x00\x00\x00\x04\x00\x00\x00\x01" + strings.Repeat("\x00", 90)))
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, version := range []byte{2, 3, 4} {
			if len(b) > 8 {
				b[7] = version
			}
			_, _ = parseIndex(b) // an error is a valid result
		}
	})
}

// TestRacyFile checks that a change with the old size and the old time is found if the index is not newer.
func TestRacyFile(t *testing.T) {
	dir := repository(t)
	path := filepath.Join(dir, "a.txt")
	at := time.Now().Add(time.Hour).Truncate(time.Second)
	if err := os.Chtimes(path, at, at); err != nil {
		t.Fatal(err)
	}
	git(t, dir, "update-index", "--refresh", "-q")
	write(t, dir, "a.txt", "A\n")
	if err := os.Chtimes(path, at, at); err != nil {
		t.Fatal(err)
	}
	if got := paths(observe(t, dir).Dirty); got != "a.txt" {
		t.Errorf("dirty: %q", got)
	}
}
