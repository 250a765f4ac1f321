package run

import (
	"context"

	"github.com/perlica/perlica/cmd/perlica/dialog"
	"github.com/perlica/perlica/cmd/perlica/frame"
	"github.com/perlica/perlica/kernel"
	"github.com/perlica/perlica/kernel/project"
	"github.com/perlica/perlica/kernel/record"
	"github.com/perlica/perlica/service/team"
)

// answerByTeam sends the input to the team and waits for its result.
func (a *app) answerByTeam(ctx context.Context, p *project.Project, f dialog.Flags, tf dialog.TeamFlags, text string,
	stop *frame.Stopper, say *dialog.Printer) (res record.Result, err error) {
	d, err := tf.Draft(p, f, text)
	if err != nil {
		return res, err
	}
	opening, giveUp := context.WithCancel(ctx) // Before the input is submitted, a stop takes effect at once.
	defer giveUp()
	stop.Tell(giveUp)
	err = team.Use(opening, p, a.Version, func(t *team.Team) error {
		if err := dialog.ContinueTeamSession(opening, t, &d, f.Session, say.Note); err != nil {
			return err
		}
		ask := dialog.NewAsker(a.App, nil, say)
		defer ask.Close()
		res, _, err = dialog.TeamTerminal{Say: say, Ask: ask, Stop: stop, User: frame.UserName(a.Getenv)}.Answer(ctx, t, d)
		return err
	})
	if err != nil && opening.Err() != nil && ctx.Err() == nil {
		select {
		case s := <-stop.First: // Otherwise the stop ends a submitted input.
			err = &kernel.StoppedError{Stop: s}
		default:
		}
	}
	return res, err
}
