package fault

import (
	"errors"
	"fmt"
)

// A LinkedError says that the file of a log has several names. SQLite keeps a write-ahead log for
// each name: who writes by the one loses what was written by the other. Nothing is written.
type LinkedError struct{ Path string }

func (e *LinkedError) Error() string {
	return "eventlog: " + e.Path + " has more than one name (hard links), by each of which others could write to it"
}

// Hint is the command that makes the file one of its own again.
func (e *LinkedError) Hint() string {
	return fmt.Sprintf("end what has it open, then make a copy of it this log's file: cp -p '%[1]s' '%[1]s.copy' && mv '%[1]s.copy' '%[1]s'", e.Path)
}

// A SettingError says that SQLite works with another setting than it was told to, or that
// a log's file was given another.
type SettingError struct{ Name, Got, Want string }

func (e *SettingError) Error() string {
	return fmt.Sprintf("eventlog: %s is %q, not %q", e.Name, e.Got, e.Want)
}

// ErrUnfinished says that a run has no outcome yet; its payloads are all that is known of it.
var ErrUnfinished = errors.New("the run has no outcome yet")
