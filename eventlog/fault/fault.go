// Package fault is what can go wrong with the file of a log, each fault with an error of its own.
//
// It promises that an error of SQLite or of the system, whichever way it came, wraps the fault that
// it stands for. It repairs nothing.
package fault

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
	direct "zombiezen.com/go/sqlite"
)

// What can be wrong with a log. Errors of eventlog and the packages below it wrap one of them where it
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

// errIndex says that the index beside the write-ahead log could not be made larger. SQLite does not
// say why; most often the disk is full, for which it counts.
type errIndex struct{}

func (errIndex) Error() string {
	return "the index beside the event log (-shm) could not be made larger: no room on the disk, or a limit on the size of files"
}
func (errIndex) Is(target error) bool { return target == ErrFull }

// Explain puts the sentinel that names the fault in front of an error of SQLite.
func Explain(err error) error {
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
	if kind == nil || errors.Is(err, kind) || errors.Is(err, ErrManyOpen) {
		return err
	}
	if kind == ErrReadOnly && tooManyOpen() {
		kind = ErrManyOpen
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

// IsConstraint reports whether err is a violated constraint of the schema.
func IsConstraint(err error) bool {
	var se *sqlite.Error
	return errors.As(err, &se) && se.Code()&0xff == sqlite3.SQLITE_CONSTRAINT
}

// filesOfALog are the files that SQLite opens for a log: itself, its write-ahead log, the index of that,
// and their folder, to sync it.
const filesOfALog = 4

// tooManyOpen reports whether this process cannot open the files of a log, whatever they are: SQLite
// says of each that it cannot be opened, and has closed those that it had by then.
func tooManyOpen() bool {
	for range filesOfALog {
		f, err := os.Open(os.DevNull)
		if err != nil {
			return IsManyOpen(err)
		}
		defer func() { _ = f.Close() }() // nothing was written
	}
	return false
}

// IsManyOpen reports whether err says that the process, or the system, has too many files open.
func IsManyOpen(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}

// IsNoSpace reports whether a file operation failed for want of space.
func IsNoSpace(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EFBIG)
}

// IsScan reports whether err is none of SQLite's: the value is of another type than the schema's.
func IsScan(err error) bool {
	var se *sqlite.Error
	return !errors.As(err, &se) && !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded)
}

// IsBroken reports whether an error is of a file that is damaged there.
func IsBroken(err error) bool { return errors.Is(err, ErrCorrupt) || errors.Is(err, ErrForeign) }

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
