package dialog

import (
	"github.com/perlica/perlica/cmd/perlica/frame"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/kernel/flow"
	"github.com/perlica/perlica/provider"
)

// FlowExitCode returns the worst exit code of the steps of a flow run.
func FlowExitCode(s *flow.State) frame.ExitCode {
	var codes []frame.ExitCode
	if s.Outcome() == fact.FlowCancelled {
		codes = append(codes, frame.ExitFailure)
	}
	for _, st := range s.Steps {
		for _, u := range append([]flow.Unit{st.Unit}, st.Items...) {
			if u.Phase != flow.Failed || st.OnFailure != "continue" {
				codes = append(codes, unitExitCode(u))
			}
		}
	}
	return frame.WorstExitCode(codes...)
}

func unitExitCode(u flow.Unit) frame.ExitCode {
	switch {
	case u.Phase == flow.Unknown:
		return frame.ExitUnknown
	case u.Phase == flow.Failed && u.ErrorType == string(provider.TypeAuth):
		return frame.ExitLogin
	case u.Phase == flow.Failed:
		return frame.ExitFailure
	case u.Phase == flow.Asked, u.Unanswered > 0:
		return frame.ExitUnanswered
	}
	return 0
}
