package project

import (
	"context"
	"errors"
	"time"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/kernel"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/kernel/record"
	"github.com/perlica/perlica/kernel/sessions"
	"github.com/perlica/perlica/policy"
)

// Unattended is an input that no person sends, such as the input of a schedule or of a flow's step.
type Unattended struct {
	// Input has an id that follows from the reason for the input.
	Input  kernel.Input
	Choice Choice
	// Permissions is the mode that answers the agent's questions. AnswerIn is the time for which a question that the
	// mode leaves open waits for a person at any front end. With the mode deny, no question waits.
	Permissions policy.Mode
	AnswerIn    time.Duration
	Session     event.SessionID // the session that the input continues; empty means a new one

	Stop <-chan fact.Stop    // see kernel.Turn
	Show func(record.Notice) // see kernel.Turn
}

// AnswerUnattended answers an input with at most one call, in an agent process of its own. It waits for a busy session.
// It returns the errors of Project.Agent and of kernel.Runner.Run.
func (p *Project) AnswerUnattended(ctx context.Context, r *kernel.Runner, u Unattended) (record.Result, error) {
	session, err := findSession(ctx, r, u.Session)
	if err != nil {
		return record.Result{}, err
	}
	agent, err := p.Agent(u.Choice, session)
	if err != nil {
		return record.Result{}, err
	}
	t := kernel.Turn{Input: u.Input, Setup: p.Setup(u.Choice, agent, session), Wait: true, Permissions: u.Permissions,
		Stop: u.Stop, Show: u.Show}
	if u.Permissions != policy.ModeDeny {
		t.AnswerIn = u.AnswerIn
	}
	// Remove the Limit of the Setup, because it is the configured mode, which may be looser than u.Permissions.
	// Without a Limit, a run that the agent itself starts can only tighten u.Permissions.
	t.Limit, t.Forms, t.Notices = "", t.AnswerIn > 0, true
	return r.Run(ctx, t)
}

// findSession returns the recorded session with this id. A session without a turn is not recorded, and findSession
// returns an empty one.
func findSession(ctx context.Context, r *kernel.Runner, id event.SessionID) (s sessions.Session, err error) {
	if id == "" {
		return s, nil
	}
	view, err := r.Sessions(ctx)
	if err != nil {
		return s, err
	}
	s, err = view.Find(ctx, string(id))
	err = errors.Join(err, view.Close())
	if errors.Is(err, sessions.ErrNoSession) {
		return sessions.Session{}, nil
	}
	return s, err
}
