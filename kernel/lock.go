package kernel

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/gofrs/flock"
	"github.com/google/uuid"
)

// errLocked says that another process, or another run of this one, holds a lock.
var errLocked = errors.New("locked")

// fileLock is held until release is called or the process dies.
type fileLock struct{ f *flock.Flock }

// acquire takes the lock at path, or returns errLocked. The file is removed with the
// lock, so a lock counts only if the file that was locked is still the one at path.
func acquire(path string) (*fileLock, error) {
	for {
		f := flock.New(path, flock.SetPermissions(0o600))
		ok, err := f.TryLock()
		if err != nil {
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
		if !ok {
			return nil, errors.Join(errLocked, f.Close())
		}
		current, err := isCurrent(f, path)
		if err == nil && current {
			return &fileLock{f}, nil
		}
		if cerr := f.Close(); err != nil || cerr != nil {
			return nil, errors.Join(err, cerr)
		}
	}
}

// isCurrent reports whether the locked file still lies at path.
func isCurrent(f *flock.Flock, path string) (bool, error) {
	locked, err := f.Stat()
	if err != nil {
		return false, err
	}
	there, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil && os.SameFile(locked, there), err
}

// release removes the file and gives up the lock. A file that stays behind does no harm.
func (l *fileLock) release() {
	_ = os.Remove(l.f.Path()) // Windows refuses while it is open; the empty file stays
	_ = l.f.Close()           // nothing was written
}

// isLocked reports whether a process holds the lock at path. It neither makes nor removes
// the file, and does not keep the lock from whoever asks for it a moment later.
func isLocked(path string) (bool, error) {
	f := flock.New(path, flock.SetFlag(os.O_RDONLY))
	free, err := f.TryRLock()
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("lock %s: %w", path, err)
	}
	return !free, f.Close() // nothing was written
}

func runLockPath(dir, run string) string         { return lockPath(dir, "run", run) }
func sessionLockPath(dir, session string) string { return lockPath(dir, "session", session) }

// lockPath names the lock of what has the id. A log can come with a cloned repository, and
// with it ids that are none: the file is removed in the end, so it must lie in dir.
func lockPath(dir, kind, id string) string {
	if uuid.Validate(id) != nil {
		sum := sha256.Sum256([]byte(id))
		id = hex.EncodeToString(sum[:])
	}
	return filepath.Join(dir, kind+"-"+id+".lock")
}
