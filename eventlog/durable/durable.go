// Package durable makes files survive a power failure: their bytes, and their names in a folder.
//
// It promises that who reads a file that it replaces sees the old one or the new one, whole, also
// after a crash. It knows nothing of logs.
package durable

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// SyncDir makes the names in dir survive a power failure, where the system can do that.
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

// WriteFile writes data into a new file beside path and has name give it that name when it is on
// disk: os.Rename replaces what is there, os.Link fails if something is.
func WriteFile(path string, data []byte, mode fs.FileMode, name func(from, to string) error) (err error) {
	dir := filepath.Dir(path)
	f, err := os.CreateTemp(dir, "."+strings.TrimPrefix(filepath.Base(path), ".")+".*.tmp") // 0600
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(f.Name()) }() // it has its name, or is worth nothing
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
