package team

import (
	"context"
	"errors"
	"slices"

	"github.com/perlica/perlica/kernel/project"
	"github.com/perlica/perlica/service/team/copies"
	"github.com/perlica/perlica/service/team/proposal"
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
func (t *Team) Logs(ctx context.Context) ([]*copies.Reader, error) {
	logs, err := copies.Readers(ctx, t.Hub, t.views)
	return slices.DeleteFunc(logs, func(l *copies.Reader) bool {
		_, pinned := t.member(l.Worker)
		return !pinned || proposal.CheckName(l.Worker) != nil // it becomes a part of a file's name
	}), err
}
