package frame

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"syscall"

	"github.com/perlica/perlica/eventlog"
	"github.com/perlica/perlica/eventlog/disk"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/evidence"
	"github.com/perlica/perlica/kernel"
	"github.com/perlica/perlica/kernel/agents"
	"github.com/perlica/perlica/kernel/budget"
	"github.com/perlica/perlica/kernel/config"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/kernel/filelock"
	"github.com/perlica/perlica/kernel/record"
	"github.com/perlica/perlica/kernel/sessions"
	"github.com/perlica/perlica/kernel/streamjson"
	"github.com/perlica/perlica/provider"
)

// ExitCode is the exit code of a process. Only this file chooses the exit code for an error of a command.
type ExitCode int

// These are the exit codes. ARCHITECTURE.md explains each of them to authors of scripts.
const (
	ExitFailure     ExitCode = 1
	ExitUsage       ExitCode = 2 // also for a wrong configuration
	ExitTimeout     ExitCode = 3
	ExitSession     ExitCode = 4 // the session does not exist, or another process uses it
	ExitUnanswered  ExitCode = 5
	ExitUnknown     ExitCode = 6 // The outcome of the call is unknown.
	ExitLog         ExitCode = 7 // The log cannot be written. Nothing was sent.
	ExitLogin       ExitCode = 8
	ExitStrict      ExitCode = 9
	ExitBudget      ExitCode = 10 // A budget refused or stopped the call.
	ExitInterrupted ExitCode = 130
	ExitTerminated  ExitCode = 143
)

// exitError ends the process with an exit code. If it wraps an error, Perlica prints this error first.
type exitError struct {
	code ExitCode
	err  error
}

// With returns an error that ends the process with the exit code c. If err is not nil, Perlica prints err before the
// end. Copies of With at its many uses would make the program larger.
//
//go:noinline
func (c ExitCode) With(err error) error { return &exitError{c, err} }

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.err.Error()
}

// Unwrap returns the error that is printed.
func (e *exitError) Unwrap() error { return e.err }

// UsageErrorf returns an error about the command line.
func UsageErrorf(format string, args ...any) error {
	return ExitUsage.With(fmt.Errorf(format, args...))
}

// errorWithHint adds a remedy to an error.
type errorWithHint struct {
	error
	hint string
}

func (h *errorWithHint) Unwrap() error { return h.error }

// WithHint adds a hint to an error. The hint tells the user the next step. Copies of WithHint at its many uses would
// make the program larger.
//
//go:noinline
func WithHint(err error, format string, args ...any) error {
	return &errorWithHint{err, fmt.Sprintf(format, args...)}
}

// ExitCodeOf returns the exit code of a command that returned err. printed reports whether Perlica prints err. If
// err is nil, the exit code is 0.
func ExitCodeOf(err error) (code int, printed bool) {
	var exit *exitError
	switch {
	case err == nil:
		return 0, false
	case errors.As(err, &exit):
		return int(exit.code), exit.err != nil
	}
	return int(codeOfFault(err)), true
}

// codeOfFault returns the exit code of an error that is not an exitError.
func codeOfFault(err error) ExitCode {
	var problems config.Problems
	var workspace *config.WorkspaceError
	var context *config.ContextNameError
	var misuse interface{ Usage() bool }
	switch {
	case errors.As(err, &problems), errors.As(err, &workspace), errors.As(err, &context),
		errors.As(err, &misuse) && misuse.Usage():
		return ExitUsage
	}
	return ExitFailure
}

// StopExitCode returns the exit code of a stopped run. It returns 0 if the stop does not change the exit code.
func StopExitCode(s fact.Stop) ExitCode {
	switch s.By {
	case streamjson.ByUser, streamjson.ByPipe:
		return ExitInterrupted
	case streamjson.ByTerminated:
		return ExitTerminated
	case streamjson.ByTimeout:
		return ExitTimeout
	case streamjson.ByBudget:
		return ExitBudget
	case streamjson.ByOutput:
		return ExitFailure
	}
	return 0
}

// ProgramExit returns an error that ends Perlica with the exit code of another program. Perlica ran this program in
// its own place and does not print the error. For exit code 0 ProgramExit returns nil.
func ProgramExit(code int) error {
	if code == 0 {
		return nil
	}
	return ExitCode(code).With(nil)
}

// RunExitCode returns the exit code of a run that has a result. If several codes apply, the order below decides.
func RunExitCode(res record.Result, strict bool) ExitCode {
	if res.Stopped != nil {
		if code := StopExitCode(*res.Stopped); code != 0 {
			return code
		}
	}
	switch {
	case res.Outcome == record.OutcomeUnknown:
		return ExitUnknown
	case res.Err != nil && res.Err.Type == provider.TypeAuth:
		return ExitLogin
	case streamjson.Failed(res):
		return ExitFailure
	case strict && len(res.Unasked) > res.Freed():
		return ExitStrict
	case res.Permissions.Unanswered > 0:
		return ExitUnanswered
	}
	return 0
}

// severity orders the exit codes, the worst first. An exit code that is not in the list is less bad.
var severity = []ExitCode{ExitLog, ExitUnknown, ExitTerminated, ExitInterrupted, ExitTimeout, ExitLogin, ExitUsage,
	ExitFailure, ExitSession, ExitStrict, ExitUnanswered}

// WorstExitCode returns the worst of several exit codes, or 0 without a code.
func WorstExitCode(codes ...ExitCode) ExitCode {
	for _, c := range severity {
		if slices.Contains(codes, c) {
			return c
		}
	}
	for _, c := range codes {
		if c != 0 {
			return c
		}
	}
	return 0
}

// RefusalExitCode returns the exit code of a run without a call: it was not accepted, or its log failed before
// anything was sent.
func RefusalExitCode(err error) ExitCode {
	var exit *exitError
	var log *logError
	var write *eventlog.WriteError
	var input *kernel.InputError
	var other *kernel.InputConflictError
	var stopped *kernel.StoppedError
	var refused *budget.RefusedError
	switch {
	case errors.As(err, &exit):
		return exit.code
	case errors.As(err, &refused):
		return ExitBudget
	case errors.Is(err, sessions.ErrNoSession), errors.Is(err, sessions.ErrAmbiguous), errors.Is(err, filelock.ErrBusy),
		errors.Is(err, kernel.ErrInputRunning),
		errors.Is(err, kernel.ErrPruning):
		return ExitSession
	case errors.As(err, &log), errors.As(err, &write), errors.Is(err, disk.ErrClosed), errors.Is(err, disk.ErrCorrupt):
		return ExitLog
	case errors.As(err, &input), errors.As(err, &other):
		return ExitUsage
	case errors.As(err, &stopped):
		return max(StopExitCode(stopped.Stop), ExitFailure)
	}
	return codeOfFault(err)
}

// RefusalErrorType returns the error type that the JSON of a run without a call contains.
func RefusalErrorType(err error) provider.ErrorType {
	switch RefusalExitCode(err) {
	case ExitUsage:
		return "usage"
	case ExitBudget:
		return "budget"
	case ExitLog:
		return provider.TypeRecord
	}
	return "perlica"
}

// AlreadyPrinted returns an error with the exit code of err. Perlica does not print it, because the JSON output
// contains the message.
func AlreadyPrinted(err error) error {
	var exit *exitError
	if errors.As(err, &exit) {
		return exit.code.With(nil)
	}
	return err
}

// ExplicitHint returns the hint that WithHint added to the error, or "".
func ExplicitHint(err error) string {
	var h *errorWithHint
	if errors.As(err, &h) {
		return h.hint
	}
	return ""
}

// HintOf returns a hint for an error, or "" if none is known.
func HintOf(err error) string {
	var agent *agents.Error
	if hint := ExplicitHint(err); hint != "" {
		return hint
	}
	if errors.As(err, &agent) {
		return agent.Hint
	}
	return cmp.Or(hintOfPlace(err), hintOfLog(err), hintOfError(err), hintOfFault(err))
}

// newProjectHint tells how to work in a new project below an existing one, if the existing project is unusable or
// not meant.
const newProjectHint = "'mkdir .perlica_config' makes a project of the working directory"

// hintOfPlace returns a hint for a folder of the user or of the project that cannot be used.
func hintOfPlace(err error) string {
	var problems config.Problems
	var workspace *config.WorkspaceError
	switch {
	case errors.As(err, &problems) && errors.Is(err, fs.ErrPermission):
		return "let this user read it; where HOME is another user's, set HOME or PERLICA_HOME"
	case errors.Is(err, config.ErrRootDirectory):
		return "work in the project's folder, or name it: --project DIR"
	case errors.As(err, &workspace) && !errors.Is(err, syscall.ENOSPC) && !IsTooManyOpenFiles(err):
		// A full disk and too many open files have other hints.
		return "make that folder yours to write, name another project's folder (--project DIR), or work below it: " +
			newProjectHint
	}
	return ""
}

// OneLineError puts an error and its hint in one line. The exit code stays the same.
func OneLineError(err error) error {
	hint := HintOf(err)
	if hint == "" {
		return err
	}
	code, _ := ExitCodeOf(err) // Wrapping err would print its hint a second time.
	return ExitCode(code).With(fmt.Errorf("%v; hint: %s", err, hint))
}

// hintOfFault returns a hint for a fault that any command can meet.
func hintOfFault(err error) string {
	switch {
	case errors.Is(err, evidence.ErrKey):
		return "'perlica doctor' says what is wrong with the key and what to do"
	case errors.Is(err, sessions.ErrNoSession):
		return "see 'perlica session list --all'"
	case errors.Is(err, kernel.ErrPruning):
		return "nothing was sent; --wait waits until it is done"
	case errors.Is(err, filelock.ErrBusy):
		return "--wait waits until it is free; 'perlica watch' follows it"
	}
	return ""
}

// hintOfError returns the hint of an error that has a method Hint.
func hintOfError(err error) string {
	var known interface{ Hint() string }
	if errors.As(err, &known) {
		return known.Hint()
	}
	return ""
}

// hintOfLog returns a hint for a fault of a log, or of the disk with the log.
func hintOfLog(err error) string {
	var linked *disk.LinkedError
	var place *disk.PathError
	switch {
	case errors.As(err, &place):
		return "move it away, if it is not yours: it may have come with the project"
	case errors.Is(err, disk.ErrNoLocks):
		return "a log needs a disk with working locks; on a network disk its lock service may be down"
	case IsTooManyOpenFiles(err):
		return "raise the limit of open files (ulimit -n), or end the program that has so many files open"
	case errors.As(err, &linked):
		return linked.Hint()
	case errors.Is(err, disk.ErrMoved):
		return "end other programs that use its folder, then check the log: perlica log verify"
	case errors.Is(err, disk.ErrFull), errors.Is(err, disk.ErrIO), errors.Is(err, syscall.ENOSPC):
		const again = "see that the disk has room and is well, then try again"
		if before := (*logError)(nil); errors.As(err, &before) {
			return again + "; nothing was sent"
		}
		return again
	case errors.Is(err, disk.ErrBusy):
		return "another program holds the log open for writing; 'perlica doctor' says more"
	case errors.As(err, new(*event.DamagedError)):
		return "'perlica log verify' checks the whole log and says what to do"
	case errors.Is(err, disk.ErrCorrupt), errors.Is(err, disk.ErrForeign):
		return "to start a new log, move the file, its .anchor and its .intents away and keep them: 'perlica log verify " +
			"FILE' says what is wrong; a new log does not know which inputs were called"
	case errors.Is(err, disk.ErrPart):
		return "'perlica log tail' and 'perlica log show' read it; --context NAME chooses another log"
	case errors.Is(err, disk.ErrVersion):
		return "use the version of Perlica that wrote it, or --context NAME for another log"
	case errors.Is(err, syscall.EROFS):
		return "mount the file system for writing, or run in a folder on another one; what is on record can be read: " +
			"perlica log tail"
	case errors.Is(err, disk.ErrReadOnly), errors.Is(err, fs.ErrPermission):
		return "make the folder writable, or run in another one; 'perlica doctor' says more"
	}
	return ""
}

// logError is an error of the event log that happened before anything was sent.
type logError struct{ error }

// Unwrap returns the error of the log.
func (e *logError) Unwrap() error { return e.error }

// LogNotOpened turns an error from opening a run's log into an error with an exit code.
func LogNotOpened(err error) error {
	if errors.Is(err, config.ErrRootDirectory) {
		return ExitUsage.With(err)
	}
	return ExitLog.With(err)
}

// LogErrorBeforeSend marks err as an error of the event log that happened before anything was sent.
func LogErrorBeforeSend(err error) error { return &logError{err} }

// IsTooManyOpenFiles reports whether this process or the system has reached its limit of open files.
func IsTooManyOpenFiles(err error) bool {
	return errors.Is(err, disk.ErrManyOpen) || errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}
