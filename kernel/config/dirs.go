package config

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"

	"github.com/perlica/perlica/eventlog/disk"
)

// Dirs are the user's own directories. They may not exist yet.
type Dirs struct {
	Home    string // where the search for a workspace ends; "" when unknown
	Config  string // config.toml
	State   string // keys, trust, chat history, what belongs to no project
	Runtime string // sockets; gone after a restart
}

// ErrNoHome says that nothing tells where the user's directories are.
var ErrNoHome = errors.New("config: the home directory is not known; set HOME, or PERLICA_HOME, or both XDG_CONFIG_HOME and XDG_STATE_HOME")

// UserDirs finds the user's directories: below PERLICA_HOME if it is set, else where
// the XDG variables say, else where the system's habit has them.
func UserDirs(getenv func(string) string) (Dirs, error) {
	return userDirs(runtime.GOOS, getenv)
}

func userDirs(goos string, getenv func(string) string) (Dirs, error) {
	home := getenv("HOME")
	if goos == "windows" {
		home = getenv("USERPROFILE")
	}
	if home != "" && !filepath.IsAbs(home) && getenv(homeVariable) == "" { // "~" in quotes would be a folder of the project
		return Dirs{}, fmt.Errorf("config: the home directory is not an absolute path: %s", printable(home))
	}
	if own := getenv(homeVariable); own != "" {
		if !filepath.IsAbs(own) {
			return Dirs{}, fmt.Errorf("config: %s is not an absolute path: %s", homeVariable, printable(own))
		}
		return Dirs{home, filepath.Join(own, "config"), filepath.Join(own, "state"), filepath.Join(own, "run")}, nil
	}
	d := Dirs{Home: home}
	d.Config, d.State, d.Runtime = systemDirs(goos, home, getenv)
	for dir, variable := range map[*string]string{
		&d.Config: "XDG_CONFIG_HOME", &d.State: "XDG_STATE_HOME", &d.Runtime: "XDG_RUNTIME_DIR",
	} {
		// The XDG specification has relative paths ignored.
		if xdg := getenv(variable); filepath.IsAbs(xdg) {
			*dir = filepath.Join(xdg, "perlica")
		}
	}
	if d.Config == "" || d.State == "" {
		return Dirs{}, ErrNoHome
	}
	d.Runtime = cmp.Or(d.Runtime, filepath.Join(d.State, "run"))
	return d, nil
}

// systemDirs is the habit of each system; what cannot be known is "".
func systemDirs(goos, home string, getenv func(string) string) (config, state, run string) {
	below := func(base string, elem ...string) string {
		if base == "" {
			return ""
		}
		return filepath.Join(append([]string{base}, elem...)...)
	}
	switch goos {
	case "darwin", "ios":
		support := below(home, "Library", "Application Support", "perlica")
		return support, below(support, "state"), below(getenv("TMPDIR"), "perlica")
	case "windows":
		local := below(getenv("LOCALAPPDATA"), "perlica")
		return below(getenv("APPDATA"), "perlica"), below(local, "state"), below(local, "run")
	}
	return below(home, ".config", "perlica"), below(home, ".local", "state", "perlica"), ""
}

// KeyDir is the folder of the keys that sign checkpoints of the user's logs.
func (d Dirs) KeyDir() string { return filepath.Join(d.State, "keys") }

// PushDir is the folder of the key and the subscriptions with which browsers are woken.
func (d Dirs) PushDir() string { return filepath.Join(d.State, "push") }

// ViewKey returns the secret that seals the views in the folders of projects, and makes it first if there is none.
// If the user's state can hold none, each call returns another secret: every view is then made anew.
func (d Dirs) ViewKey() []byte {
	path := filepath.Join(d.State, "views.key")
	key, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) && d.State != "" {
		made := make([]byte, viewKeyBytes)
		_, _ = rand.Read(made) // it does not fail
		if os.MkdirAll(d.State, 0o700) == nil {
			_ = disk.WriteFile(path, made, 0o600, os.Link) // another process may be faster
		}
		key, err = os.ReadFile(path)
	}
	if err != nil || len(key) != viewKeyBytes || d.State == "" {
		key = make([]byte, viewKeyBytes)
		_, _ = rand.Read(key) // it does not fail
	}
	return key
}

const viewKeyBytes = 32

// ConfigFile is the user's configuration file.
func (d Dirs) ConfigFile() string { return filepath.Join(d.Config, "config.toml") }

// Own is the workspace below the user's state, and the one context in it, of what belongs to no
// project. It has no configuration.
func (d Dirs) Own() (ws Workspace, context string) { return Workspace{Root: d.State}, "user" }

// Teams is the workspace below the user's state of what this machine does for teams: a context for each, of its name.
// It has no configuration.
func (d Dirs) Teams() Workspace { return Workspace{Root: filepath.Join(d.State, "teams")} }

// EnsureTeam makes the directories of a team's context, as Workspace.Ensure does.
func (d Dirs) EnsureTeam(name string) (ContextPaths, error) {
	if d.State == "" {
		return ContextPaths{}, ErrNoHome
	}
	ws := d.Teams()
	if err := os.MkdirAll(ws.Root, 0o700); err != nil {
		return ContextPaths{}, err
	}
	return ws.Ensure(name)
}

// EnsureOwn makes the directories of the user's own context, as Workspace.Ensure does.
func (d Dirs) EnsureOwn() (ContextPaths, error) {
	if d.State == "" {
		return ContextPaths{}, ErrNoHome
	}
	if err := os.MkdirAll(d.State, 0o700); err != nil {
		return ContextPaths{}, err
	}
	ws, context := d.Own()
	return ws.Ensure(context)
}
