package watch

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/perlica/perlica/cmd/perlica/cli"
	"github.com/perlica/perlica/cmd/perlica/exitcode"
	"github.com/perlica/perlica/kernel"
	"github.com/perlica/perlica/kernel/sessions"
	"github.com/perlica/perlica/service/team"
	"github.com/perlica/perlica/service/team/copies"
)

// watchTeam follows a session of a worker's.
func (a *app) watchTeam(ctx context.Context, args []string, turns int, thoughts bool) error {
	p, err := a.Locate(nil)
	if err != nil {
		return err
	}
	return untilStopped(ctx, func(ctx context.Context) error {
		return team.Use(ctx, p, a.Version, func(t *team.Team) error {
			logs, err := t.Logs(ctx)
			if err != nil {
				return err
			}
			s, l, err := sessionInTeam(ctx, logs, args)
			if err != nil {
				return err
			}
			return a.follow(ctx, s, l.Worker, thoughts, func(ctx context.Context) iter.Seq2[kernel.Notice, error] {
				return kernel.Follow(ctx, l, "", s.ID, turns)
			})
		})
	})
}

// sessionInTeam finds the session that is named, or the one of all workers that was used last.
func sessionInTeam(ctx context.Context, logs []*copies.Reader, args []string) (found sessions.Session, at *copies.Reader, err error) {
	for _, l := range logs {
		s, err := sessionIn(ctx, l, args)
		switch {
		case errors.Is(err, sessions.ErrNoSession):
		case err != nil:
			return found, nil, fmt.Errorf("the copy of %s: %w", l.Worker, err)
		case at == nil || len(args) == 0 && s.Used.After(found.Used):
			found, at = s, l
		case len(args) > 0:
			return found, nil, fmt.Errorf("%w: %s, in the copies of %s and %s", sessions.ErrAmbiguous, args[0], at.Worker, l.Worker)
		}
	}
	if at == nil {
		return found, nil, exitcode.WithHint(errors.New("no copy of a worker's log has such a session"), "'perlica session list --team --all' lists them")
	}
	return found, at, nil
}

func sessionIn(ctx context.Context, l *copies.Reader, args []string) (s sessions.Session, err error) {
	path, err := l.View("sessions.db")
	if err != nil {
		return s, err
	}
	err = cli.ViewSessionsAt(ctx, l, path, func(view *sessions.View) (err error) {
		if len(args) > 0 {
			s, err = view.Find(ctx, args[0])
		} else {
			s, err = view.Latest(ctx)
		}
		return err
	})
	return s, err
}
