//go:build !unix

package store

import (
	"fmt"
	"os"

	"github.com/perlica/perlica/eventlog/disk"
)

// Files are the files of a log that is open for writing. On this system, nobody can move an open file, so only the
// database is checked.
type Files struct {
	Path    string
	DB      os.FileInfo
	Touched error // the first fault that was found; it stays
}

// Links returns 1, because the number of names is not known.
func Links(os.FileInfo) uint64 { return 1 }

func (f *Files) openHeld() error { return nil }

// Release does nothing: no file is held open.
func (f *Files) Release() {}

// Whole returns the result of InPlace.
func (f *Files) Whole() error { return f.InPlace() }

// Rescue does nothing: this system does not remove open files.
func (f *Files) Rescue() error { return nil }

// InPlace returns an error that wraps ErrMoved unless the database is still at the path at which it was opened.
func (f *Files) InPlace() error {
	if f.Touched != nil {
		return f.Touched
	}
	if there, err := os.Lstat(f.Path); err != nil {
		f.Touched = fmt.Errorf("%w: %w", disk.ErrMoved, err)
	} else if !os.SameFile(there, f.DB) {
		f.Touched = fmt.Errorf("%w: another file lies at %s", disk.ErrMoved, f.Path)
	}
	return f.Touched
}

// HasNoLocks returns false, because the answer is not known.
func HasNoLocks(string) bool { return false }

func isReadOnlyDisk(string) bool { return false }
