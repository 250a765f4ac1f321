// Package folder is about the folder that a log lies in: what may lie there in the place of a
// file, room for what is not finished, and how much space there is.
//
// It promises that nothing is opened where a cloned project could have put a link, a pipe or a
// device. It opens no log.
package folder

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// projectFolder is the folder of a project below which nothing may be a link: a clone may bring
// it, and a link there leads to files of the user's that are no one else's business.
const projectFolder = ".perlica_config"

// Error says that a link, a pipe, a device or a file of another kind lies in the place of a file.
type Error struct{ Path, What string }

func (e *Error) Error() string {
	return fmt.Sprintf("eventlog: %s is %s, not a file of its own", e.Path, e.What)
}

// Check returns an *Error unless a file of its own lies at path, or nothing: no pipe, whose
// reader would wait for ever, no device and, below a project's folder, no link, nor is a folder on
// the way there one.
func Check(path string) error {
	path, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	if at := strings.LastIndex(path, string(filepath.Separator)+projectFolder+string(filepath.Separator)); at >= 0 {
		from := at + len(projectFolder) + 2
		for i := range path[from:] {
			if path[from+i] != filepath.Separator {
				continue
			}
			if fi, err := os.Lstat(path[:from+i]); err == nil && fi.Mode()&fs.ModeSymlink != 0 {
				return &Error{path[:from+i], "a link"}
			}
		}
		if fi, err := os.Lstat(path); err == nil && fi.Mode()&fs.ModeSymlink != 0 {
			return &Error{path, "a link"}
		}
	}
	fi, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil || fi.Mode().IsRegular() || fi.IsDir() {
		return nil // who opens it says what is wrong
	}
	what := "no file"
	switch mode := fi.Mode(); {
	case mode&fs.ModeNamedPipe != 0:
		what = "a pipe"
	case mode&fs.ModeSocket != 0:
		what = "a socket"
	case mode&fs.ModeDevice != 0:
		what = "a device"
	}
	return &Error{path, what}
}

// Exposed returns the first of a log's folder and files that every user of the machine can write, and ""
// if there is none. In a folder with the sticky bit nobody can replace the files of others.
func Exposed(path string) string {
	if runtime.GOOS == "windows" {
		return "" // permissions there are not in the mode
	}
	if fi, err := os.Stat(filepath.Dir(path)); err == nil && fi.Mode().Perm()&0o002 != 0 && fi.Mode()&fs.ModeSticky == 0 {
		return filepath.Dir(path)
	}
	for _, name := range []string{path, path + "-wal", path + "-shm"} {
		if fi, err := os.Stat(name); err == nil && fi.Mode().Perm()&0o002 != 0 {
			return name
		}
	}
	return ""
}

// CheckDatabase is Check for a database and what SQLite opens beside it.
func CheckDatabase(path string) error {
	for _, suffix := range []string{"", "-wal", "-shm", "-journal"} {
		if err := Check(path + suffix); err != nil {
			return err
		}
	}
	return nil
}

// Where a rollback journal says how many pages the database had when it was begun:
// https://www.sqlite.org/fileformat.html#the_rollback_journal
const (
	journalPages  = 16
	journalHeader = 20
	pageSize      = 8192 // of a database that was just made
)

// CheckJournal returns an *Error if SQLite would put the pages of a rollback journal into the
// log at path, or cut it. A log leaves none: it is in write-ahead mode from its first page on. Only
// that of a file that was being made may lie there; it holds no page.
func CheckJournal(path string) error {
	f, err := os.Open(path + "-journal")
	if err != nil {
		return nil // there is none, or SQLite cannot read it either
	}
	defer func() { _ = f.Close() }() // it was read from only
	var head [journalHeader]byte
	if _, err := f.ReadAt(head[:], 0); err != nil || head[0] == 0 {
		return nil // it was not begun, or is over
	}
	size := func(name string) int64 {
		if fi, err := os.Stat(name); err == nil {
			return fi.Size()
		}
		return 0
	}
	if binary.BigEndian.Uint32(head[journalPages:]) == 0 && size(path) <= pageSize && size(path+"-wal") == 0 {
		return nil
	}
	return &Error{path + "-journal", "the rollback journal of another program"}
}
