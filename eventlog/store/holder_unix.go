//go:build unix

package store

import (
	"errors"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	"github.com/perlica/perlica/eventlog/disk"
)

// These are the bytes that SQLite locks. In WAL mode, a writer locks a byte of the -shm file. In another mode, a
// writer locks bytes of the database at a high offset. See https://www.sqlite.org/walformat.html#locks and the file
// os.h of SQLite.
const (
	walWriteByte  = 120
	pendingByte   = 0x40000000
	reservedByte  = pendingByte + 1
	sharedFirst   = pendingByte + 2
	sharedLength  = 510
	unknownHolder = -1
)

// WriteLockHolder returns the id of the process that has the write lock of the log at path. It returns 0 if the lock
// is free, and -1 if the id is not known. A log in use is locked only for short moments. This process must not have
// the log open, because closing a second file descriptor would release SQLite's locks.
func WriteLockHolder(path string) (pid int, err error) {
	if err := disk.CheckDatabase(path); err != nil {
		return 0, err
	}
	for _, l := range []struct {
		path         string
		kind         int16
		start, bytes int64
	}{
		{path + "-shm", unix.F_WRLCK, walWriteByte, 1},
		{path, unix.F_WRLCK, reservedByte, 1},
		{path, unix.F_WRLCK, pendingByte, 1},
		{path, unix.F_RDLCK, sharedFirst, sharedLength},
	} {
		pid, err = lockHolder(l.path, l.kind, l.start, l.bytes)
		if pid != 0 || err != nil {
			return pid, err
		}
	}
	return 0, nil
}

// lockHolder returns the process with a lock that prevents a lock of this kind on these bytes. It takes no lock itself.
// Its results are the same as the results of WriteLockHolder.
func lockHolder(path string, kind int16, start, bytes int64) (pid int, err error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	lk := unix.Flock_t{Type: kind, Whence: io.SeekStart, Start: start, Len: bytes}
	if err := unix.FcntlFlock(f.Fd(), unix.F_GETLK, &lk); err != nil {
		return 0, err
	}
	if lk.Type == unix.F_UNLCK {
		return 0, nil
	}
	if lk.Pid <= 0 { // the process is in another namespace
		return unknownHolder, nil
	}
	return int(lk.Pid), nil
}
