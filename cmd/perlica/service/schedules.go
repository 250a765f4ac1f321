package service

import (
	"context"
	"log/slog"
	"strings"
	"sync"

	"github.com/perlica/perlica/cmd/perlica/frame"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/kernel"
	"github.com/perlica/perlica/kernel/flow"
	"github.com/perlica/perlica/kernel/project"
	"github.com/perlica/perlica/kernel/record"
	"github.com/perlica/perlica/kernel/report"
	"github.com/perlica/perlica/kernel/schedule"
)

// startSchedules sends the inputs of a project's schedules at their planned times, until the function stop is
// called. The function "stop" returns when all calls have ended, after the bridge's time of grace at the latest. The
// function "load" reads the project again, so that changed schedules take effect.
func startSchedules(p *project.Project, runner *kernel.Runner, load func() (*project.Project, error),
	log *slog.Logger) (stop func()) {
	work := schedule.Work{Runner: runner, Load: load, Grace: p.Config.Service.Grace, Stay: true,
		Driven: func(c schedule.Call, s *flow.State) {
			s.Alive = false
			log.Info("schedule "+c.ID+": "+s.Outcome(), "flow", s.ID)
		},
		Answered: func(c schedule.Call, res record.Result, err error) {
			if err == nil { // If an input was not accepted, an event on the log says so.
				log.Info("schedule "+c.ID+": "+string(res.Outcome), "run", frame.ShortID(res.Run))
			}
		}}
	k, err := work.Keeper(context.Background(), p)
	if err != nil {
		log.Warn("the schedules are not kept", "error", err.Error())
		return func() {}
	}
	told := ""
	k.Show = func(e event.Event, err error) {
		switch {
		case err == nil:
			log.Info(strings.Replace(string(e.Type), ".", " ", 1) + ": " + report.Summarize(e, nil))
		case err.Error() != told: // A lasting mistake causes the same error at each look, so it is printed once.
			told = err.Error()
			log.Warn("the schedules wait", "error", told)
		}
	}
	ctx, end := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { k.Run(ctx) })
	return func() { end(); wg.Wait() }
}
