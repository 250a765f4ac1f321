//go:build unix

package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/perlica/perlica/eventlog/disk"
)

// Files are the three files of a log that is open for writing: the database, its write-ahead log (-wal) and the index
// of the write-ahead log (-shm). SQLite opens each of them once and does not check them later. If another program
// removes, cuts or replaces one, SQLite writes to a deleted file, or moves wrong pages into the database.
type Files struct {
	Path     string
	DB       os.FileInfo // describes the database as it was opened
	wal, shm os.FileInfo
	frames   *os.File // the write-ahead log, for reading; SQLite has no locks on it
	index    *os.File // the -shm file, from openIndexes
	Touched  error    // the first fault that was found; it stays
}

// openIndexes are the -shm files that this process has opened in addition to SQLite. POSIX locks belong to a process
// and not to a file descriptor. Closing one of these files would release SQLite's locks on the file. So the files
// stay open until they have been deleted. The last process that closes a log deletes its -shm file.
var openIndexes struct {
	sync.Mutex
	Files []*os.File
}

// openIndex opens the -shm file of a log.
func openIndex(name string) (*os.File, error) {
	openIndexes.Lock()
	defer openIndexes.Unlock()
	want, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	closeIndexes()
	for _, f := range openIndexes.Files {
		if fi, err := f.Stat(); err == nil && os.SameFile(fi, want) {
			return f, nil
		}
	}
	f, err := os.Open(name)
	if err == nil {
		openIndexes.Files = append(openIndexes.Files, f)
	}
	return f, err
}

// closeIndexes closes the files of openIndexes that have been deleted. The caller has locked openIndexes.
func closeIndexes() {
	openIndexes.Files = slices.DeleteFunc(openIndexes.Files, func(f *os.File) bool {
		fi, err := f.Stat()
		gone := err == nil && Links(fi) == 0
		if gone {
			_ = f.Close() // only read
		}
		return gone
	})
}

// Links returns the number of names of a file.
func Links(fi os.FileInfo) uint64 {
	if st, ok := fi.Sys().(*syscall.Stat_t); ok {
		return uint64(st.Nlink)
	}
	return 1
}

// openHeld opens the -wal and -shm files after SQLite has opened them, and stores them in f.
func (f *Files) openHeld() (err error) {
	if f.frames, err = os.OpenFile(f.Path+"-wal", os.O_RDONLY|syscall.O_NOFOLLOW, 0); err != nil {
		return err
	}
	if f.wal, err = f.frames.Stat(); err != nil {
		return err
	}
	if f.index, err = openIndex(f.Path + "-shm"); err != nil {
		return err
	}
	f.shm, err = f.index.Stat()
	return err
}

// Release closes the files of openHeld. SQLite must have closed the log before.
func (f *Files) Release() {
	if f.frames != nil {
		_ = f.frames.Close() // only read
	}
	f.frames, f.index = nil, nil
	openIndexes.Lock()
	defer openIndexes.Unlock()
	closeIndexes()
}

// InPlace returns an error that wraps ErrMoved unless the three files are still at the paths at which they were
// opened.
func (f *Files) InPlace() error {
	if f.Touched == nil {
		_, f.Touched = f.lookInPlace()
	}
	return f.Touched
}

// lookInPlace checks the three files as InPlace does. It returns the length of the write-ahead log in bytes.
func (f *Files) lookInPlace() (wal int64, err error) {
	if _, err = f.checkSame("", "the database", f.DB); err != nil || f.frames == nil {
		return 0, err
	}
	there, err := f.checkSame("-wal", "its write-ahead log", f.wal)
	if err != nil {
		return 0, err
	}
	shm, err := f.checkSame("-shm", "the index of its write-ahead log", f.shm)
	if err == nil && shm.Size() < f.shm.Size() {
		err = fmt.Errorf("%w: the index of its write-ahead log was cut", disk.ErrMoved)
	}
	return there.Size(), err
}

// checkSame returns the file at f.Path+suffix. It returns an error if that is not the opened file, or if the file has a
// second name. The parameter noun is the file's name in that error.
func (f *Files) checkSame(suffix, noun string, opened os.FileInfo) (os.FileInfo, error) {
	there, err := os.Lstat(f.Path + suffix)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%w: %s is gone", disk.ErrMoved, noun)
	case err != nil:
		return nil, fmt.Errorf("%w: %s: %w", disk.ErrMoved, noun, err)
	case !os.SameFile(there, opened):
		return nil, fmt.Errorf("%w: %s is another file than was opened", disk.ErrMoved, noun)
	case Links(there) > 1:
		return nil, fmt.Errorf("%w: %s has got a second name", disk.ErrMoved, noun)
	}
	return there, nil
}

// These are offsets and sizes, in bytes, in the -shm file and the write-ahead log:
// https://www.sqlite.org/walformat.html
const (
	indexHeader  = 48
	indexPage    = 14 // two bytes; 1 means 65536
	indexFrames  = 16 // four bytes: the number of committed frames
	indexSalts   = 32 // eight bytes, as in the write-ahead log
	walHeader    = 32
	walSalts     = 16
	frameHeader  = 24
	saltsLength  = 8
	hugePageSize = 65536
)

// Whole does the checks of InPlace. It also checks that the index and the write-ahead log have the same number of
// frames and the same salts. The caller has the write lock.
func (f *Files) Whole() error {
	if f.Touched != nil {
		return f.Touched
	}
	size, err := f.lookInPlace()
	if err == nil && f.frames != nil {
		err = f.checkIndex(size)
	}
	f.Touched = err
	return err
}

func (f *Files) checkIndex(size int64) error {
	var index [indexHeader]byte
	if _, err := f.index.ReadAt(index[:], 0); err != nil {
		return fmt.Errorf("%w: the index of its write-ahead log: %w", disk.ErrMoved, err)
	}
	frames := int64(binary.NativeEndian.Uint32(index[indexFrames:]))
	if frames == 0 {
		return nil
	}
	page := int64(binary.NativeEndian.Uint16(index[indexPage:]))
	if page == 1 {
		page = hugePageSize
	}
	var head [walHeader]byte
	if size >= walHeader {
		if _, err := f.frames.ReadAt(head[:], 0); err != nil {
			return fmt.Errorf("%w: its write-ahead log: %w", disk.ErrMoved, err)
		}
	}
	if size < walHeader+frames*(page+frameHeader) ||
		string(head[walSalts:walSalts+saltsLength]) != string(index[indexSalts:indexSalts+saltsLength]) {
		return fmt.Errorf("%w: its write-ahead log was cut or overwritten", disk.ErrMoved)
	}
	return nil
}

// Rescue writes the write-ahead log to its path again if another program deleted it. This process still has it open,
// and its events would be lost when the process ends. Rescue does not overwrite a file.
func (f *Files) Rescue() error {
	if f.frames == nil || f.Touched == nil {
		return nil
	}
	if there, err := os.Stat(f.Path); err != nil || !os.SameFile(there, f.DB) {
		return nil // The write-ahead log belongs to the old database, and another one is at this path.
	}
	if _, err := os.Lstat(f.Path + "-wal"); !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	size, err := f.frames.Seek(0, 2)
	if err != nil || size == 0 {
		return err
	}
	return f.putBack(size)
}

func (f *Files) putBack(size int64) (err error) {
	b := make([]byte, size)
	if _, err := f.frames.ReadAt(b, 0); err != nil {
		return err
	}
	unfinished := f.Path + fmt.Sprintf("-wal-%d", os.Getpid())
	out, err := os.OpenFile(unfinished, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = out.Write(b)
	if err = errors.Join(err, out.Sync(), out.Close()); err == nil {
		err = os.Link(unfinished, f.Path+"-wal") // os.Link fails if another process made the file first.
	}
	if err = errors.Join(err, os.Remove(unfinished)); err != nil {
		return err
	}
	return disk.SyncDir(filepath.Dir(f.Path))
}

// isReadOnlyDisk reports whether the file system of dir is read-only. SQLite only says that it cannot open its files.
func isReadOnlyDisk(dir string) bool { return errors.Is(unix.Access(dir, unix.W_OK), unix.EROFS) }

// HasNoLocks reports whether files in dir cannot be locked. SQLite reports that as a lock of another process.
func HasNoLocks(dir string) bool {
	f, err := os.CreateTemp(dir, ".perlica-lock-")
	if err != nil {
		return false
	}
	lock := unix.Flock_t{Type: unix.F_WRLCK, Whence: 0, Len: 1}
	err = unix.FcntlFlock(f.Fd(), unix.F_SETLK, &lock)
	_ = errors.Join(f.Close(), os.Remove(f.Name())) // a temporary file
	return errors.Is(err, syscall.ENOLCK)
}
