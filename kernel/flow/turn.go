package flow

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/kernel"
	"github.com/perlica/perlica/kernel/project"
	"github.com/perlica/perlica/kernel/record"
	"github.com/perlica/perlica/kernel/sessions"
	"github.com/perlica/perlica/policy"
	"github.com/perlica/perlica/provider/descent"
)

// Turns answers the calls of flows with the agents of a project.
type Turns struct {
	Project *project.Project
	Runner  *kernel.Runner
	// Choice is the choice of the front end. The provider and the schema of a step replace those of the Choice.
	Choice project.Choice
	// Permissions and AnswerIn are used for a step that names no permissions. See kernel.Turn.
	Permissions policy.Mode
	AnswerIn    time.Duration
	Sender      string
	// Show gets the notices of each turn. It may be called by several goroutines at the same time. It may be nil.
	Show func(Call, record.Notice)
}

// Answer answers one call. It is a function for Driver.Answer.
func (t *Turns) Answer(ctx context.Context, c Call) (record.Result, error) {
	choice := t.Choice
	if c.Step.Provider != "" {
		choice.Provider, choice.Command = c.Step.Provider, ""
	}
	var schema *project.Schema
	if c.Step.Schema != "" {
		var err error
		if schema, err = project.ParseSchema(c.Step.SchemaText); err != nil {
			return record.Result{}, err
		}
		choice.Schema = c.Step.SchemaText
	}
	s, err := t.session(ctx, c.Session)
	if err != nil {
		return record.Result{}, err
	}
	agent, err := t.Project.Agent(choice, s)
	if err != nil {
		return record.Result{}, err
	}
	turn := kernel.Turn{
		Input: kernel.Input{ID: c.Input, Text: c.Text, Source: "flow", Sender: t.Sender},
		Setup: t.Project.Setup(choice, agent, s), Wait: true, Permissions: t.Permissions, AnswerIn: t.AnswerIn,
	}
	if c.Step.Permissions != "" {
		// A step may tighten the permissions. A file that came with a project must not loosen them.
		turn.Permissions = policy.Mode(descent.Stricter(c.Step.Permissions, string(t.Permissions)))
		if turn.Permissions == policy.ModeDeny {
			turn.AnswerIn = 0
		}
	}
	turn.Forms, turn.Notices = turn.AnswerIn > 0 && turn.Permissions != policy.ModeDeny, true
	if t.Show != nil {
		turn.Show = func(n record.Notice) { t.Show(c, n) }
	}
	res, err := t.Runner.Run(ctx, turn)
	for errors.Is(err, kernel.ErrInputRunning) { // another process calls the input: use the result of that call
		if err = t.await(ctx); err == nil {
			res, err = t.Runner.Run(ctx, turn)
		}
	}
	if err == nil && schema != nil && res.Outcome == record.OutcomeResponded {
		if misfit := schema.Check(res.Text); misfit != nil {
			return res, &misfitError{misfit}
		}
	}
	return res, err
}

// session returns the session that a call continues. An empty id means a new session.
func (t *Turns) session(ctx context.Context, id event.SessionID) (s sessions.Session, err error) {
	if id == "" {
		return s, nil
	}
	view, err := t.Runner.Sessions(ctx)
	if err != nil {
		return s, err
	}
	s, err = view.Find(ctx, string(id))
	return s, cmp.Or(err, view.Close())
}

// await waits for the next change of the log, and at most a second.
func (t *Turns) await(ctx context.Context) error {
	changes, err := t.Runner.Log().Changes(ctx)
	if err != nil {
		return err
	}
	_, err = changes.Wait(ctx, time.Second)
	return errors.Join(err, changes.Close())
}
