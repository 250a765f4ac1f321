package flow

import (
	"context"
	"errors"
	"time"

	"github.com/perlica/perlica/kernel"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/kernel/project"
	"github.com/perlica/perlica/kernel/record"
	"github.com/perlica/perlica/policy"
	"github.com/perlica/perlica/provider/descent"
)

// Turns answers the calls of flows with the agents of a project.
type Turns struct {
	Project *project.Project
	Runner  *kernel.Runner
	// Choice is the choice of the front end. A step's own provider and schema replace the provider and the schema
	// of the Choice.
	Choice project.Choice
	// Permissions and AnswerIn are used for a step that names no permissions. See kernel.Turn.
	Permissions policy.Mode
	AnswerIn    time.Duration
	Sender      string
	Stop        <-chan fact.Stop // see kernel.Turn
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
	u := project.Unattended{
		Input: kernel.Input{ID: c.Input, Text: c.Text, Source: "flow", Sender: t.Sender}, Choice: choice,
		Permissions: t.Permissions, AnswerIn: t.AnswerIn, Session: c.Session, Stop: t.Stop,
	}
	if c.Step.Permissions != "" {
		// A step may tighten the permissions. A file that came with a project must not loosen them.
		u.Permissions = policy.Mode(descent.Stricter(c.Step.Permissions, string(t.Permissions)))
	}
	if t.Show != nil {
		u.Show = func(n record.Notice) { t.Show(c, n) }
	}
	res, err := t.Project.AnswerUnattended(ctx, t.Runner, u)
	for errors.Is(err, kernel.ErrInputRunning) { // another process calls the input: use the result of that call
		if err = t.await(ctx); err == nil {
			res, err = t.Project.AnswerUnattended(ctx, t.Runner, u)
		}
	}
	if err == nil && schema != nil && res.Outcome == record.OutcomeResponded {
		if misfit := schema.Check(res.Text); misfit != nil {
			return res, &misfitError{misfit}
		}
	}
	return res, err
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
