package dialog

import (
	"testing"

	"github.com/perlica/perlica/cmd/perlica/frame"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/kernel/flow"
	"github.com/perlica/perlica/provider"
)

// TestFlowExitCode checks that the exit code of a flow run is that of its worst step or item. The test fails if a
// failure counts although the step says "continue", or if a case loses its code.
func TestFlowExitCode(t *testing.T) {
	done := flow.Unit{Phase: flow.Done}
	failed := flow.Unit{Phase: flow.Failed}
	login := flow.Unit{Phase: flow.Failed, ErrorType: string(provider.TypeAuth)}
	unanswered := flow.Unit{Phase: flow.Done, Unanswered: 1}
	step := func(u flow.Unit, items ...flow.Unit) *flow.StepState {
		return &flow.StepState{Step: &flow.Step{}, Unit: u, Items: items}
	}
	handled := step(failed, login)
	handled.OnFailure = "continue"
	for name, c := range map[string]struct {
		steps []*flow.StepState
		end   string
		want  frame.ExitCode
	}{
		"done":       {[]*flow.StepState{step(done), step(flow.Unit{Phase: flow.Skipped})}, fact.FlowDone, 0},
		"failed":     {[]*flow.StepState{step(failed), step(done)}, fact.FlowFailed, frame.ExitFailure},
		"item":       {[]*flow.StepState{step(done, done, failed)}, fact.FlowFailed, frame.ExitFailure},
		"handled":    {[]*flow.StepState{handled}, fact.FlowDone, 0},
		"login":      {[]*flow.StepState{step(failed), step(login)}, fact.FlowFailed, frame.ExitLogin},
		"unanswered": {[]*flow.StepState{step(unanswered)}, fact.FlowDone, frame.ExitUnanswered},
		"asked":      {[]*flow.StepState{step(flow.Unit{Phase: flow.Asked})}, "", frame.ExitUnanswered},
		"unknown": {[]*flow.StepState{step(failed), step(done, flow.Unit{Phase: flow.Unknown})}, "",
			frame.ExitUnknown},
		"cancelled": {[]*flow.StepState{step(flow.Unit{Phase: flow.Waiting})}, fact.FlowCancelled, frame.ExitFailure},
	} {
		s := &flow.State{Steps: c.steps}
		if c.end != "" {
			s.Finished = &fact.FlowFinished{Outcome: c.end}
		}
		if got := FlowExitCode(s); got != c.want {
			t.Errorf("%s: got exit code %d, want %d", name, got, c.want)
		}
	}
}
