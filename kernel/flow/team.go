package flow

import (
	"context"
	"errors"

	"github.com/perlica/perlica/eventlog"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/message"
	"github.com/perlica/perlica/kernel/budget"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/kernel/project"
	"github.com/perlica/perlica/kernel/record"
)

// Team answers the calls of a flow run on other machines. Several goroutines may call its methods.
type Team interface {
	// ID identifies the team. It never changes.
	ID() string
	// Generation names the period since which the team's hub has forgotten nothing.
	Generation() string
	// Answer answers an input that the hub got in the generation Call.Generation. If the present generation is
	// another one and the hub does not know the input, its outcome is unknown. The errors are those of
	// Driver.Answer.
	Answer(context.Context, Call) (TeamAnswer, error)
	// Text returns the text of the answer to an input.
	Text(context.Context, event.InputID) (string, error)
}

// TeamAnswer is the result of a call, which a worker of a team may have made.
type TeamAnswer struct {
	record.Result
	Worker string        // the worker that owns the input; empty if this machine made the call
	Judged *message.Text // a person's judgement of an unknown outcome, or nil
}

func (d *Driver) teamID() string {
	if d.Team == nil {
		return ""
	}
	return d.Team.ID()
}

// checkTeam returns an error if other machines than before would make the calls of a flow run. Two logs could then
// accept the call of one step.
func (d *Driver) checkTeam(s *State) error {
	switch id := d.teamID(); {
	case id == s.Started.Team:
		return nil
	case id == "":
		return ErrNeedsTeam
	case s.Started.Team == "":
		return ErrNoTeam
	}
	return ErrOtherTeam
}

// recordUnknown records that a team does not know the outcome of a call, because this log has no other event that says
// so.
func (r *drive) recordUnknown(st *StepState, res result) {
	if r.Team == nil {
		return
	}
	key := event.InteractionID(r.state.InputID(st, res.item)) + "/" + fact.FlowUnknown
	d := fact.FlowDecided{Step: st.ID, Item: res.item, Attempt: st.unit(res.item).Attempt, Decision: fact.FlowUnknown,
		Run: res.res.Run, Worker: res.res.Worker}
	unless := event.Query{Interaction: key, Types: []event.Type{event.FlowStepDecided}}
	r.fail(r.Log.RecordUnless(unless, event.NewFact(event.FlowStepDecided, "perlica",
		event.Refs{Run: RunID(r.state.ID), Interaction: key}, d)))
}

// answerByTeam records that an input is handed over, and lets the team answer it. If we die between the two, the next
// driver hands it over in the same generation only.
func (r *drive) answerByTeam(ctx context.Context, c Call) (res TeamAnswer, err error) {
	if c.Generation == "" {
		c.Generation = r.Team.Generation()
		key := event.InteractionID(c.Input) + "/" + fact.FlowHanded
		unless := event.Query{Interaction: key, Types: []event.Type{event.FlowStepDecided}}
		_, err := r.Log.AppendUnless(ctx, unless, event.NewFact(event.FlowStepDecided, "perlica",
			event.Refs{Run: RunID(r.state.ID), Interaction: key}, fact.FlowDecided{Step: c.Step.ID, Item: c.item,
				Attempt: c.attempt, Decision: fact.FlowHanded, Generation: c.Generation}))
		if errors.As(err, new(*eventlog.ConflictError)) { // another driver was faster
			var e event.Event
			if e, _, err = r.Log.Last(ctx, unless); err == nil {
				var d fact.FlowDecided
				err = e.Decode(&d)
				c.Generation = d.Generation
			}
		}
		if err != nil {
			return res, err
		}
	}
	var schema *project.Schema
	if c.Step.Schema != "" {
		if schema, err = project.ParseSchema(c.Step.SchemaText); err != nil {
			return res, err
		}
	}
	res, err = r.Team.Answer(ctx, c)
	var refused *budget.RefusedError
	if errors.As(err, &refused) { // the worker's log has the refusal, and 'flow show' reads this log
		_, rerr := r.Log.Append(context.WithoutCancel(ctx), event.NewFact(event.BudgetRefused, "perlica",
			event.Refs{Input: c.Input}, refused.BudgetReached))
		err = errors.Join(err, rerr)
	}
	if err == nil && schema != nil && res.Outcome == record.OutcomeResponded {
		if misfit := schema.Check(res.Text); misfit != nil {
			return res, &misfitError{misfit}
		}
	}
	return res, err
}

// HandedOver returns the inputs without a result that a flow run and the flows inside of it have handed over to a team.
func HandedOver(ctx context.Context, log *eventlog.Log, id string) (inputs []event.InputID, err error) {
	all, err := nested(ctx, log, id)
	for _, s := range all {
		for _, st := range s.Steps {
			for item := range len(st.Items) + 1 {
				if u := st.unit(item); u.generation != "" && !u.unknown && !u.Phase.decided() {
					inputs = append(inputs, s.InputID(st, item))
				}
			}
		}
	}
	return inputs, err
}
