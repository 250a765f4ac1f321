package project

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"

	"github.com/perlica/perlica/kernel/config"
	"github.com/perlica/perlica/kernel/logtrust"
)

// Used is a context of a project in which this user has worked.
type Used struct {
	Dir     string `json:"project"` // absolute path without symbolic links
	Context string `json:"context"`
	Log     string `json:"log"` // path of the log's file
	// Origin is the name of the log. It is empty until the log's second use.
	Origin string `json:"origin,omitempty"`
	// Gone means that the log's file no longer exists.
	Gone bool `json:"gone"`
}

// List returns the contexts of the user's projects, ordered by directory. These are the projects with a log that the
// user opened for work or trusted. It does not remove missing logs, because only the user knows whether a log will come
// back.
func List(dirs config.Dirs) (list []Used, err error) {
	logs, err := logtrust.Store{Dir: knownLogs(dirs)}.Logs()
	for _, l := range logs {
		if root, context, ok := contextOf(l.Path); ok {
			_, gone := os.Stat(l.Path) // a log that cannot be accessed may exist
			list = append(list, Used{root, context, l.Path, l.Origin, gone != nil && !errors.Is(gone, fs.ErrPermission)})
		}
	}
	return list, err
}

// contextOf returns the project's directory and the name of the context with the log at path. ok is false if the path
// is not the path of a context's log. The path must not contain symbolic links.
func contextOf(path string) (root, context string, ok bool) {
	dir, file := filepath.Split(path)
	contexts, context := filepath.Split(filepath.Clean(dir))
	folder := filepath.Dir(filepath.Clean(contexts))
	if file != "eventlog.db" || filepath.Base(contexts) != "contexts" {
		return "", "", false
	}
	for root = filepath.Dir(folder); ; root = filepath.Dir(root) {
		real, err := filepath.EvalSymlinks(filepath.Join(root, config.DirName)) // the folder may be a link
		switch {
		case filepath.Base(folder) == config.DirName, err == nil && real == folder:
			return root, context, true
		case root == filepath.Dir(root):
			return "", "", false
		}
	}
}

// User returns the project of the user's own log, and loads the configuration as Find does. That log belongs to no
// project and lies in the state directory.
func User(dir string, environ []string, settings map[string]string) (*Project, error) {
	settings = maps.Clone(settings)
	if settings == nil {
		settings = map[string]string{}
	}
	return load(dir, environ, settings, func(dirs config.Dirs) (ws config.Workspace, err error) {
		ws, settings["context.default_id"] = dirs.Own()
		return ws, nil
	})
}

// ForTeam returns the project in which this machine works for a team. It works like Find, with one difference: the log
// is the team's context in the state directory, and all directories share it.
func ForTeam(dir string, environ []string, settings map[string]string, team string) (*Project, error) {
	settings = maps.Clone(settings)
	if settings == nil {
		settings = map[string]string{}
	}
	settings["context.default_id"] = team
	p, err := Find(dir, environ, settings)
	p.team = true
	return p, err
}

// Team returns the same project as ForTeam, for a caller that only needs the team's log. The settings of dir's
// project do not matter.
func Team(dir string, environ []string, team string) (*Project, error) {
	p, err := load(dir, environ, map[string]string{"context.default_id": team},
		func(dirs config.Dirs) (config.Workspace, error) { return dirs.Teams(), nil })
	p.team = true
	return p, err
}

// isUser reports whether p is a project that User returned.
func (p *Project) isUser() bool {
	ws, context := p.Dirs.Own()
	return p.Workspace.Root == ws.Root && p.Config.ContextID == context
}
