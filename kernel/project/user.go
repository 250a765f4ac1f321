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

// Used is a context of a project in which this user worked.
type Used struct {
	Dir     string `json:"project"` // absolute, without links
	Context string `json:"context"`
	Log     string `json:"log"` // the file
	// Origin is the log's name. It is known after the log's second use.
	Origin string `json:"origin,omitempty"`
	// Gone says that the file no longer exists.
	Gone bool `json:"gone"`
}

// List returns the contexts of all projects whose logs this user opened for work or trusted, by directory. It
// changes nothing: only the user knows whether a missing log will come back.
func List(dirs config.Dirs) (list []Used, err error) {
	logs, err := logtrust.Store{Dir: knownLogs(dirs)}.Logs()
	for _, l := range logs {
		if root, context, ok := contextOf(l.Path); ok {
			_, gone := os.Stat(l.Path) // an inaccessible log may exist
			list = append(list, Used{root, context, l.Path, l.Origin, gone != nil && !errors.Is(gone, fs.ErrPermission)})
		}
	}
	return list, err
}

// contextOf returns the project's directory and the context whose log is the file at path. ok is false if the path
// is not the path of a log. The path must not contain links.
func contextOf(path string) (root, context string, ok bool) {
	dir, file := filepath.Split(path)
	contexts, context := filepath.Split(filepath.Clean(dir))
	folder := filepath.Dir(filepath.Clean(contexts))
	if file != "eventlog.db" || filepath.Base(contexts) != "contexts" {
		return "", "", false
	}
	for root = filepath.Dir(folder); ; root = filepath.Dir(root) {
		real, err := filepath.EvalSymlinks(filepath.Join(root, config.DirName)) // a link inside the project may lead to it
		switch {
		case filepath.Base(folder) == config.DirName, err == nil && real == folder:
			return root, context, true
		case root == filepath.Dir(root):
			return "", "", false
		}
	}
}

// User is Find for the user's own log, which belongs to no project and lies in the state directory.
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

// ForTeam is Find for work for a team. The agents, the settings and the rules come from the directory. The record
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

// Team is ForTeam without a directory: for the team's log itself.
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
