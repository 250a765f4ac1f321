package disk

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

// projectFolder is the name of a folder in a project. Check refuses links in it: a cloned project may bring a link
// that leads to the user's private files.
const projectFolder = ".perlica_config"

// PathError says that there is a link, a pipe, a device or another special file where a file should be.
type PathError struct{ Path, What string }

func (e *PathError) Error() string {
	return fmt.Sprintf("eventlog: %s is %s, not a file of its own", e.Path, e.What)
}

// Check returns a *PathError if path is a pipe, a socket, a device or another special file. A reader of a pipe could
// wait for ever. Inside a project's folder, Check also refuses a link at path or in its parent folders. Check accepts
// a path without a file.
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
				return &PathError{path[:from+i], "a link"}
			}
		}
		if fi, err := os.Lstat(path); err == nil && fi.Mode()&fs.ModeSymlink != 0 {
			return &PathError{path, "a link"}
		}
	}
	fi, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil || fi.Mode().IsRegular() || fi.IsDir() {
		return nil // Opening the file will report the error.
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
	return &PathError{path, what}
}

// Exposed returns the first path that every user of the machine can write to, or "". It checks the log's files, their
// folder and the two folders above it. A folder with the sticky bit is safe, because users cannot replace files of
// other users there.
func Exposed(path string) string {
	if runtime.GOOS == "windows" {
		return "" // On Windows the mode does not show the permissions.
	}
	dir := path
	for range 3 {
		dir = filepath.Dir(dir)
		if fi, err := os.Stat(dir); err == nil && fi.Mode().Perm()&0o002 != 0 && fi.Mode()&fs.ModeSticky == 0 {
			return dir
		}
	}
	stem := strings.TrimSuffix(path, filepath.Ext(path))
	for _, name := range []string{path, path + "-wal", path + "-shm", stem + ".anchor", stem + ".intents"} {
		if fi, err := os.Stat(name); err == nil && fi.Mode().Perm()&0o002 != 0 {
			return name
		}
	}
	return ""
}

// CheckDatabase calls Check for a database and for the files that SQLite opens together with it.
func CheckDatabase(path string) error {
	for _, suffix := range []string{"", "-wal", "-shm", "-journal"} {
		if err := Check(path + suffix); err != nil {
			return err
		}
	}
	return nil
}

// journalPages is an offset in the header of a rollback journal. The bytes there are the number of pages that the
// database had before the transaction: https://www.sqlite.org/fileformat.html#the_rollback_journal
const (
	journalPages  = 16
	journalHeader = 20
	pageSize      = 8192 // bytes in a page of a new database
)

// CheckJournal returns a *PathError if SQLite would change the log at path by a rollback journal. SQLite would copy
// the journal's pages into the log, or cut the log. A log uses write-ahead mode from its first page on, so it leaves
// no journal. Only the creation of a log may leave one, and that journal contains no page.
func CheckJournal(path string) error {
	size := func(name string) int64 {
		if fi, err := os.Stat(name); err == nil {
			return fi.Size()
		}
		return 0
	}
	// Look at the log before the journal. The creator of a log removes its journal before the log grows. In the other
	// order, a log that grows in between would seem to have the journal of another program.
	isNew := size(path) <= pageSize && size(path+"-wal") == 0
	f, err := os.Open(path + "-journal")
	if err != nil {
		return nil // There is no journal, or SQLite cannot read it.
	}
	defer func() { _ = f.Close() }() // only read
	var head [journalHeader]byte
	if _, err := f.ReadAt(head[:], 0); err != nil || head[0] == 0 {
		return nil // The journal has no header yet, or its transaction is finished.
	}
	if isNew && binary.BigEndian.Uint32(head[journalPages:]) == 0 {
		return nil
	}
	return &PathError{path + "-journal", "the rollback journal of another program"}
}
