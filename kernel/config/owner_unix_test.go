//go:build unix

package config

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

func TestFindRefusesAnotherUsersWorkspace(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can give files away")
	}
	base := t.TempDir()
	home := filepath.Join(base, "home")
	makePath(t, home, true)
	makePath(t, filepath.Join(base, "a", DirName), true)
	for _, tt := range []struct {
		homeOwner, owner int
		ok               bool
	}{{1000, 1000, true}, {1000, 0, true}, {1000, 1001, false}, {0, 1001, true}} {
		if err := errors.Join(os.Chown(home, tt.homeOwner, -1), os.Chown(filepath.Join(base, "a", DirName), tt.owner,
			-1)); err != nil {
			t.Skip(err)
		}
		if _, err := Find(filepath.Join(base, "a"), home); (err == nil) != tt.ok {
			t.Errorf("%+v: got %v", tt, err)
		}
	}
}

// TestConfigurationThatIsAPipe checks that Load refuses a pipe, because opening a pipe would wait for a writer for
// ever.
func TestConfigurationThatIsAPipe(t *testing.T) {
	p := newPlace(t)
	if err := syscall.Mkfifo(p.ws.ConfigFile(), 0o600); err != nil {
		t.Skip(err)
	}
	if _, err := p.loadConfig(nil); !errors.Is(err, errIrregular) {
		t.Errorf("got %v", err)
	}
}

// TestFindAbove checks that above the work tree, Find accepts only this user's folders that no other user can write to.
// Passed must list the rejected ones.
func TestFindAbove(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can give files away")
	}
	give := func(uid, gid int) func(string) error {
		return func(path string) error { return os.Lchown(path, uid, gid) }
	}
	mode := func(mode os.FileMode) func(string) error {
		return func(path string) error { return os.Chmod(path, mode) }
	}
	const stranger = 65534
	for name, tc := range map[string]struct {
		// above changes the .perlica_config above the working directory.
		above func(path string) error
		// git is the folder that gets a .git.
		git string
		// owner is the uid of the owner of that .git.
		owner int
		taken bool
	}{
		"mine":                       {nil, "", 0, true},
		"another user's":             {give(stranger, -1), "", 0, false},
		"for all":                    {mode(0o777), "", 0, false},
		"for all, sticky":            {mode(os.ModeSticky | 0o777), "", 0, false},
		"for my group, as umask 002": {mode(0o775), "", 0, true},
		"for another group": {func(p string) error { return errors.Join(give(0, 100)(p), mode(0o775)(p)) }, "", 0,
			false},
		"another group's, not for it": {give(0, 100), "", 0, true},
		"a file of another user": {func(p string) error {
			return errors.Join(os.Remove(p), os.WriteFile(p, nil, 0o600), give(stranger, -1)(p))
		}, "", 0, false},
		"a link of another user": {func(p string) error {
			return errors.Join(os.Rename(p, p+".real"), os.Symlink(filepath.Base(p)+".real", p), give(stranger, -1)(p))
		}, "", 0, false},
		"mine, above a work tree":         {nil, "a/b", 0, false},
		"mine, in a work tree":            {nil, "a", 0, true},
		"another's, in its work tree":     {give(stranger, -1), "a", 0, true},
		"mine, and a .git put there":      {nil, "a", stranger, true},
		"another's with a .git put there": {give(stranger, -1), "a", stranger, false},
	} {
		base := t.TempDir()
		dir, path := filepath.Join(base, "a", "b"), filepath.Join(base, "a", DirName)
		makePath(t, dir, true)
		makePath(t, path, true)
		if err := os.Chmod(path, 0o755); err != nil {
			t.Fatal(err)
		}
		if tc.git != "" {
			makePath(t, filepath.Join(base, tc.git, ".git"), true)
			if err := os.Chown(filepath.Join(base, tc.git, ".git"), tc.owner, -1); err != nil {
				t.Skip(err)
			}
		}
		if tc.above != nil {
			if err := tc.above(path); err != nil {
				t.Skip(err)
			}
		}
		for _, home := range []string{"", base} {
			ws, err := Find(dir, home)
			want := dir
			if tc.taken {
				want = filepath.Dir(dir)
			}
			if err != nil || ws.Root != want || ws.Exists != tc.taken || (len(ws.Passed) == 0) != (tc.taken || tc.git == "a/b") {
				t.Errorf("%s, home %q: got %+v, %v", name, home, ws, err)
			}
			if ws, err := At(filepath.Dir(dir)); name != "a file of another user" && (err != nil || !ws.Exists) {
				t.Errorf("%s: named: got %+v, %v", name, ws, err)
			}
		}
	}
}

// TestFindInASharedFolder checks that root may work in another user's checkout. But root must not use another user's
// workspace in a directory such as /tmp.
func TestFindInASharedFolder(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can give files away")
	}
	base := t.TempDir()
	dir := filepath.Join(base, "tmp")
	makePath(t, filepath.Join(dir, DirName), true)
	if err := errors.Join(os.Chown(filepath.Join(dir, DirName), 65534, -1), os.Chmod(dir, 0o777)); err != nil {
		t.Skip(err)
	}
	if _, err := Find(dir, ""); err != nil {
		t.Errorf("a checkout: %v", err)
	}
	if err := os.Chmod(dir, os.ModeSticky|0o777); err != nil {
		t.Fatal(err)
	}
	var refused *WorkspaceError
	if _, err := Find(dir, ""); !errors.As(err, &refused) {
		t.Errorf("a shared folder: %v", err)
	}
	if _, err := At(dir); err != nil {
		t.Errorf("named: %v", err)
	}
}
