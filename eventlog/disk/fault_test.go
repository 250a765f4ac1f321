package disk

import (
	"errors"
	"strings"
	"testing"

	sqlite3 "modernc.org/sqlite/lib"
	direct "zombiezen.com/go/sqlite"
)

// TestWhatSQLiteSaid checks that Explain adds the right fault and words to each error of SQLite.
func TestWhatSQLiteSaid(t *testing.T) {
	for _, tc := range []struct {
		code  int
		is    error
		words string
	}{
		{sqlite3.SQLITE_FULL, ErrFull, "the disk is full"},
		{sqlite3.SQLITE_IOERR_SHMSIZE, ErrFull, "the index beside the event log (-shm) could not be made larger"},
		{sqlite3.SQLITE_IOERR_LOCK, ErrNoLocks, "does not support locks"},
		{sqlite3.SQLITE_IOERR_SHMLOCK, ErrNoLocks, "does not support locks"},
		{sqlite3.SQLITE_IOERR_WRITE, ErrIO, "the disk reports an error"},
		{sqlite3.SQLITE_READONLY, ErrReadOnly, "cannot be written"}, // the code for EROFS
		{sqlite3.SQLITE_READONLY_CANTINIT, ErrReadOnly, "cannot be written"},
		{sqlite3.SQLITE_BUSY, ErrBusy, "another process has locked"},
	} {
		err := Explain(direct.ResultCode(tc.code).ToError())
		if !errors.Is(err, tc.is) || !strings.Contains(err.Error(), tc.words) {
			t.Errorf("code %d: %v", tc.code, err)
		}
		for _, other := range []error{ErrFull, ErrNoLocks, ErrIO, ErrReadOnly, ErrBusy} {
			if other != tc.is && (errors.Is(err, other) || strings.Contains(err.Error(), other.Error())) {
				t.Errorf("code %d is called %q, too: %v", tc.code, other, err)
			}
		}
		if tc.code == sqlite3.SQLITE_IOERR_SHMSIZE && strings.Contains(err.Error(), ErrFull.Error()) {
			t.Errorf("SQLite did not say that the disk is full: %v", err)
		}
	}
}
