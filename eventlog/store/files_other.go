//go:build !unix

package store

import (
	"fmt"
	"os"

	"github.com/perlica/perlica/eventlog/disk"
)

// Files are the files of a log that is open for writing. Such a system keeps open files in their
// places, so that only the database is looked at.
type Files struct {
	Path    string
	DB      os.FileInfo
	Touched error // what was found first: it stays
}

// Links is how many names a file has, as far as is known.
func Links(os.FileInfo) uint64 { return 1 }

func (f *Files) hold() error { return nil }

// Release does nothing: no file is held open.
func (f *Files) Release() {}

// Whole is InPlace.
func (f *Files) Whole() error { return f.InPlace() }

// Rescue does nothing: such a system does not remove files that are open.
func (f *Files) Rescue() error { return nil }

// InPlace returns an error that wraps ErrMoved unless the database lies where it was opened.
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

// HasNoLocks reports false: it is not known.
func HasNoLocks(string) bool { return false }

func isReadOnlyDisk(string) bool { return false }
