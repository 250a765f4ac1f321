package watch

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/perlica/perlica/cmd/perlica/cli"
	"github.com/perlica/perlica/cmd/perlica/exitcode"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/kernel"
	"github.com/perlica/perlica/kernel/sessions"
	"github.com/perlica/perlica/service/team"
	"github.com/perlica/perlica/service/team/copies"
	"github.com/perlica/perlica/service/team/hub"
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
			s, l, err := sessionInTeam(ctx, logs, args, a.Note)
			if err != nil {
				return err
			}
			return a.follow(ctx, s, l.Worker, thoughts, func(ctx context.Context) iter.Seq2[kernel.Notice, error] {
				return kernel.Follow(ctx, patient{l, a.Note, new(bool)}, "", s.ID, turns)
			})
		})
	})
}

// sessionInTeam finds the session that is named, or the one of all workers that was used last.
func sessionInTeam(ctx context.Context, logs []*copies.Reader, args []string, note func(string)) (found sessions.Session, at *copies.Reader, err error) {
	for _, l := range logs {
		s, err := sessionIn(ctx, l, args)
		switch {
		case errors.Is(err, sessions.ErrNoSession):
		case errors.Is(err, copies.ErrEdited):
			note("left out: " + l.Worker + ": " + err.Error())
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
		s, err = named(ctx, view, args)
		return err
	})
	return s, err
}

// patient reads a copy through losses of the connection to its hub, which it tells of once each.
type patient struct {
	*copies.Reader
	note func(string)
	away *bool
}

// again waits after an error of the hub, and reports whether to try again.
func (p patient) again(ctx context.Context, err error) bool {
	var version *hub.VersionError
	if err == nil || ctx.Err() != nil || errors.Is(err, copies.ErrEdited) || errors.Is(err, hub.ErrNotAllowed) || errors.Is(err, hub.ErrNoTeam) || errors.As(err, &version) {
		if err == nil && *p.away {
			*p.away = false
			p.note("the hub answers again")
		}
		return false
	}
	if !*p.away {
		*p.away = true
		p.note("the hub does not answer, and this waits: " + err.Error())
	}
	select {
	case <-ctx.Done():
	case <-time.After(time.Second):
	}
	return true
}

// Last returns the newest event that the query selects.
func (p patient) Last(ctx context.Context, q event.Query) (e event.Event, ok bool, err error) {
	for again := true; again; again = p.again(ctx, err) {
		e, ok, err = p.Reader.Last(ctx, q)
	}
	return e, ok, err
}

// Events yields the events that the query selects, each once.
func (p patient) Events(ctx context.Context, q event.Query) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		for {
			var failed error
			for e, err := range p.Reader.Events(ctx, q) {
				if failed = err; err != nil {
					break
				}
				if !yield(e, nil) {
					return
				}
				if q.Newest {
					q.Until = e.Seq - 1
				} else {
					q.After = e.Seq
				}
				if q.Limit > 0 {
					if q.Limit--; q.Limit == 0 {
						return
					}
				}
			}
			if !p.again(ctx, failed) {
				if failed != nil {
					yield(event.Event{}, failed)
				}
				return
			}
		}
	}
}
