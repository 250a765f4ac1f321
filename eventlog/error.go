package eventlog

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
	direct "zombiezen.com/go/sqlite"
)

// What can be wrong with a log. Errors of this package wrap one of them where it
// applies; test with errors.Is.
var (
	ErrClosed   = errors.New("the event log is closed")
	ErrFull     = errors.New("the disk is full")
	ErrReadOnly = errors.New("the event log cannot be written")
	ErrBusy     = errors.New("another process has locked the event log")
	ErrIO       = errors.New("the disk reports an error")
	ErrCorrupt  = errors.New("the event log is damaged")
	ErrMoved    = errors.New("the event log was moved or deleted while it was open")
	ErrForeign  = errors.New("not an event log of Perlica")
	ErrNewer    = errors.New("the event log was written by a newer version of Perlica")
	ErrPart     = errors.New("this file holds a part of a log: it can be read, not appended to")
	ErrNotExist = fs.ErrNotExist
)

// A ConflictError says that the log already holds what may be there only once: an
// intent for the same input, an outcome of the same run, an answer to the same
// question. Nothing of the call that got it was written; the log lives on.
type ConflictError struct{ Type Type }

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

// explain puts the sentinel that names the fault in front of an error of SQLite.
func explain(err error) error {
	code := codeOf(err)
	if code == 0 {
		return err
	}
	kind := map[int]error{
		sqlite3.SQLITE_FULL:     ErrFull,
		sqlite3.SQLITE_IOERR:    ErrIO,
		sqlite3.SQLITE_READONLY: ErrReadOnly,
		sqlite3.SQLITE_CANTOPEN: ErrReadOnly,
		sqlite3.SQLITE_PERM:     ErrReadOnly,
		sqlite3.SQLITE_BUSY:     ErrBusy,
		sqlite3.SQLITE_LOCKED:   ErrBusy,
		sqlite3.SQLITE_CORRUPT:  ErrCorrupt,
		sqlite3.SQLITE_NOTADB:   ErrForeign,
	}[code&0xff]
	if code == sqlite3.SQLITE_IOERR_SHMSIZE {
		kind = ErrFull // the index beside a WAL could not be made larger
	}
	if kind == nil || errors.Is(err, kind) {
		return err
	}
	return fmt.Errorf("%w: %w", kind, err)
}

// codeOf returns SQLite's code of an error, whichever way led to SQLite; 0 if it is none of
// SQLite's.
func codeOf(err error) int {
	var se *sqlite.Error
	if errors.As(err, &se) {
		return se.Code()
	}
	if err == nil {
		return 0
	}
	// Of an error that is not its own the direct way says SQLITE_ERROR, which names no fault.
	return int(direct.ErrCode(err))
}

// isConstraint reports whether err is a violated constraint of the schema.
func isConstraint(err error) bool {
	var se *sqlite.Error
	return errors.As(err, &se) && se.Code()&0xff == sqlite3.SQLITE_CONSTRAINT
}

// isNoSpace reports whether a file operation failed for want of space.
func isNoSpace(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EFBIG)
}

// isScan reports whether err is none of SQLite's: the value is of another type than the schema's.
func isScan(err error) bool {
	var se *sqlite.Error
	return !errors.As(err, &se) && !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded)
}
