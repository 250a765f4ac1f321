package sandbox

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/perlica/perlica/provider/proxy"
)

// TestShow checks that a file in Spec.Show can be read inside a hidden folder, and stays writable inside a writable
// folder.
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

// TestPins checks that the folders above a path of the spec become mount points exactly where an agent could rename
// them. In a read-only folder it can rename nothing, and a mount there would only make the start slower.
func TestPins(t *testing.T) {
	home, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	work, search := filepath.Join(home, "src", "group", "p"), filepath.Join(home, ".tools", "bin")
	visible := filepath.Join(home, "dev", "bin")
	for _, dir := range []string{work, search, visible} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for mode, want := range map[Mode][]string{
		Protect: {"src", "src/group", "src/group/p", "dev", "dev/bin"}, Project: {"src/group/p"},
	} {
		table, err := Spec{Mode: mode, Home: home, Work: []string{work},
			Search: []string{search, visible, "/usr/bin"}}.table()
		if err != nil {
			t.Fatal(err)
		}
		var points []string
		for _, r := range table.rules() {
			points = append(points, r.path)
		}
		for _, name := range []string{"src", "src/group", "src/group/p", "dev", "dev/bin", ".tools", ".tools/bin"} {
			if got := slices.Contains(points, filepath.Join(home, name)); got != slices.Contains(want, name) {
				t.Errorf("%s: %s is a mount point: %v", mode, name, got)
			}
		}
		if slices.Contains(points, "/usr/bin") {
			t.Errorf("%s: /usr/bin is a mount point", mode)
		}
	}
}

// TestLinks checks that links gives the same results as filepath.EvalSymlinks, also for paths with dots, for missing
// paths and for loops.
func TestLinks(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "a", "b"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for link, to := range map[string]string{
		"up": "a/b/..", "deep": "a/b", "chain": "deep", "loop": "loop", "away": "missing",
	} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	l := links{}
	for range 2 { // the second time, l knows the folders
		for _, name := range []string{"", "/", "a", "a/b", "up", "up/b", "deep/..", "deep/../b", "chain", "chain/", "chain/.",
			"chain//x", "loop", "loop/x", "away", "file", "file/x", "missing/x"} {
			path := dir + "/" + name
			got, err := l.eval(path)
			want, wantErr := filepath.EvalSymlinks(path)
			if (err == nil) != (wantErr == nil) || err == nil && got != want {
				t.Errorf("%s: %q, %v; want %q, %v", path, got, err, want, wantErr)
			}
		}
	}
	for _, path := range []string{"/", "."} {
		if got, err := l.eval(path); err != nil || got != path {
			t.Errorf("%q: %q, %v", path, got, err)
		}
	}
}

// TestReach checks the results of Reads, Writes and Connects for paths with links, hidden paths, and hosts with ports.
func TestReach(t *testing.T) {
	home, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	keys, work := filepath.Join(home, ".ssh"), filepath.Join(home, "work")
	for _, dir := range []string{keys, work} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(keys, filepath.Join(work, "link")); err != nil {
		t.Fatal(err)
	}
	table, err := Spec{Mode: Project, Home: home, Work: []string{work}}.table()
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string][2]bool{
		keys + "/new": {false, false}, work + "/link/new": {false, false}, work + "/new/deep": {true, true},
		home + "/new": {true, false}, "/tmp/new": {true, true}, "/etc/hosts": {true, false},
	} {
		b := &Sandbox{Mode: Project, table: table}
		if got := [2]bool{b.Reads(path), b.Writes(path)}; got != want {
			t.Errorf("%s: it reads and writes: %v, want %v", path, got, want)
		}
	}
	host, err := proxy.ParseHost("*.example.org")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		mode Mode
		host string
		port int
		want bool
	}{
		{Offline, "A.example.org.", 443, true}, {Offline, "a.example.org", 0, true}, {Offline, "a.example.org", 22, false},
		{Offline, "example.org", 443, false}, {Offline, "b.example.com", 0, false}, {Offline, "a.example.org", 1 << 17, false},
		{Project, "b.example.com", 22, true},
	} {
		b := &Sandbox{Mode: c.mode, hosts: []proxy.Host{host}}
		if got := b.Connects(c.host, c.port); got != c.want {
			t.Errorf("%s: %s:%d: %v", c.mode, c.host, c.port, got)
		}
	}
}

// TestWorktrees checks that the repository of a linked work tree is writable only if it names the work tree, too.
func TestWorktrees(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
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
	link, back := filepath.Join(work, ".git"), filepath.Join(own, "gitdir")
	write(link, "gitdir: "+own)
	if got := worktrees([]string{work}); len(got) != 0 {
		t.Errorf("a link that the agent could have written counts: %q", got)
	}
	repository := filepath.Join(dir, "main", ".git")
	for _, text := range [][2]string{{own, link}, {"../main/.git/worktrees/w", "../../../../w/.git"}} {
		write(link, "gitdir: "+text[0])
		write(back, text[1])
		if got := worktrees([]string{work, dir}); !slices.Equal(got, []string{repository}) {
			t.Errorf("%q: %q", text, got)
		}
	}

	// A link that the agent has made inside its folder must not make another repository writable.
	inside := filepath.Join(work, "worktrees", "y")
	if err := os.MkdirAll(inside, 0o700); err != nil {
		t.Fatal(err)
	}
	write(link, "gitdir: "+inside)
	write(filepath.Join(inside, "gitdir"), link)
	if got := worktrees([]string{work}); len(got) != 0 {
		t.Errorf("a repository that the agent made counts: %q", got)
	}
}

// TestSubmodule checks that the repository of a submodule is writable if it names the submodule.
func TestSubmodule(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	own, work := filepath.Join(dir, "main", ".git", "modules", "sub"), filepath.Join(dir, "main", "sub")
	for path, text := range map[string]string{
		filepath.Join(work, ".git"):  "gitdir: ../.git/modules/sub\n",
		filepath.Join(own, "config"): "[core]\n\tbare = false\n\tworktree = ../../../sub\n",
	} {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got := worktrees([]string{work}); !slices.Equal(got, []string{own}) {
		t.Errorf("%q", got)
	}
	if err := os.Rename(work, work+"2"); err != nil {
		t.Fatal(err)
	}
	if got := worktrees([]string{work + "2"}); len(got) != 0 {
		t.Errorf("a repository that names another folder counts: %q", got)
	}
}

// TestAccountHome checks that the home of the user's account is also protected if HOME names another directory or is
// not set. The agent can neither read the secrets and Perlica's folders nor write the startup files there.
func TestAccountHome(t *testing.T) {
	account, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{".ssh", ".other", ".local/state/perlica", ".config/perlica", "visible"} {
		if err := os.MkdirAll(filepath.Join(account, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	old := accountHome
	t.Cleanup(func() { accountHome = old })
	accountHome = func() string { return account }
	for _, home := range []string{"", filepath.Join(account, "none"), t.TempDir()} {
		for mode, want := range map[Mode]map[string]access{
			Protect: {".": read, ".ssh": read, ".bashrc": read, ".local/state/perlica": hidden, ".config/perlica": hidden,
				"visible": write},
			Project: {".": read, ".ssh": hidden, ".other": hidden, ".local/state/perlica": hidden,
				".config/perlica": hidden, "visible": read},
		} {
			table, err := Spec{Mode: mode, Home: home, Foreign: []string{".other"}}.table()
			if err != nil {
				t.Fatal(err)
			}
			for name, access := range want {
				if got := table.of(filepath.Join(account, name)); got != access {
					t.Errorf("HOME=%s, %s, %s: %d, want %d", home, mode, name, got, access)
				}
			}
		}
	}
	accountHome = func() string { return "/dev/null" } // a home that cannot be listed
	if _, err := (Spec{Mode: Protect, Home: account}).table(); err != nil {
		t.Error(err)
	}
	accountHome = func() string { return "" }
	if _, err := (Spec{Mode: Project}).table(); err == nil {
		t.Error("a sandbox without a home starts")
	}
}

// TestLinkOfAnAgent checks that a path in Spec.Own becomes writable only if no agent could have made a link in it.
func TestLinkOfAnAgent(t *testing.T) {
	home, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{".config", ".real", "go", "work", "visible/own"} {
		if err := os.MkdirAll(filepath.Join(home, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	links := map[string]string{"go/pkg": ".config", "work/out": ".config", ".mine": "visible/own", ".chain": "go/pkg"}
	for link, to := range links {
		if err := os.Symlink(filepath.Join(home, to), filepath.Join(home, link)); err != nil {
			t.Fatal(err)
		}
	}
	for _, mode := range []Mode{Protect, Project} {
		table, err := Spec{Mode: mode, Home: home, Work: []string{filepath.Join(home, "work")},
			Own: []string{"work/out", ".mine", ".chain", ".real"}}.table()
		if err != nil {
			t.Fatal(err)
		}
		for name, want := range map[string]access{".config": read, ".real": write} {
			if got := table.of(filepath.Join(home, name)); got != want {
				t.Errorf("%s, %s: %d, want %d", mode, name, got, want)
			}
		}
		for _, name := range []string{"go/pkg", "work/out", ".chain"} {
			if !slices.Contains(table.left, filepath.Join(home, name)) {
				t.Errorf("%s: %s is not left out: %q", mode, name, table.left)
			}
		}
		if slices.Contains(table.left, filepath.Join(home, ".mine")) {
			t.Errorf("%s: a link of the person is left out", mode)
		}
	}
}
