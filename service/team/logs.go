package team

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/perlica/perlica/kernel/project"
	"github.com/perlica/perlica/service/team/copies"
)

// Use calls f with the team whose hub the settings of a project name, opened as the member that this machine is.
func Use(ctx context.Context, p *project.Project, version string, f func(*Team) error) error {
	opt, err := OptionsOf(p, "", version)
	if err != nil {
		return err
	}
	t, err := Open(ctx, opt)
	if err != nil {
		return err
	}
	return errors.Join(f(t), t.Close())
}

// Log is the copy of a worker's log as it is on the hub now, which is behind the log: for what is shown. Whether it is
// the worker's log says a [copies.Keeper]. It can be read as long as its team is open.
type Log struct {
	Worker string
	*copies.Reader

	views string
}

// Logs returns the copies of the logs of those workers who are, or were, members that are pinned here, by name.
func (t *Team) Logs(ctx context.Context) (logs []Log, err error) {
	list, err := copies.List(ctx, t.Hub)
	if err != nil {
		return nil, err
	}
	for _, c := range list {
		if _, ok := t.member(c.Worker); ok { // its name has the form of one
			logs = append(logs, Log{c.Worker, copies.NewReader(t.Hub, c.Worker), t.views})
		}
	}
	return logs, nil
}

// View is the path of a view of the copy with this name, in a folder that is there. It lies on this machine; delete it and
// it comes back.
func (l Log) View(name string) (string, error) {
	return filepath.Join(l.views, l.Worker+"."+name), os.MkdirAll(l.views, 0o700)
}
