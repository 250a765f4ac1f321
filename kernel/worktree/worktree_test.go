//go:build unix

package worktree

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
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
	tree, err := observeSoon(t, dir)
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

// observeSoon fails if an observation hangs.
func observeSoon(t *testing.T, dir string) (tree *Tree, err error) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		tree, err = Observe(t.Context(), dir)
	}()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Fatal("the observation does not end")
	}
	return tree, err
}

// since returns the paths of the changed files. It fails if files may be missing.
func since(t *testing.T, after, before *Tree) string {
	t.Helper()
	changed, more := after.Since(before)
	if more {
		t.Error("files may be missing")
	}
	return paths(changed)
}

// replace removes a file or a folder and makes a pipe in its place.
func replace(t *testing.T, path string) {
	t.Helper()
	if err := os.RemoveAll(path); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Skip("there are no pipes")
	}
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
			if got := since(t, after, before); got != "a.txt -sub/b.txt sub/new.txt" {
				t.Errorf("changed: %s", got)
			}
			if f := after.Dirty[0]; f.Blob != git(t, dir, "hash-object", "a.txt") || f.Mode != "100644" || f.Size != 2 {
				t.Errorf("%+v", f)
			}
			git(t, dir, "add", "-A")
			git(t, dir, "commit", "-q", "-m", "second")
			committed := observe(t, dir)
			if got := since(t, committed, after); got != "" || len(committed.Dirty) > 0 || committed.Head == after.Head {
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
	if err := os.MkdirAll(filepath.Join(dir, ".git/refs/heads/main"), 0o755); err != nil {
		t.Fatal(err)
	}
	if got := observe(t, dir).Head; got != want {
		t.Errorf("packed, with an empty folder: %q, want %q", got, want)
	}
	if err := os.Remove(filepath.Join(dir, ".git/refs/heads/main")); err != nil {
		t.Fatal(err)
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
}

// TestHostilePipes checks that a pipe in the place of a file or a folder delays no observation. If the product opened a
// pipe like a file, the observation would wait for ever and the test would fail.
func TestHostilePipes(t *testing.T) {
	for _, name := range []string{"sub", "sub/deep", "sub/b.txt"} {
		dir := repository(t)
		replace(t, filepath.Join(dir, name))
		if tree := observe(t, dir); len(tree.Dirty) == 0 || strings.Contains(paths(tree.Dirty), " "+name+" ") {
			t.Errorf("a pipe as %s: %+v", name, tree.Dirty)
		}
	}
	for _, name := range []string{".git", ".git/index", ".git/HEAD", ".git/refs/heads/main", ".git/commondir"} {
		dir := repository(t)
		replace(t, filepath.Join(dir, name))
		if tree, err := observeSoon(t, dir); err == nil {
			t.Errorf("a pipe as %s: %+v", name, tree)
		}
	}
	dir := repository(t)
	git(t, dir, "pack-refs", "--all")
	replace(t, filepath.Join(dir, ".git/packed-refs"))
	if tree, err := observeSoon(t, dir); err == nil {
		t.Errorf("a pipe as packed-refs: %+v", tree)
	}
	for _, name := range []string{"gitdir", "commondir"} {
		dir := repository(t)
		replace(t, filepath.Join(dir, "pipe"))
		if name == "gitdir" {
			if err := os.RemoveAll(filepath.Join(dir, ".git")); err != nil {
				t.Fatal(err)
			}
			write(t, dir, ".git", "gitdir: pipe\n")
		} else {
			write(t, dir, ".git/commondir", "../pipe\n")
		}
		if tree, err := observeSoon(t, dir); err == nil {
			t.Errorf("a pipe in %s: %+v", name, tree)
		}
	}
}

// TestHostileLinks checks that a link in the place of a file of git ends the observation. Each link leads to a valid
// file, so an observation that follows it succeeds.
func TestHostileLinks(t *testing.T) {
	for _, name := range []string{".git", ".git/index", ".git/HEAD", ".git/refs/heads/main", ".git/refs/heads",
		".git/packed-refs", ".git/commondir"} {
		dir, to := repository(t), filepath.Join(t.TempDir(), "to")
		switch name {
		case ".git/packed-refs":
			git(t, dir, "pack-refs", "--all")
		case ".git/commondir":
			write(t, dir, name, ".\n")
		}
		if err := os.Rename(filepath.Join(dir, name), to); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
		if tree, err := observeSoon(t, dir); err == nil {
			t.Errorf("a link as %s: %+v", name, tree)
		}
	}
}

// TestHostileNames checks that git's folder is not looked for on another machine. The folders exist here, so an
// observation that looks for them succeeds.
func TestHostileNames(t *testing.T) {
	for _, name := range []string{`\\host`, `\/host`, `\??\host`, "/"} {
		dir := repository(t)
		if name == "/" {
			name += filepath.Join(dir, "git")
		}
		at := name
		if !filepath.IsAbs(at) {
			at = filepath.Join(dir, name)
		}
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(filepath.Join(dir, ".git"), at); err != nil {
			t.Fatal(err)
		}
		write(t, dir, ".git", "gitdir: "+name+"\n")
		if tree, err := observeSoon(t, dir); !errors.Is(err, errNoTree) {
			t.Errorf("gitdir: %s: %+v, %v", name, tree, err)
		}
		write(t, dir, "own/HEAD", "ref: refs/heads/main\n")
		write(t, dir, "own/commondir", name+"\n")
		if !filepath.IsAbs(name) {
			if err := os.MkdirAll(filepath.Join(dir, "own", filepath.Dir(name)), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.Rename(at, filepath.Join(dir, "own", name)); err != nil {
				t.Fatal(err)
			}
		}
		write(t, dir, ".git", "gitdir: own\n")
		if tree, err := observeSoon(t, dir); !errors.Is(err, errNoTree) {
			t.Errorf("commondir: %s: %+v, %v", name, tree, err)
		}
	}
}

// longIndex returns an index of version 4. Its first path has "long" bytes. Each other path adds one byte to the path
// before it, and the number "cut" is the number of removed bytes.
func longIndex(count, long int, cut byte) []byte {
	b := binary.BigEndian.AppendUint32([]byte("DIRC\x00\x00\x00\x04"), uint32(count))
	for i := range count {
		b = append(b, make([]byte, atBlob+blobBytes+2)...)
		binary.BigEndian.PutUint32(b[len(b)-atBlob-blobBytes-2+atMode:], 0o100644)
		if i == 0 {
			b = append(append(append(b, 0), strings.Repeat("a", long)...), 0)
		} else {
			b = append(b, cut, 'a', 0)
		}
	}
	return append(b, make([]byte, blobBytes)...)
}

// TestHostileIndex checks that a small index cannot lead to long paths or to many paths.
func TestHostileIndex(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	tests := map[string]struct {
		index []byte
		want  error
	}{
		"the longest path":  {longIndex(10, maxPath, 1), nil},
		"a long path":       {longIndex(10, maxPath+1, 1), errIndex},
		"a growing path":    {longIndex(maxPath+1, 1, 0), errIndex},
		"the longest paths": {longIndex(maxPaths/maxPath, maxPath, 1), nil},
		"all paths":         {longIndex(maxPaths/maxPath+1, maxPath, 1), errIndex},
		"many files":        {longIndex(maxFiles+1, 1, 1), errIndex},
	}
	for name, tt := range tests {
		if _, err := parseIndex(ctx, tt.index); !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, want %v", name, err, tt.want)
		}
	}
	cancel()
	if _, err := parseIndex(ctx, longIndex(10, 1, 1)); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want the end of the context", err)
	}
}

// limited observes a repository without git's index, with a limit of the files.
func limited(t *testing.T, dir string, most int) *Tree {
	t.Helper()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	o := newObserver(t.Context(), root, most)
	if err := o.readFiles(nil, time.Time{}); err != nil {
		t.Fatal(err)
	}
	return o.tree
}

// TestObserveManyFiles checks the limits of the files, and that a limit does not lead to a change that did not happen.
func TestObserveManyFiles(t *testing.T) {
	dir := t.TempDir()
	empty := limited(t, dir, maxFiles)
	for i := range maxDirty + 1 {
		write(t, dir, fmt.Sprint(i), "x")
	}
	full, part := limited(t, dir, maxFiles), limited(t, dir, 10)
	if changed, more := full.Since(empty); len(changed) != maxDirty || !more || !full.More {
		t.Errorf("%d changed files, more: %v", len(changed), more)
	}
	if len(part.files) != 10 || !part.More {
		t.Errorf("%d files, more: %v", len(part.files), part.More)
	}
	if changed, more := part.Since(full); len(changed) > 0 || !more {
		t.Errorf("%s, more: %v", paths(changed), more)
	}
	if changed, more := full.Since(part); len(changed) > 0 || !more {
		t.Errorf("%s, more: %v", paths(changed), more)
	}
}

// TestSinceOfTheIndex changes the index and no file of an old folder. The observation of another folder is no change of
// its files. New and removed folders are found, also if the index changes with them.
func TestSinceOfTheIndex(t *testing.T) {
	for name, c := range map[string]struct {
		change func(dir string)
		want   string
		more   bool
	}{
		"an old folder is added":    {func(dir string) { git(t, dir, "add", "old") }, "", true},
		"a folder leaves the index": {func(dir string) { git(t, dir, "rm", "-q", "-r", "--cached", "sub/deep") }, "", true},
		"a new folder is added": {func(dir string) {
			write(t, dir, "sub/new/more/d.txt", "d\n")
			git(t, dir, "add", "sub/new")
		}, "sub/new/more/d.txt", false},
		"a folder is removed": {func(dir string) { git(t, dir, "rm", "-q", "-r", "sub/deep") }, "-sub/deep/c.txt", false},
		"a link is made": {func(dir string) {
			if err := os.Symlink("a.txt", filepath.Join(dir, "link")); err != nil {
				t.Fatal(err)
			}
			git(t, dir, "add", "link")
		}, "link", false},
		"an old link is added": {func(dir string) { git(t, dir, "add", "oldlink") }, "", false},
	} {
		dir := repository(t)
		write(t, dir, "old/o.txt", "o\n")
		if err := os.Symlink("a.txt", filepath.Join(dir, "oldlink")); err != nil {
			t.Fatal(err)
		}
		before := observe(t, dir)
		c.change(dir)
		changed, more := observe(t, dir).Since(before)
		if got := paths(changed); got != c.want || more != c.more {
			t.Errorf("%s: %s, more: %v", name, got, more)
		}
	}
	dir := repository(t)
	git(t, dir, "update-index", "--split-index")
	if tree, err := Observe(t.Context(), dir); err == nil {
		t.Errorf("a split index: %+v", tree)
	}
}

// endingContext ends after some questions for its error.
type endingContext struct {
	context.Context
	left int
}

func (c *endingContext) Err() error {
	if c.left--; c.left < 0 {
		return context.Canceled
	}
	return nil
}

// TestObserveEnds checks that the context ends an observation in the middle of a folder.
func TestObserveEnds(t *testing.T) {
	dir := repository(t)
	for i := range 100 {
		write(t, dir, fmt.Sprint(i), "x")
	}
	if tree, err := Observe(&endingContext{t.Context(), 50}, dir); !errors.Is(err, context.Canceled) {
		t.Errorf("%+v, %v", tree, err)
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
			_, _ = parseIndex(t.Context(), b) // an error is a valid result
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
