package project

import (
	"context"
	"encoding/json"
	"errors"

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
	Input    kernel.Input
	Provider string // empty means the session's agent, or the default agent
	// Permissions is the mode that answers the agent's questions. With deny, no question waits. In every other mode, a
	// question that the mode leaves open waits for a person at any front end.
	Permissions policy.Mode
	Session     event.SessionID // the session that the input continues; empty means a new one
	Schema      json.RawMessage // see Choice.Schema

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
	c := Choice{Provider: u.Provider, Schema: u.Schema}
	agent, err := p.Agent(c, session)
	if err != nil {
		return record.Result{}, err
	}
	t := kernel.Turn{Input: u.Input, Setup: p.Setup(c, agent, session), Wait: true, Permissions: u.Permissions,
		Stop: u.Stop, Show: u.Show}
	if u.Permissions != policy.ModeDeny {
		t.AnswerIn = p.Config.AnswerTimeout
	}
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
