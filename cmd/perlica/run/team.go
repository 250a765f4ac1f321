package run

import (
	"context"

	"github.com/perlica/perlica/cmd/perlica/dialog"
	"github.com/perlica/perlica/cmd/perlica/frame"
	"github.com/perlica/perlica/kernel"
	"github.com/perlica/perlica/kernel/record"
	"github.com/perlica/perlica/service/team"
)

// answerByTeam sends the input to the team and waits for the result.
func (i *invocation) answerByTeam(ctx context.Context) (res record.Result, err error) {
	d, err := i.teamFlags.Draft(i.project, i.flags, i.text)
	if err != nil {
		return res, err
	}
	opening, giveUp := context.WithCancel(ctx) // A stop before the input is submitted takes effect at once.
	defer giveUp()
	i.stop.Tell(giveUp)
	err = team.Use(opening, i.project, i.Version, func(t *team.Team) error {
		if err := dialog.ContinueTeamSession(opening, t, &d, i.flags.Session, i.say.Note); err != nil {
			return err
		}
		ask := dialog.NewAsker(i.App, nil, i.say)
		defer ask.Close()
		here := dialog.TeamTerminal{Say: i.say, Ask: ask, Stop: i.stop, User: frame.UserName(i.Getenv)}
		res, _, err = here.Answer(ctx, t, d)
		return err
	})
	if err != nil && opening.Err() != nil && ctx.Err() == nil {
		select {
		case s := <-i.stop.First: // If there is no value, the stop was used to cancel the submitted input.
			err = &kernel.StoppedError{Stop: s}
		default:
		}
	}
	return res, err
}
