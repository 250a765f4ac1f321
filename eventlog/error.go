package eventlog

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
	direct "zombiezen.com/go/sqlite"

	"github.com/perlica/perlica/eventlog/event"
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
	ErrMoved    = errors.New("the event log was moved, deleted or changed by others while it was open")
	ErrForeign  = errors.New("not an event log of Perlica")
	ErrNoLocks  = errors.New("the disk that the event log lies on gives no locks")
	ErrManyOpen = errors.New("too many files are open")
	ErrNewer    = errors.New("the event log was written by a newer version of Perlica")
	ErrPart     = errors.New("this file holds a part of a log: it can be read, not appended to")
	ErrNotExist = fs.ErrNotExist
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

// errIndex says that the index beside the write-ahead log could not be made larger. SQLite does not
// say why; most often the disk is full, for which it counts.
type errIndex struct{}

func (errIndex) Error() string {
	return "the index beside the event log (-shm) could not be made larger: no room on the disk, or a limit on the size of files"
}
func (errIndex) Is(target error) bool { return target == ErrFull }

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
	switch code {
	case sqlite3.SQLITE_IOERR_SHMSIZE:
		kind = errIndex{}
	case sqlite3.SQLITE_IOERR_LOCK, sqlite3.SQLITE_IOERR_RDLOCK, sqlite3.SQLITE_IOERR_UNLOCK,
		sqlite3.SQLITE_IOERR_SHMLOCK, sqlite3.SQLITE_IOERR_CHECKRESERVEDLOCK:
		kind = ErrNoLocks
	}
	if kind == nil || errors.Is(err, kind) {
		return err
	}
	if kind == ErrReadOnly && tooManyOpen() {
		kind = ErrManyOpen
	}
	return fmt.Errorf("%w: %w", kind, err)
}

// explainDisk names the file system as the reason why the file at path cannot be written or locked, if
// it is that: SQLite says the same of other reasons.
func explainDisk(path string, err error) error {
	switch dir := filepath.Dir(path); {
	case errors.Is(err, ErrReadOnly) && isReadOnlyDisk(dir):
		return fmt.Errorf("%w: %w", ErrReadOnly, syscall.EROFS)
	case errors.Is(err, ErrBusy) && hasNoLocks(dir):
		return fmt.Errorf("%w: %w", ErrNoLocks, syscall.ENOLCK)
	}
	return err
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

// tooManyOpen reports whether this process can open no file at all: SQLite says of each that it
// cannot be opened.
func tooManyOpen() bool {
	f, err := os.Open(os.DevNull)
	if err == nil {
		_ = f.Close() // nothing was written
	}
	return isManyOpen(err)
}

func isManyOpen(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
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
