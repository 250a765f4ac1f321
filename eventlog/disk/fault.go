package disk

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

	"github.com/perlica/perlica/eventlog/message"
)

// These are the faults of a log. Errors of eventlog and of the packages below it wrap them. Test
// for them with errors.Is.
var (
	ErrClosed   = message.New("disk.closed", "the event log is closed")
	ErrFull     = message.New("disk.full", "the disk is full")
	ErrReadOnly = message.New("disk.read-only", "the event log cannot be written")
	ErrBusy     = message.New("disk.busy", "another process has locked the event log")
	ErrIO       = message.New("disk.io", "the disk reports an error")
	ErrCorrupt  = message.New("disk.corrupt", "the event log is damaged")
	ErrMoved    = message.New("disk.moved", "the event log was moved, deleted or changed by others while it was open")
	ErrForeign  = message.New("disk.foreign", "not an event log of Perlica")
	ErrNoLocks  = message.New("disk.no-locks", "the disk of the event log does not support locks")
	ErrManyOpen = message.New("disk.many-open", "too many files are open")
	ErrVersion  = message.New("disk.version", "the event log was written by another version of Perlica")
	ErrPart     = message.New("disk.part",
		"this file contains only a part of a log: it can be read, but not extended")
	ErrNotExist = fs.ErrNotExist
)

// errIndex says that the index of the write-ahead log could not grow. SQLite does not give the reason. The error
// counts as ErrFull, because a full disk is the most frequent reason.
type errIndex struct{}

func (errIndex) Error() string {
	return "the index beside the event log (-shm) could not be made larger: no room on the disk, or a limit on the " +
		"size of files"
}
func (errIndex) Is(target error) bool { return target == ErrFull }

// Explain wraps an error of SQLite in one of the errors above.
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

// codeOf returns the SQLite code of an error. The error may come from either of the two drivers. codeOf returns 0 for
// nil.
func codeOf(err error) int {
	var se *sqlite.Error
	if errors.As(err, &se) {
		return se.Code()
	}
	if err == nil {
		return 0
	}
	// For an error of another package, ErrCode returns SQLITE_ERROR. That is harmless, because Explain has no entry for
	// it.
	return int(direct.ErrCode(err))
}

// IsConstraint reports whether err says that a constraint of the schema was violated.
func IsConstraint(err error) bool {
	var se *sqlite.Error
	return errors.As(err, &se) && se.Code()&0xff == sqlite3.SQLITE_CONSTRAINT
}

// filesOfALog is the number of files that SQLite opens for a log: the database, the write-ahead
// log, its index, and the folder for syncing it.
const filesOfALog = 4

// tooManyOpen reports whether this process cannot open as many files as a log needs. The error of SQLite does not give
// this reason, so tooManyOpen tries to open that many files. SQLite has closed its own files by then.
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

// IsManyOpen reports whether err says that the process or the system has too many files open.
func IsManyOpen(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}

// IsNoSpace reports whether a file operation failed because the disk is full or a file would be too large.
func IsNoSpace(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EFBIG)
}

// IsScan reports whether err is not an error of SQLite. Such an error means that a value does not have the type of
// its column.
func IsScan(err error) bool {
	var se *sqlite.Error
	return !errors.As(err, &se) && !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded)
}

// IsBroken reports whether err says that the file exists and is damaged.
func IsBroken(err error) bool { return errors.Is(err, ErrCorrupt) || errors.Is(err, ErrForeign) }

// A LinkedError says that the file of a log has several names. SQLite keeps a separate write-ahead
// log for each name, so processes that use different names would overwrite each other's events.
// Perlica writes nothing to such a file.
type LinkedError struct{ Path string }

var linked = message.New("disk.linked",
	"eventlog: %s has more than one name (hard links), so other programs could write to it through "+
		"another name")

// Tell returns the sentence of the error.
func (e *LinkedError) Tell() *message.Text { return linked.With(e.Path) }

func (e *LinkedError) Error() string { return e.Tell().Text }

// Hint returns a command that copies the log to a file with a single name.
func (e *LinkedError) Hint() string {
	return fmt.Sprintf(
		"end what has it open, then make a copy of it this log's file: cp -p '%[1]s' '%[1]s.copy' && mv '%[1]s.copy' '%[1]s'",
		e.Path)
}

// A SettingError says that a setting of SQLite or of the log's file differs from the required
// value.
type SettingError struct{ Name, Got, Want string }

func (e *SettingError) Error() string {
	return fmt.Sprintf("eventlog: %s is %q, not %q", e.Name, e.Got, e.Want)
}

// ErrUnfinished says that a pruning names a run without an outcome. Pruning keeps the payloads of such a run, because
// they are its only record.
var ErrUnfinished = message.New("disk.unfinished", "the run has no outcome yet")
