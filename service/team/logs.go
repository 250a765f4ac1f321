package team

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/kernel/project"
	"github.com/perlica/perlica/kernel/sessions"
	"github.com/perlica/perlica/service/team/hub"
)

// Use calls the function f with the team in the settings of a project. The team is opened as this machine's member.
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

// Logs returns readers of the copies of workers' logs, by the workers' names. The workers are present or former members
// that this machine has pinned. They can be used while the team is open.
func (t *Team) Logs(ctx context.Context) ([]*hub.CopyReader, error) {
	logs, err := hub.CopyReaders(ctx, t.Hub, t.views)
	return slices.DeleteFunc(logs, func(l *hub.CopyReader) bool {
		_, pinned := t.member(l.Worker)
		return !pinned || hub.CheckName(l.Worker) != nil // omit bad names: a name becomes part of a file name
	}), err
}

// noSession says that no copy of a worker's log has the wanted session. It is a sessions.ErrNoSession.
type noSession struct{}

func (noSession) Error() string        { return "no copy of a worker's log has such a session" }
func (noSession) Is(target error) bool { return target == sessions.ErrNoSession }

// Hint returns the command that lists the sessions.
func (noSession) Hint() string { return "'perlica session list --team' lists them" }

// otherProject says that the wanted session belongs to another project. It is a sessions.ErrNoSession.
type otherProject struct {
	session event.SessionID
	of, not string
}

func (e *otherProject) Error() string {
	return fmt.Sprintf("the session %s is one of the project %s, not of %s", e.session, e.of, e.not)
}

func (e *otherProject) Is(target error) bool { return target == sessions.ErrNoSession }

// Hint returns the option that continues the session.
func (e *otherProject) Hint() string { return "--team-project " + e.of + " goes on with it" }

// FindSession finds a session by its id, the beginning of its id, or its name. It also returns the
// session's copy. An empty name means the last used session of all workers. A session of another
// project is an error unless project is empty. FindSession omits edited copies and calls note for
// each. Its errors wrap sessions.ErrNoSession and sessions.ErrAmbiguous.
func (t *Team) FindSession(ctx context.Context, name, project string,
	note func(string)) (found sessions.Session, at *hub.CopyReader, err error) {
	logs, err := t.Logs(ctx)
	if err != nil {
		return found, nil, err
	}
	for _, l := range logs {
		s, err := sessionIn(ctx, l, name)
		switch {
		case errors.Is(err, sessions.ErrNoSession):
		case errors.Is(err, hub.ErrEdited):
			note("left out: " + l.Worker + ": " + err.Error())
		case err != nil:
			return found, nil, fmt.Errorf("the copy of %s: %w", l.Worker, err)
		case at == nil || name == "" && s.Used.After(found.Used):
			found, at = s, l
		case name != "":
			return found, nil, fmt.Errorf("%w: %s, in the copies of %s and %s", sessions.ErrAmbiguous, name, at.Worker, l.Worker)
		}
	}
	if at == nil {
		return found, nil, noSession{}
	}
	of, err := projectOf(ctx, at, found.ID)
	if err == nil && project != "" && of != "" && of != project {
		err = &otherProject{found.ID, of, project}
	}
	return found, at, err
}

func sessionIn(ctx context.Context, l *hub.CopyReader, name string) (s sessions.Session, err error) {
	path, err := l.View("sessions.db")
	if err != nil {
		return s, err
	}
	view, remove, err := project.OpenView(path, func(path string) (*sessions.View,
		error) {
		return sessions.Open(ctx, l, path, nil)
	})
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, view.Close()); remove() }()
	if name == "" {
		return view.Latest(ctx)
	}
	return view.Find(ctx, name)
}
