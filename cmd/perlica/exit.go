package main

import (
	"errors"

	"github.com/perlica/perlica/eventlog"
	"github.com/perlica/perlica/kernel"
	"github.com/perlica/perlica/kernel/filelock"
	"github.com/perlica/perlica/kernel/sessions"
	"github.com/perlica/perlica/kernel/streamjson"
	"github.com/perlica/perlica/provider"
)

// stopCode is the exit code of a run that was stopped, 0 if that does not matter.
func stopCode(s kernel.Stop) int {
	switch s.By {
	case streamjson.ByUser, streamjson.ByPipe:
		return 130
	case streamjson.ByTerminated:
		return 143
	case streamjson.ByTimeout:
		return 3
	case streamjson.ByOutput:
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
	case streamjson.Failed(res):
		return 1
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
	case errors.Is(err, sessions.ErrNoSession), errors.Is(err, sessions.ErrAmbiguous), errors.Is(err, filelock.ErrBusy), errors.Is(err, kernel.ErrInputRunning),
		errors.Is(err, kernel.ErrPruning):
		return 4
	case errors.As(err, &log), errors.As(err, &write), errors.Is(err, eventlog.ErrClosed), errors.Is(err, eventlog.ErrCorrupt):
		return 7
	case errors.As(err, &input), errors.As(err, &other):
		return 2
	case errors.As(err, &stopped):
		return max(stopCode(stopped.Stop), 1)
	}
	return max(codeOf(err), 1)
}

// errorType is the type that the JSON of a run that was not accepted gives its error.
func errorType(err error) provider.ErrorType {
	switch runErrorCode(err) {
	case 2:
		return "usage"
	case 7:
		return provider.TypeRecord
	}
	return "perlica"
}
