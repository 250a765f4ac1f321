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

// Files are the three files of a log that is open for writing: the database, its write-ahead log
// (-wal) and the index of that (-shm). SQLite opens each of them once and trusts it from then on.
// Where somebody removes, cuts or replaces one, it goes on in a file that no one can find again, or
// moves pages into the database that are no longer those that were written.
type Files struct {
	Path     string
	DB       os.FileInfo // what lay at path
	wal, shm os.FileInfo
	frames   *os.File // the write-ahead log, to read from; SQLite locks no byte of it
	index    *os.File // the -shm, of openIndexes
	Touched  error    // what was found first: it stays
}

// openIndexes are the -shm files that this process has opened beside SQLite. To close one would
// give up the locks that SQLite has on it (POSIX locks belong to a process, not to a file
// descriptor), so they stay open until no one else can find them: the last to close a log removes it.
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

// closeIndexes closes those of openIndexes, which the caller has locked, that no one else can find any more.
func closeIndexes() {
	openIndexes.Files = slices.DeleteFunc(openIndexes.Files, func(f *os.File) bool {
		fi, err := f.Stat()
		gone := err == nil && Links(fi) == 0
		if gone {
			_ = f.Close() // it was read from only
		}
		return gone
	})
}

// Links is how many names a file has.
func Links(fi os.FileInfo) uint64 {
	if st, ok := fi.Sys().(*syscall.Stat_t); ok {
		return uint64(st.Nlink)
	}
	return 1
}

// hold looks which files SQLite has just opened.
func (f *Files) hold() (err error) {
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

// Release closes what hold opened. SQLite has closed the log.
func (f *Files) Release() {
	if f.frames != nil {
		_ = f.frames.Close() // it was read from only
	}
	f.frames, f.index = nil, nil
	openIndexes.Lock()
	defer openIndexes.Unlock()
	closeIndexes()
}

// InPlace returns an error that wraps ErrMoved unless the three files lie where they were opened.
func (f *Files) InPlace() error {
	if f.Touched == nil {
		_, f.Touched = f.look()
	}
	return f.Touched
}

// look is inPlace; it returns the length of the write-ahead log.
func (f *Files) look() (wal int64, err error) {
	if _, err = f.same("", "the database", f.DB); err != nil || f.frames == nil {
		return 0, err
	}
	there, err := f.same("-wal", "its write-ahead log", f.wal)
	if err != nil {
		return 0, err
	}
	shm, err := f.same("-shm", "the index of its write-ahead log", f.shm)
	if err == nil && shm.Size() < f.shm.Size() {
		err = fmt.Errorf("%w: the index of its write-ahead log was cut", disk.ErrMoved)
	}
	return there.Size(), err
}

// same returns what lies at a name, which must be what was opened, under this name alone.
func (f *Files) same(suffix, what string, opened os.FileInfo) (os.FileInfo, error) {
	there, err := os.Lstat(f.Path + suffix)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%w: %s is gone", disk.ErrMoved, what)
	case err != nil:
		return nil, fmt.Errorf("%w: %s: %w", disk.ErrMoved, what, err)
	case !os.SameFile(there, opened):
		return nil, fmt.Errorf("%w: %s is another file than was opened", disk.ErrMoved, what)
	case Links(there) > 1:
		return nil, fmt.Errorf("%w: %s has got a second name", disk.ErrMoved, what)
	}
	return there, nil
}

// Where the -shm file says what the write-ahead log holds: https://www.sqlite.org/walformat.html
const (
	indexHeader  = 48
	indexPage    = 14 // two bytes; 1 means 65536
	indexFrames  = 16 // four bytes: how many frames are committed
	indexSalts   = 32 // eight bytes, as in the write-ahead log
	walHeader    = 32
	walSalts     = 16
	frameHeader  = 24
	saltsLength  = 8
	hugePageSize = 65536
)

// Whole is inPlace under the write lock: then the index and the write-ahead log must also agree,
// which frames there are and of which beginning they are (its salts).
func (f *Files) Whole() error {
	if f.Touched != nil {
		return f.Touched
	}
	size, err := f.look()
	if err == nil && f.frames != nil {
		err = f.agree(size)
	}
	f.Touched = err
	return err
}

func (f *Files) agree(size int64) error {
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

// Rescue puts the write-ahead log back that this process has open and no one finds any more: what
// was acknowledged would be gone with the process. What lies there now is not touched.
func (f *Files) Rescue() error {
	if f.frames == nil || f.Touched == nil {
		return nil
	}
	if there, err := os.Stat(f.Path); err != nil || !os.SameFile(there, f.DB) {
		return nil // it belongs to another file
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
		err = os.Link(unfinished, f.Path+"-wal") // unless another process was faster
	}
	if err = errors.Join(err, os.Remove(unfinished)); err != nil {
		return err
	}
	return disk.SyncDir(filepath.Dir(f.Path))
}

// isReadOnlyDisk reports whether the file system on which dir lies takes no writes from anybody: of its
// files SQLite says no more than that they cannot be opened.
func isReadOnlyDisk(dir string) bool { return errors.Is(unix.Access(dir, unix.W_OK), unix.EROFS) }

// HasNoLocks reports whether no file in dir can be locked, which SQLite takes for a lock of another.
func HasNoLocks(dir string) bool {
	f, err := os.CreateTemp(dir, ".perlica-lock-")
	if err != nil {
		return false
	}
	lock := unix.Flock_t{Type: unix.F_WRLCK, Whence: 0, Len: 1}
	err = unix.FcntlFlock(f.Fd(), unix.F_SETLK, &lock)
	_ = errors.Join(f.Close(), os.Remove(f.Name())) // it was made for this
	return errors.Is(err, syscall.ENOLCK)
}
