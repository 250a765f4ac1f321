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
	// Home is the directory at which the search for a workspace ends. It is "" if the home directory is unknown.
	Home string
	// Config is the directory of config.toml.
	Config string
	// State is the directory of the keys, the trust files, the chat history, and the user's own log.
	State string
	// Runtime is the directory of the sockets. The system empties it at a restart.
	Runtime string
}

// ErrNoHome means that no environment variable names the user's directories.
var ErrNoHome = errors.New(
	"config: the home directory is not known; set HOME, or PERLICA_HOME, or both XDG_CONFIG_HOME and XDG_STATE_HOME")

// UserDirs returns the user's directories. They lie below PERLICA_HOME if it is set, otherwise where the XDG
// variables say, otherwise at the system's usual places.
func UserDirs(getenv func(string) string) (Dirs, error) {
	return userDirs(runtime.GOOS, getenv)
}

func userDirs(goos string, getenv func(string) string) (Dirs, error) {
	home := getenv("HOME")
	if goos == "windows" {
		home = getenv("USERPROFILE")
	}
	// Refuse a relative path, such as "~" in quotes, because it would become a folder of the project.
	if home != "" && !filepath.IsAbs(home) && getenv(homeVariable) == "" {
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
		// The XDG specification ignores relative paths.
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

// systemDirs returns the usual directories of an operating system. An unknown directory is "".
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

// KeyDir returns the folder of the keys that sign the checkpoints of the user's logs.
func (d Dirs) KeyDir() string { return filepath.Join(d.State, "keys") }

// PushDir returns the folder with the key and the subscriptions for web push messages.
func (d Dirs) PushDir() string { return filepath.Join(d.State, "push") }

// ViewKey returns the secret that seals the database views in the folders of projects. The first call creates it. If
// the state directory cannot store the secret, each call returns a new one. Every view is then built again.
func (d Dirs) ViewKey() []byte {
	path := filepath.Join(d.State, "views.key")
	key, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) && d.State != "" {
		made := make([]byte, viewKeyBytes)
		_, _ = rand.Read(made) // rand.Read never fails
		if os.MkdirAll(d.State, 0o700) == nil {
			_ = disk.WriteFile(path, made, 0o600, os.Link) // a failure shows in the following read
		}
		key, err = os.ReadFile(path)
	}
	if err != nil || len(key) != viewKeyBytes || d.State == "" {
		key = make([]byte, viewKeyBytes)
		_, _ = rand.Read(key) // rand.Read never fails
	}
	return key
}

const viewKeyBytes = 32

// ConfigFile returns the path of the user's configuration file.
func (d Dirs) ConfigFile() string { return filepath.Join(d.Config, "config.toml") }

// Own returns the workspace of the user's own log and the name of its only context. That log has the events that belong
// to no project. The workspace lies in the state directory and has no configuration.
func (d Dirs) Own() (ws Workspace, context string) { return Workspace{Root: d.State}, "user" }

// Teams returns the workspace for this machine's work for teams. For each team it has one context with the team's name.
// It has no configuration.
func (d Dirs) Teams() Workspace { return Workspace{Root: filepath.Join(d.State, "teams")} }

// EnsureTeam creates the directories of a team's context, as Workspace.Ensure does.
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

// EnsureOwn creates the directories of the user's own context, as Workspace.Ensure does.
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
