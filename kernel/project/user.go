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
	Dir     string `json:"project"` // absolute, links followed
	Context string `json:"context"`
	Log     string `json:"log"`              // the file
	Origin  string `json:"origin,omitempty"` // the log's name, from its second use on
	Gone    bool   `json:"gone"`             // the file is not there any more
}

// List returns the contexts of all projects whose logs this user opened for work or trusted, by
// directory. It changes nothing: of what is gone only the user knows whether it comes back.
func List(dirs config.Dirs) (list []Used, err error) {
	logs, err := logtrust.Store{Dir: knownLogs(dirs)}.Logs()
	for _, l := range logs {
		if root, context, ok := contextOf(l.Path); ok {
			_, gone := os.Stat(l.Path) // what may not be looked at may be there
			list = append(list, Used{root, context, l.Path, l.Origin, gone != nil && !errors.Is(gone, fs.ErrPermission)})
		}
	}
	return list, err
}

// contextOf returns the project's directory and the context of which a file would be the log, if its
// name is that of one. Links on the way to path must have been followed.
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

// User is Find for what belongs to no project: the log below the user's own state.
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

// ForTeam is Find for work that is done for a team: the agents, the settings and the rules are those of the directory,
// and the record is the context of the team's name below the user's own state, which all directories share.
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
	p, err := load(dir, environ, map[string]string{"context.default_id": team}, func(dirs config.Dirs) (config.Workspace, error) { return dirs.Teams(), nil })
	p.team = true
	return p, err
}

// isUser reports whether p is what User returns.
func (p *Project) isUser() bool {
	ws, context := p.Dirs.Own()
	return p.Workspace.Root == ws.Root && p.Config.ContextID == context
}
