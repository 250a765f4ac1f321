package team

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/perlica/perlica/eventlog"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/message"
	"github.com/perlica/perlica/kernel"
	"github.com/perlica/perlica/kernel/flow"
	"github.com/perlica/perlica/kernel/record"
	"github.com/perlica/perlica/provider"
	"github.com/perlica/perlica/provider/descent"
	"github.com/perlica/perlica/service/team/hub"
)

// These are the errors of FlowCalls.
var (
	errOtherText error = &hub.Fault{
		Text:    "the team has another input under the id of a step",
		Advice:  "another flow, or this flow with other inputs, was run under this id: choose another --id",
		ByUsage: true,
	}
	errTextPruned = message.New("team.text-pruned", "the team no longer has the answer to the input %s")
)

// untakenAfter is the time after which FlowCalls says that no worker has taken an input.
const untakenAfter = 10 * time.Second

// FlowCalls lets a team answer the calls of flow runs. It implements flow.Team. Two machines that run the same flow
// under one id share its calls, because a step has the same input id on both.
type FlowCalls struct {
	Team *Team
	// Draft has the settings of each input. A step may name another provider or stricter permissions.
	Draft Draft
	By    string       // the person of the flow run
	Note  func(string) // called with a line about each event that a person should know, by several goroutines

	untaken sync.Once
}

// ID returns the id of the team.
func (f *FlowCalls) ID() string { return f.Team.State().ID }

// Generation returns the hub's present generation.
func (f *FlowCalls) Generation() string { return f.Team.State().Generation }

// Answer hands an input over and waits for its end, as flow.Team says. If ctx ends first, Answer stops the input.
func (f *FlowCalls) Answer(ctx context.Context, c flow.Call) (flow.TeamAnswer, error) {
	d := f.Draft
	d.ID, d.Text, d.Worker, d.Session = string(c.Input), c.Text, c.Worker, c.Session
	d.Provider = cmp.Or(c.Step.Provider, d.Provider)
	if c.Step.Permissions != "" {
		d.Permissions = c.Step.Permissions
		if f.Draft.Permissions != "" {
			d.Permissions = descent.Stricter(d.Permissions, f.Draft.Permissions)
		}
	}
	var fate *FateError
	known, err := f.handOver(ctx, c.Generation, &d)
	switch {
	case errors.As(err, &fate):
		return flow.TeamAnswer{Result: UnknownOutcome(d.ID, err.Error())}, nil
	case err != nil:
		return flow.TeamAnswer{}, err
	case !known:
		return flow.TeamAnswer{Result: UnknownOutcome(d.ID, "the hub was replaced and does not know the input")}, nil
	}
	return f.await(ctx, c, d.ID)
}

// handOver submits an input in its generation. In another generation it only looks for the input: the hub of before may
// have forgotten a call. known is false if the hub does not know the input.
func (f *FlowCalls) handOver(ctx context.Context, generation string, d *Draft) (known bool, err error) {
	if generation != f.Generation() {
		s, ok, err := f.Team.newest(ctx, d.ID)
		d.ID = s.ID
		return ok, err
	}
	came, err := f.Team.submitAgain(ctx, generation, d)
	if errors.Is(err, hub.ErrUnsure) {
		f.Note("warning: the hub's standby has not confirmed the input " + d.ID + "; if the hub fails now it may be lost")
		err = nil
	}
	if err == nil && came == hub.Differs {
		err = fmt.Errorf("%w: %s", errOtherText, d.ID)
	}
	return true, err
}

// await waits for the end of an input.
func (f *FlowCalls) await(ctx context.Context, c flow.Call, id string) (res flow.TeamAnswer, err error) {
	waiting, end := context.WithCancel(ctx)
	defer end()
	var stopping sync.WaitGroup
	defer stopping.Wait()
	defer end()
	stopping.Go(func() {
		select {
		case <-c.Ended:
			f.stop(waiting, id)
		case <-waiting.Done():
		}
	})
	began, asked := time.Now(), map[string]bool{}
	live := &Live{t: f.Team, Note: f.Note, limit: copyLimit, Look: func(s hub.Status, open []hub.Question) {
		if s.State == hub.Queued && time.Since(began) > untakenAfter {
			f.untaken.Do(func() {
				f.Note("no worker has taken " + id + " yet; 'perlica team workers' shows who serves which projects and labels")
			})
		}
		for _, q := range open {
			if !asked[q.ID] {
				asked[q.ID] = true
				f.Note(fmt.Sprintf("%s asks in the step %s: perlica team pending", s.Worker, c.Step.ID))
			}
		}
	}}
	s, err := live.Wait(waiting, id)
	if ctx.Err() != nil {
		soon, cancel := context.WithTimeout(context.WithoutCancel(ctx), within)
		defer cancel()
		f.stop(soon, id)
	}
	if err != nil {
		return res, err
	}
	res.Worker = s.Worker
	if s.State == hub.Resolved {
		res.Judged = judgement(s)
	}
	res.Result, err = Outcome(s)
	return res, failed(&res.Result, err)
}

// failed makes the result of a failed call from the end of an input that is never called. A person can then let the
// step make a new call. It returns other errors.
func failed(res *record.Result, err error) error {
	var stopped *kernel.StoppedError
	var refused *RefusedError
	switch {
	case errors.As(err, &stopped):
		res.Stopped = &stopped.Stop
	case errors.As(err, &refused):
		res.Err = (&provider.Error{Type: "perlica"}).Saying(refused.Tell())
	default:
		return err
	}
	res.Outcome = record.OutcomeProviderError
	return nil
}

// stop stops an input. It tries until the hub was reached or ctx ends.
func (f *FlowCalls) stop(ctx context.Context, id string) {
	for {
		_, err := f.Team.Cancel(ctx, id, f.By, "flow")
		if err == nil || ctx.Err() != nil {
			return
		}
		f.Note("the stop has not reached the hub yet: " + err.Error())
		select {
		case <-ctx.Done():
		case <-time.After(waitMost):
		}
	}
}

// Text returns the text of the answer to an input. The hub has it, because the log of its owner is on another machine.
func (f *FlowCalls) Text(ctx context.Context, input event.InputID) (string, error) {
	s, ok, err := f.Team.newest(ctx, string(input))
	if err != nil {
		return "", err
	}
	if ok && s.Result != nil {
		r, err := ResultOf(s)
		if err != nil || !r.Pruned {
			return r.Text, err
		}
	}
	return "", errTextPruned.With(input)
}

// StopFlow stops the inputs without a result that a flow run has handed over to the team.
func (t *Team) StopFlow(ctx context.Context, log *eventlog.Log, run, by string) error {
	inputs, err := flow.HandedOver(ctx, log, run)
	for _, id := range inputs {
		s, ok, serr := t.newest(ctx, string(id))
		if serr == nil && ok && !s.Ended() {
			_, serr = t.Cancel(ctx, s.ID, by, "flow")
		}
		err = errors.Join(err, serr)
	}
	return err
}
