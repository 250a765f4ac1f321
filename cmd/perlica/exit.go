package main

import (
	"errors"

	"github.com/perlica/perlica/eventlog"
	"github.com/perlica/perlica/eventlog/fault"
	"github.com/perlica/perlica/kernel"
	"github.com/perlica/perlica/provider"
)

// Who stops a turn, in kernel.Stop.By.
const (
	byUser    = "user"
	byTerm    = "terminated"
	byTimeout = "timeout"
	byPipe    = "closed_pipe"
	byOutput  = "output_failed"
)

// stopCode is the exit code of a run that was stopped, 0 if that does not matter.
func stopCode(s kernel.Stop) int {
	switch s.By {
	case byUser, byPipe:
		return 130
	case byTerm:
		return 143
	case byTimeout:
		return 3
	case byOutput:
		return 1
	}
	return 0
}

// exitCode is the exit code of a run that has a result; the first that applies.
func exitCode(res kernel.Result, strict bool) int {
	if res.Stopped != nil {
		if code := stopCode(*res.Stopped); code != 0 {
			return code
		}
	}
	switch {
	case res.Outcome == kernel.OutcomeUnknown:
		return 6
	case res.Err != nil && res.Err.Type == provider.TypeAuth:
		return 8
	case res.Outcome != kernel.OutcomeResponded:
		return 1
	}
	switch res.StopReason {
	case "refusal", "max_tokens", "max_turn_requests":
		return 1
	}
	switch {
	case strict && len(res.Unasked) > res.Freed():
		return 9
	case res.Permissions.Unanswered > 0:
		return 5
	}
	return 0
}

// runErrorCode is the exit code of a run that was not accepted, or whose log failed before
// anything was sent.
func runErrorCode(err error) int {
	var exit *exitError
	var log *logError
	var write *eventlog.WriteError
	var input *kernel.InputError
	var other *kernel.InputConflictError
	var stopped *kernel.StoppedError
	switch {
	case errors.As(err, &exit):
		return exit.code
	case errors.Is(err, kernel.ErrNoSession), errors.Is(err, kernel.ErrAmbiguous), errors.Is(err, kernel.ErrBusy), errors.Is(err, kernel.ErrInputRunning),
		errors.Is(err, kernel.ErrPruning):
		return 4
	case errors.As(err, &log), errors.As(err, &write), errors.Is(err, fault.ErrClosed), errors.Is(err, fault.ErrCorrupt):
		return 7
	case errors.As(err, &input), errors.As(err, &other):
		return 2
	case errors.As(err, &stopped):
		return max(stopCode(stopped.Stop), 1)
	}
	return max(codeOf(err), 1)
}
