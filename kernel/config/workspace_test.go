package config

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

func TestFind(t *testing.T) {
	for _, tt := range []struct {
		name  string
		make  []string // a path with a trailing slash becomes a directory
		dir   string
		root  string
		found bool
	}{
		{"nothing", nil, "home/a/b", "home/a/b", false},
		{"here", []string{"home/a/b/.perlica_config/"}, "home/a/b", "home/a/b", true},
		{"above", []string{"home/a/.perlica_config/"}, "home/a/b/c", "home/a", true},
		{"the nearest", []string{"home/a/.perlica_config/", "home/a/b/.perlica_config/"}, "home/a/b/c", "home/a/b", true},
		{"not above the git work tree", []string{"home/a/.perlica_config/", "home/a/b/.git/"}, "home/a/b/c", "home/a/b",
			false},
		{"not above a linked work tree", []string{"home/a/.perlica_config/", "home/a/b/.git"}, "home/a/b", "home/a/b", false},
		{"below the top of the git work tree", []string{"home/a/.git/", "home/a/b/.perlica_config/"}, "home/a/b/c",
			"home/a/b", true},
		{"top of the git work tree", []string{"home/a/.git/"}, "home/a/b/c", "home/a", false},
		{"linked git work tree", []string{"home/a/.git"}, "home/a/b", "home/a", false},
		{"inner git work tree", []string{"home/a/.git/", "home/a/b/.git/"}, "home/a/b/c", "home/a/b", false},
		{"not the home", []string{"home/.perlica_config/", "home/.git/"}, "home/a/b", "home/a/b", false},
		{"not above the home", []string{".perlica_config/", ".git/"}, "home/a/b", "home/a/b", false},
		{"in the home", []string{".perlica_config/", "home/.perlica_config/"}, "home", "home", true},
		{"in the home, nothing", []string{".perlica_config/"}, "home", "home", false},
		{"beside the home", []string{".perlica_config/"}, "other/a", ".", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			base := t.TempDir()
			home := filepath.Join(base, "home")
			for _, path := range append([]string{"home/", tt.dir + "/"}, tt.make...) {
				makePath(t, filepath.Join(base, path), strings.HasSuffix(path, "/"))
			}
			ws, err := Find(filepath.Join(base, tt.dir), home)
			if err != nil || ws.Root != filepath.Join(base, tt.root) || ws.Exists != tt.found {
				t.Errorf("got %+v, %v", ws, err)
			}
		})
	}
}

func makePath(t *testing.T, path string, dir bool) {
	t.Helper()
	err := os.MkdirAll(filepath.Dir(path), 0o755)
	if dir {
		err = os.MkdirAll(path, 0o755)
	} else if err == nil {
		err = os.WriteFile(path, nil, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestFindThroughALinkToTheHome(t *testing.T) {
	base := t.TempDir()
	makePath(t, filepath.Join(base, "real", "a"), true)
	makePath(t, filepath.Join(base, "real", DirName), true)
	if err := os.Symlink("real", filepath.Join(base, "home")); err != nil {
		t.Skip(err)
	}
	for _, dir := range []string{"real", "home"} {
		for _, home := range []string{"real", "home"} {
			want := filepath.Join(base, dir, "a")
			ws, err := Find(want, filepath.Join(base, home))
			if err != nil || ws.Root != want || ws.Exists {
				t.Errorf("%s in %s: got %+v, %v; want err == nil && ws.Root == %v && !ws.Exists", dir, home, ws, err, want)
			}
		}
	}
}

func TestFindWithoutHome(t *testing.T) {
	dir := t.TempDir()
	for _, home := range []string{"", filepath.Join(dir, "missing")} {
		if _, err := Find(dir, home); err != nil {
			t.Error(err)
		}
	}
}

func TestFindRefuses(t *testing.T) {
	outside := t.TempDir()
	for name, make := range map[string]func(string) error{
		"is not a directory": func(p string) error { return os.WriteFile(p, nil, 0o600) },
		"is a symbolic link that leads out of the project or":    func(p string) error { return os.Symlink(outside, p) },
		"is a symbolic link that leads out of the project or no": func(p string) error { return os.Symlink("missing", p) },
	} {
		root := t.TempDir()
		if err := make(filepath.Join(root, DirName)); err != nil {
			t.Skip(err)
		}
		_, err := Find(root, "")
		var we *WorkspaceError
		if !errors.As(err, &we) || we.Path != filepath.Join(root, DirName) || !strings.HasPrefix(we.Reason, name) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if _, err := Find("relative", ""); err == nil {
		t.Error("a relative directory is accepted")
	}
}

func TestFindFollowsALinkInsideTheProject(t *testing.T) {
	root := t.TempDir()
	makePath(t, filepath.Join(root, "tools", "perlica"), true)
	if err := os.Symlink(filepath.Join("tools", "perlica"), filepath.Join(root, DirName)); err != nil {
		t.Skip(err)
	}
	ws, err := Find(root, "")
	if err != nil || !ws.Exists {
		t.Fatalf("got %+v %v; want err == nil && ws.Exists", ws, err)
	}
	if _, err := ws.Ensure("default"); err != nil {
		t.Error(err)
	}
}

func TestEnsure(t *testing.T) {
	root := t.TempDir()
	ws := Workspace{Root: root}
	paths, err := ws.Ensure("work")
	if err != nil {
		t.Fatal(err)
	}
	if paths.EventLog != filepath.Join(root, ".perlica_config", "contexts", "work", "eventlog.db") {
		t.Errorf(`got %v; want paths.EventLog == filepath.Join(root, ".perlica_config", "contexts", "work", "eventlog.db")`,
			paths.EventLog)
	}
	for _, dir := range []string{ws.Dir(), filepath.Dir(paths.Dir), paths.Dir, paths.Logs, paths.Locks} {
		if info, err := os.Stat(dir); err != nil || !info.IsDir() || info.Mode().Perm() != 0o700 &&
			runtime.GOOS != "windows" {
			t.Errorf("%s: %v %v", dir, info, err)
		}
	}
	ignore := filepath.Join(ws.Dir(), ".gitignore")
	if data, err := os.ReadFile(ignore); err != nil || string(data) != "*\n!config.toml\n" {
		t.Errorf(`got %q %v; want err == nil && string(data) == "*\n!config.toml\n"`, data, err)
	}
	if err := os.WriteFile(ws.ConfigFile(), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ws.Ensure("work"); err != nil {
		t.Fatal(err)
	}
	if data, err := os.ReadFile(ignore); err != nil || string(data) != "contexts/\nservice/\n" {
		t.Errorf("with a configuration file: %q %v", data, err)
	}

	if err := errors.Join(os.WriteFile(ignore, []byte("mine"), 0o644), os.Chmod(paths.Dir, 0o755),
		os.WriteFile(paths.EventLog, []byte("x"), 0o600)); err != nil {
		t.Fatal(err)
	}
	if _, err := ws.Ensure("work"); err != nil {
		t.Fatal(err)
	}
	if data, _ := os.ReadFile(ignore); string(data) != "mine" {
		t.Error("the .gitignore is overwritten")
	}
	if info, _ := os.Stat(paths.Dir); info.Mode().Perm() != 0o700 && runtime.GOOS != "windows" {
		t.Errorf("the context stays open to others: %v", info.Mode())
	}
}

func TestEnsureRefuses(t *testing.T) {
	outside := t.TempDir()
	for name, at := range map[string]string{
		"contexts": "contexts", "context": "contexts/default", "logs": "contexts/default/logs",
		"log": "contexts/default/eventlog.db", "wal": "contexts/default/eventlog.db-wal",
		"trail": "contexts/default/logs/x.jsonl",
	} {
		ws := Workspace{Root: t.TempDir()}
		link := filepath.Join(ws.Dir(), filepath.FromSlash(at))
		if err := os.MkdirAll(filepath.Dir(link), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(outside, link); err != nil {
			t.Skip(err)
		}
		_, err := ws.Ensure("default")
		var we *WorkspaceError
		if !errors.As(err, &we) || !errors.Is(err, errLink) {
			t.Errorf("%s: got %v", name, err)
		}
		if left, _ := os.ReadDir(outside); len(left) > 0 {
			t.Errorf("%s: something was made outside", name)
		}
	}
	file := Workspace{Root: t.TempDir()}
	makePath(t, filepath.Join(file.Dir(), "contexts"), false)
	if _, err := file.Ensure("default"); err == nil || !strings.HasSuffix(err.Error(), "contexts: is not a directory") {
		t.Errorf("got %v", err)
	}
	trail := Workspace{Root: t.TempDir()}
	makePath(t, filepath.Join(trail.Dir(), "contexts", "default", "logs"), false)
	if _, err := trail.Ensure("default"); err != nil {
		t.Errorf("without a folder for the debug trail: %v", err)
	}
	missing := Workspace{Root: filepath.Join(t.TempDir(), "missing")}
	if _, err := missing.Ensure("default"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
	if _, err := file.Ensure("../.."); err == nil {
		t.Error("a name that leads out is accepted")
	}
}

func TestContextNames(t *testing.T) {
	for _, name := range []string{"default", "a", "A-b_c.d", "two words", "日本語", "con1", "COM10", "lpt", "console",
		strings.Repeat("x", 64)} {
		if err := CheckContextName(name); err != nil {
			t.Errorf("%q: got %v; want err == nil", name, err)
		}
	}
	for _, name := range []string{
		"", ".", "..", "...", ".hidden", "../..", "a/b", `a\b`, "/abs", `C:\x`, "a\x00b", "a\nb", "\x1b[2J", "a\u202eb",
		"\xff", "a%20b", "%",
		"con", "CON", "nul.txt", "Aux", "com1", "LPT9", "com¹", "conin$", "con .x", "x.", "x ", " x", "a:b", "a*", "a?",
		"a|b", "<", `"`, strings.Repeat("x", 65),
	} {
		err := CheckContextName(name)
		var ne *ContextNameError
		if !errors.As(err, &ne) || ne.Name != name || ne.Reason == "" || printable(err.Error()) != err.Error() {
			t.Errorf("%q: %v", name, err)
		}
		if _, err := (Workspace{Root: "/p"}).Context(name); err == nil {
			t.Errorf("%q has paths", name)
		}
	}
}

func TestInit(t *testing.T) {
	ws := Workspace{Root: t.TempDir()}
	path, err := Init(ws)
	if err != nil || path != ws.ConfigFile() {
		t.Fatalf("got %v, %v; want err == nil && path == ws.ConfigFile()", path, err)
	}
	if data, err := os.ReadFile(path); err != nil || string(data) != defaultFile() {
		t.Error("another file", err)
	}
	if err := os.WriteFile(path, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Init(ws); !errors.Is(err, ErrExists) {
		t.Errorf("got %v", err)
	}
	if data, _ := os.ReadFile(path); string(data) != "mine" {
		t.Error("the file is overwritten")
	}
}

func TestUserDirs(t *testing.T) {
	at := filepath.FromSlash
	for _, tt := range []struct {
		name, goos string
		env        map[string]string
		want       Dirs
	}{
		{"linux", "linux", map[string]string{"HOME": "/h"}, Dirs{"/h", "/h/.config/perlica", "/h/.local/state/perlica",
			"/h/.local/state/perlica/run"}},
		{"xdg", "linux", map[string]string{"HOME": "/h", "XDG_CONFIG_HOME": "/c", "XDG_STATE_HOME": "/s",
			"XDG_RUNTIME_DIR": "/r"}, Dirs{"/h", "/c/perlica", "/s/perlica", "/r/perlica"}},
		{"relative xdg", "linux", map[string]string{"HOME": "/h", "XDG_CONFIG_HOME": "c"},
			Dirs{"/h", "/h/.config/perlica", "/h/.local/state/perlica", "/h/.local/state/perlica/run"}},
		{"own", "linux", map[string]string{"HOME": "/h", "XDG_CONFIG_HOME": "/c", "PERLICA_HOME": "/p"},
			Dirs{"/h", "/p/config", "/p/state", "/p/run"}},
		{"own without home", "windows", map[string]string{"PERLICA_HOME": "/p"}, Dirs{"", "/p/config", "/p/state", "/p/run"}},
		{"xdg without home", "linux", map[string]string{"XDG_CONFIG_HOME": "/c", "XDG_STATE_HOME": "/s"},
			Dirs{"", "/c/perlica", "/s/perlica", "/s/perlica/run"}},
		{"mac", "darwin", map[string]string{"HOME": "/h", "TMPDIR": "/t"},
			Dirs{"/h", "/h/Library/Application Support/perlica", "/h/Library/Application Support/perlica/state", "/t/perlica"}},
		{"windows", "windows", map[string]string{"USERPROFILE": "/h", "APPDATA": "/a", "LOCALAPPDATA": "/l"},
			Dirs{"/h", "/a/perlica", "/l/perlica/state", "/l/perlica/run"}},
	} {
		got, err := userDirs(tt.goos, func(k string) string { return tt.env[k] })
		want := Dirs{at(tt.want.Home), at(tt.want.Config), at(tt.want.State), at(tt.want.Runtime)}
		if err != nil || got != want {
			t.Errorf("%s: got %+v, %v", tt.name, got, err)
		}
	}
	for _, goos := range []string{"linux", "darwin", "windows"} {
		if _, err := userDirs(goos, func(string) string { return "" }); !errors.Is(err, ErrNoHome) {
			t.Errorf("%s: got %v", goos, err)
		}
	}
	if _, err := UserDirs(func(string) string { return "relative" }); err == nil {
		t.Error("a relative PERLICA_HOME is accepted")
	}
}

// TestViews checks that the views are the files that the paths name, even if these are not in the folder of the context.
func TestViews(t *testing.T) {
	p := ContextPaths{Dir: "/dir", Sessions: "/a/1", Approvals: "/a/2", Search: "/b/3", Changes: "/b/4"}
	if got, want := p.Views(), []string{"/a/1", "/a/2", "/b/3", "/b/4"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
