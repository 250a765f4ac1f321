package project

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/perlica/perlica/eventlog/disk"
)

// OpenView opens a view at its path. If that path cannot be written, OpenView builds the view in a temporary file.
// The caller calls remove after the view's Close, to delete that file.
func OpenView[T any](path string, open func(path string) (T, error)) (view T, remove func(), err error) {
	view, err = open(path)
	if !errors.Is(err, disk.ErrReadOnly) {
		return view, func() {}, err
	}
	dir, terr := os.MkdirTemp("", "perlica-view-")
	if terr != nil {
		return view, func() {}, errors.Join(err, terr)
	}
	remove = func() { _ = os.RemoveAll(dir) } // a temporary directory
	if view, err = open(filepath.Join(dir, filepath.Base(path))); err != nil {
		remove()
	}
	return view, remove, err
}
