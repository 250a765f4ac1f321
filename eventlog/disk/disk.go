// Package disk replaces whole files, checks the folder of a log, and explains faults of the log's files. It also
// makes scratch folders for unfinished files.
//
// A reader of a replaced file sees the whole old file or the whole new file, also after a crash. Check finds a link,
// a pipe or a device in a cloned project before a file is opened. Explain adds one of the errors of this package to
// an error of SQLite or of the system. The package opens no log and repairs nothing.
package disk

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// SyncDir makes the file names in dir survive a power failure if the system can do that.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	err = d.Sync()
	if errors.Is(err, errors.ErrUnsupported) || os.PathSeparator == '\\' {
		err = nil
	}
	return errors.Join(err, d.Close())
}

// WriteFile writes data into a temporary file in the folder of path and syncs it. Then it calls the function "name" to
// rename the temporary file. With os.Rename, WriteFile replaces an existing file. With os.Link, it fails if path
// exists.
func WriteFile(path string, data []byte, mode fs.FileMode, name func(from, to string) error) (err error) {
	dir := filepath.Dir(path)
	f, err := os.CreateTemp(dir, "."+strings.TrimPrefix(filepath.Base(path), ".")+".*.tmp") // mode 0600
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(f.Name()) }() // The file has been renamed, or it is incomplete.
	if err = f.Chmod(mode); os.PathSeparator == '\\' {
		err = nil
	}
	if err == nil {
		_, err = f.Write(data)
	}
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := name(f.Name(), path); err != nil {
		return err
	}
	return SyncDir(dir)
}
