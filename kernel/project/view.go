package project

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/perlica/perlica/eventlog/disk"
)

// OpenView opens a database view at its path. If that path cannot be written, it builds the view in a temporary file.
// The caller calls the function remove after closing the view. That deletes the temporary file.
func OpenView[T any](path string, open func(path string) (T, error)) (view T, remove func(), err error) {
	view, err = open(path)
	if !errors.Is(err, disk.ErrReadOnly) {
		return view, func() {}, err
	}
	dir, terr := os.MkdirTemp("", "perlica-view-")
	if terr != nil {
		return view, func() {}, errors.Join(err, terr)
	}
	remove = func() { _ = os.RemoveAll(dir) } // the folder is only temporary
	if view, err = open(filepath.Join(dir, filepath.Base(path))); err != nil {
		remove()
	}
	return view, remove, err
}
