package schedule

import (
	"context"
	"slices"
	"time"

	"github.com/perlica/perlica/eventlog"
	"github.com/perlica/perlica/eventlog/message"
	"github.com/perlica/perlica/kernel/project"
)

// Slash returns the function of the command /schedules in the project that load returns. It calls load for each
// command, so a changed configuration counts at once. It pauses or resumes the schedule with this id, if the parameter
// "verb" is "pause" or "resume". It returns a line for this schedule, or for all if the verb is empty.
func Slash(log *eventlog.Log, load func() (*project.Project, error),
	now func() time.Time) func(ctx context.Context, verb, id, by string) ([]*message.Text, error) {
	return func(ctx context.Context, verb, id, by string) ([]*message.Text, error) {
		p, err := load()
		if err != nil {
			return nil, err
		}
		list, err := Of(p)
		if err != nil {
			return nil, err
		}
		paths, err := p.Workspace.Context(p.Config.ContextID)
		if err != nil {
			return nil, err
		}
		if verb != "" {
			list = slices.DeleteFunc(list, func(s Schedule) bool { return s.ID != id })
			if len(list) == 0 {
				return nil, unknownID.With(id)
			}
		}
		switch verb {
		case "pause":
			err = Pause(ctx, log, list[0], by)
		case "resume":
			err = Resume(ctx, log, list[0], by, now())
		}
		if err != nil {
			return nil, err
		}
		all, err := Looker{log, paths.Locks}.Look(ctx, list, now())
		lines := make([]*message.Text, len(all))
		for i, o := range all {
			lines[i] = o.line()
		}
		return lines, err
	}
}

// line returns a sentence with the next time and the last outcome.
func (o Overview) line() *message.Text {
	at := func(t time.Time) string { return t.In(o.Zone()).Format("2006-01-02 15:04 -0700") }
	next := noNext
	switch {
	case o.Paused:
		next = isPaused
	case !o.Due.IsZero():
		next = nextAt.With(at(o.Due))
	}
	if o.Last.IsZero() {
		return line.With("`"+o.ID+"`", next)
	}
	outcome := OutcomeWords(o.Outcome)
	if o.Reason != nil {
		outcome = line.With(outcome, o.Reason)
	}
	return lineLast.With("`"+o.ID+"`", next, at(o.Last), outcome)
}
