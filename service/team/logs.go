package team

import (
	"context"
	"errors"

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

// Logs returns readers of the copies of the logs of those workers who are, or were, members that are pinned here, by name.
// They can be used as long as the team is open.
func (t *Team) Logs(ctx context.Context) (logs []*copies.Reader, err error) {
	list, err := copies.List(ctx, t.Hub)
	if err != nil {
		return nil, err
	}
	for _, c := range list {
		if _, ok := t.member(c.Worker); ok { // then its name has the form of one
			logs = append(logs, copies.NewReader(t.Hub, c.Worker, t.views))
		}
	}
	return logs, nil
}
