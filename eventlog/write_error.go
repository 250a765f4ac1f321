package eventlog

import (
	"fmt"

	"github.com/perlica/perlica/eventlog/event"
)

// A ConflictError says that the log already holds what may be there only once: an
// intent for the same input, an outcome of the same run, an answer to the same
// question. Nothing of the call that got it was written; the log lives on.
type ConflictError struct{ Type event.Type }

func (e *ConflictError) Error() string {
	return fmt.Sprintf("eventlog: there is already one %s", e.Type)
}

// A WriteError says that the log could not be written. The Log that returned it is
// dead: every later call fails with the same error.
type WriteError struct {
	Op string // what was being done: "begin", "insert", "commit"
	// Unknown is set if the commit itself failed: the events may be on disk or not,
	// and only reopening the log tells.
	Unknown bool
	Err     error
}

func (e *WriteError) Error() string {
	msg := "eventlog: " + e.Op + ": " + e.Err.Error()
	if e.Unknown {
		msg += " (the last events may or may not have been written)"
	}
	return msg
}

func (e *WriteError) Unwrap() error { return e.Err }
