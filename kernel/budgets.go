package kernel

import (
	"context"
	"errors"
	"sync"

	"github.com/coder/acp-go-sdk"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/kernel/budget"
	"github.com/perlica/perlica/kernel/fact"
)

// StoppedByBudget is the value of fact.Stop.By if a budget stops a call.
const StoppedByBudget = "budget"

// Budgets returns the state of the budgets. session may be empty.
func (r *Runner) Budgets(ctx context.Context, session event.SessionID) ([]budget.Status, error) {
	return r.budgets.Status(ctx, &r.log.Reader, session)
}

// checkBudgets returns a *budget.RefusedError if a budget refuses the call. The refusal is then on disk.
func (run *run) checkBudgets(ctx context.Context) error {
	if run.r.budgets == nil {
		return nil
	}
	check, err := run.r.budgets.Check(ctx, &run.r.log.Reader, budget.Call{Refs: run.client.refs(),
		Provider: run.t.Agent.ID, Sender: run.t.Input.Sender})
	var refused *budget.RefusedError
	if errors.As(err, &refused) {
		_, rerr := run.r.log.Append(context.WithoutCancel(ctx), event.NewFact(event.BudgetRefused, "perlica",
			run.client.refs(), refused.BudgetReached))
		err = errors.Join(err, rerr)
	}
	run.budget = check
	return err
}

// reserveCall checks the budgets and keeps other processes from a call until the caller has written the intent and
// calls the function release. It returns the warnings to record with the intent.
func (run *run) reserveCall(ctx context.Context) (warned []event.Event, release func(), err error) {
	if run.r.budgets == nil {
		return nil, func() {}, nil
	}
	ctx, done := run.untilStopped(ctx)
	unlock, err := run.r.budgets.Lock(ctx)
	done()
	if err != nil {
		return nil, nil, errors.Join(run.checkStop(), err)
	}
	release = sync.OnceFunc(unlock)
	if err := run.checkBudgets(context.WithoutCancel(ctx)); err != nil {
		release()
		return nil, nil, err
	}
	for _, w := range run.budget.Warnings {
		warned = append(warned, event.NewFact(event.BudgetWarned, "perlica", run.client.refs(), w))
	}
	if run.budget.Watches() {
		run.overBudget = make(chan fact.Stop, 1)
	}
	return warned, release, nil
}

// warnOfBudgets shows the warnings of the budgets.
func (run *run) warnOfBudgets() {
	if run.budget == nil {
		return
	}
	for _, w := range run.budget.Warnings {
		run.client.warn("budget", w.Reason())
	}
}

// contextMeter measures the growth of the context of an agent's session. Only the connection's reader uses it.
type contextMeter struct {
	reported bool
	last     int // the tokens of the newest report
}

// addUsage stops the call if the agent's report exceeds a budget that stops calls. An agent reports the tokens of a
// call only at its end. Until then, addUsage uses the growth of the agent's context instead.
func (run *run) addUsage(u *acp.UsageUpdate) {
	meter := &run.agent.context
	if run.contextBefore == nil {
		before := meter.last
		if !meter.reported && run.agent.how != continuedAnew {
			before = u.Used // the size of the continued session's context before this call is not known
		}
		run.contextBefore = &before
	}
	*meter = contextMeter{true, u.Used}
	if !run.client.sums.isLive() || run.overBudget == nil { // before the turn, the fields of the check are not set
		return
	}
	why := run.budget.Exceeded(context.Background(), budget.Report{Cost: (*fact.Cost)(u.Cost),
		Tokens: int64(u.Used - *run.contextBefore)})
	if why == nil {
		return
	}
	select {
	case run.overBudget <- fact.NewStop(StoppedByBudget, why):
	default: // the call has such a stop already
	}
}
