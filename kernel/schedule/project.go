package schedule

import (
	"context"
	"errors"
	"time"

	"github.com/perlica/perlica/kernel"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/kernel/flow"
	"github.com/perlica/perlica/kernel/program"
	"github.com/perlica/perlica/kernel/project"
	"github.com/perlica/perlica/kernel/record"
	"github.com/perlica/perlica/policy"
)

// Work is the work of a Keeper in a project.
type Work struct {
	Runner *kernel.Runner
	// Load loads the project again, so that a changed configuration takes effect at once. A project's own schedules are
	// used only if their file is trusted.
	Load func() (*project.Project, error)
	// Grace is the time that running calls have after the end of the Keeper's ctx. Calls that are still running after
	// this time are cancelled.
	Grace time.Duration
	// Show is the function in kernel.Turn for a call. It may be nil.
	Show func(c Call, n record.Notice)
	// Stay lets a flow run wait in this process for the answers to its questions.
	Stay bool
	// Answered is called with the result of each call, or with the error of an input or a flow run that was not accepted.
	// It may be called concurrently.
	Answered func(c Call, res record.Result, err error)
	// Driven is called with the state of a flow run if this process has changed the flow run. It may be called
	// concurrently.
	Driven func(c Call, s *flow.State)

	locks   string         // the folder of the context's locks
	trusted *program.Store // knows the trusted bytes of flows
}

// Keeper returns a Keeper for the project p. When hard ends, the agents are ended at once.
func (w Work) Keeper(hard context.Context, p *project.Project) (*Keeper, error) {
	paths, err := p.Workspace.Context(p.Config.ContextID)
	if err != nil {
		return nil, err
	}
	w.locks, w.trusted = paths.Locks, trustedFiles(p)
	return &Keeper{
		Log: w.Runner.Log(), Locks: paths.Locks, Now: time.Now,
		Schedules: func() ([]Schedule, error) {
			p, err := w.Load()
			if err != nil {
				return nil, err
			}
			return Of(p)
		},
		Digest: func(text string) (string, error) { return w.Runner.Digest(kernel.Input{Text: text}) },
		Answer: func(soft context.Context, c Call) error {
			if c.Flow != "" {
				return w.runFlow(hard, soft, c)
			}
			res, err := w.answer(hard, soft, c)
			w.Answered(c, res, err)
			return err
		},
	}, nil
}

// Of returns the schedules of a project.
func Of(p *project.Project) ([]Schedule, error) {
	list := make([]Schedule, len(p.Config.Schedules))
	for i, c := range p.Config.Schedules {
		var err error
		if list[i], err = fromTable(c, time.Local); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// answer answers a call with the present configuration.
func (w Work) answer(hard, soft context.Context, c Call) (record.Result, error) {
	p, err := w.Load()
	if err != nil {
		return record.Result{}, err
	}
	stop, release := w.stopAfter(hard, soft)
	defer release()
	u := project.Unattended{
		Input:  kernel.Input{ID: c.Input, Text: c.Text, Source: "schedule", Sender: c.ID},
		Choice: project.Choice{Provider: c.Provider}, Permissions: policy.Mode(c.Permissions),
		AnswerIn: p.Config.AnswerTimeout, Stop: stop,
	}
	if w.Show != nil {
		u.Show = func(n record.Notice) { w.Show(c, n) }
	}
	return p.AnswerUnattended(hard, w.Runner, u)
}

// stopAfter returns a channel for kernel.Turn.Stop. It gets a value when soft ended w.Grace ago. The caller must call
// release after the turn.
func (w Work) stopAfter(hard, soft context.Context) (stop chan fact.Stop, release func() bool) {
	stop = make(chan fact.Stop, 1)
	return stop, context.AfterFunc(soft, func() {
		select {
		case <-time.After(w.Grace):
			stop <- stopOf(soft)
		case <-hard.Done():
		}
	})
}

// stopOf returns the cause of the end of ctx.
func stopOf(ctx context.Context) fact.Stop {
	var stopped *kernel.StoppedError
	if errors.As(context.Cause(ctx), &stopped) {
		return stopped.Stop
	}
	return fact.Stop{By: "terminated", Why: "terminated"}
}
