//go:build !unix

package eventlog

import (
	"fmt"
	"os"

	"github.com/perlica/perlica/eventlog/fault"
)

// files are the files of a log that is open for writing. Such a system keeps open files in their
// places, so that only the database is looked at.
type files struct {
	path    string
	db      os.FileInfo
	touched error // what was found first: it stays
}

func links(os.FileInfo) uint64 { return 1 }

func (f *files) hold() error   { return nil }
func (f *files) release()      {}
func (f *files) whole() error  { return f.inPlace() }
func (f *files) rescue() error { return nil }

// inPlace returns an error that wraps ErrMoved unless the database lies where it was opened.
func (f *files) inPlace() error {
	if f.touched != nil {
		return f.touched
	}
	if there, err := os.Lstat(f.path); err != nil {
		f.touched = fmt.Errorf("%w: %w", fault.ErrMoved, err)
	} else if !os.SameFile(there, f.db) {
		f.touched = fmt.Errorf("%w: another file lies at %s", fault.ErrMoved, f.path)
	}
	return f.touched
}

func hasNoLocks(string) bool { return false }
