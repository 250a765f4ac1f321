// Package filelock is the locks by which processes know of each other: a file for each run and
// each session, locked as long as its process lives.
//
// It promises that a lock is lost with the process that held it, and at no other time; who looks
// whether a lock is held does not keep others from taking it. It starts nothing and waits only where asked.
package filelock

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gofrs/flock"
	"github.com/google/uuid"

	"github.com/perlica/perlica/eventlog/disk"
)

// ErrHeld says that another process, or another run of this one, holds a lock.
var ErrHeld = errors.New("locked")

// Lock is held until Release is called or the process dies.
type Lock struct{ f *flock.Flock }

// A process that looks whether a lock is held holds a share of it for a moment. Acquire tries again
// as often and as long as that may take.
const (
	lookers   = 100
	lookPause = time.Millisecond
)

// Acquire takes the lock at path, or returns ErrHeld. The file is removed with the
// lock, so a lock counts only if the file that was locked is still the one at path.
func Acquire(path string) (*Lock, error) {
	if err := disk.Check(path); err != nil {
		return nil, err
	}
	for tries := 0; ; {
		f := lockFile(path)
		ok, err := f.TryLock()
		if err != nil {
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
		if !ok {
			shared, err := f.TryRLock() // can be had beside those who look, not beside a holder
			if cerr := f.Close(); cerr != nil || err != nil || !shared || tries == lookers {
				return nil, errors.Join(ErrHeld, err, cerr)
			}
			tries++
			time.Sleep(lookPause)
			continue
		}
		current, err := isCurrent(f, path)
		if err == nil && current {
			return &Lock{f}, nil
		}
		if cerr := f.Close(); err != nil || cerr != nil {
			return nil, errors.Join(err, cerr)
		}
	}
}

// lockFile is the file of a lock, to be opened for writing: that a holder has died reaches
// those who watch the folder as the end of writing; that a process has looked does not.
func lockFile(path string) *flock.Flock {
	return flock.New(path, flock.SetPermissions(0o600), flock.SetFlag(os.O_CREATE|os.O_RDWR))
}

// Reserve makes the file of a lock ahead of its use: Take is cheaper than Acquire then. Until it
// is taken the lock counts as free, because a share of it does not keep others from looking.
func Reserve(path string) (*Lock, error) {
	if err := disk.Check(path); err != nil {
		return nil, err
	}
	f := lockFile(path)
	ok, err := f.TryRLock()
	if err == nil && !ok {
		err = ErrHeld
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &Lock{f}, nil
}

// Take makes a lock of one that was reserved, or fails as Acquire does.
func (l *Lock) Take() (*Lock, error) {
	if ok, err := l.f.TryLock(); err == nil && ok {
		if fi, err := l.f.Stat(); err == nil && !removed(fi) { // no other has the file, so none was put in its place
			return l, nil
		}
	}
	_ = l.f.Close() // somebody looks at it, or this system makes no lock of a share
	return Acquire(l.f.Path())
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

// Release removes the file and gives up the lock. A file that stays behind does no harm.
func (l *Lock) Release() {
	_ = os.Remove(l.f.Path()) // Windows refuses while it is open; the empty file stays
	_ = l.f.Close()           // nothing was written
}

// Free gives up the lock at once. Its file is for Sweep to remove: that takes longer than the rest.
func (l *Lock) Free() { _ = l.f.Close() }

// Sweep removes the file of a lock that was given up, unless another process has taken it since. Only
// one may sweep at a path: another, who shares the lock, could remove what a third has made there
// since. To a process that looks the lock counts as free.
func (l *Lock) Sweep() { removeIfFree(flock.New(l.f.Path(), flock.SetFlag(os.O_RDONLY))) }

func removeIfFree(f *flock.Flock) {
	if free, err := f.TryRLock(); err == nil && free {
		// Between its opening and its locking the file may have been replaced, by one that is held.
		if current, err := isCurrent(f, f.Path()); err == nil && current {
			_ = os.Remove(f.Path())
		}
	}
	_ = f.Close() // nothing was written
}

// Held reports whether a process holds the lock at path. It neither makes nor removes
// the file, and does not keep the lock from a process that asks for it a moment later.
func Held(path string) (bool, error) {
	if err := disk.Check(path); err != nil {
		return false, err
	}
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

// Count counts the locks in dir, a context's folder of them: those that processes hold, and
// files that no run holds, of processes that are gone or of conversations at rest. They do no harm.
func Count(dir string) (held, left int, err error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, 0, nil
	}
	if err != nil {
		return 0, 0, err
	}
	sessions := 0
	for _, entry := range entries {
		name := entry.Name()
		if strings.HasPrefix(name, "session-") {
			sessions++ // not tried: a run that starts at this moment would find it busy
			continue
		}
		if !strings.HasPrefix(name, "run-") {
			continue
		}
		alive, err := Held(filepath.Join(dir, name)) // it may hold a digest in the place of the run's id
		switch {
		case err != nil:
			return 0, 0, err
		case alive:
			held++
		default:
			left++
		}
	}
	if held == 0 {
		left += sessions // their holders have gone
	}
	return held, left, nil
}

// Sessions returns who holds which session, of those whose locks lie in dir.
func Sessions(dir string) (map[string]*BusyError, error) {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	holders := map[string]*BusyError{}
	for _, entry := range entries {
		id, ok := strings.CutPrefix(strings.TrimSuffix(entry.Name(), ".lock"), "session-")
		if !ok {
			continue
		}
		path := filepath.Join(dir, entry.Name())
		held, err := Held(path)
		if err != nil {
			return nil, err
		}
		if held {
			holders[id] = Holder(path)
		}
	}
	return holders, nil
}

// Run is the path of a run's lock in dir.
func Run(dir, run string) string { return lockPath(dir, "run", run) }

// Session is the path of a session's lock in dir.
func Session(dir, session string) string { return lockPath(dir, "session", session) }

// Input is the path of the lock of an input that is worked on for a team, in dir.
func Input(dir, input string) string { return lockPath(dir, "input", input) }

// Server is the path of the lock of the process that serves browsers, in the dir of the user's own
// context. The address at which it does is who it is signed by.
func Server(dir string) string { return filepath.Join(dir, "web.lock") }

// lockPath names the lock of what has the id. A log can come with a cloned repository, and
// with it ids that are none: the file is removed in the end, so it must lie in dir.
func lockPath(dir, kind, id string) string {
	if uuid.Validate(id) != nil {
		sum := sha256.Sum256([]byte(id))
		id = hex.EncodeToString(sum[:])
	}
	return filepath.Join(dir, kind+"-"+id+".lock")
}

// ErrBusy says that a session's lock is held.
var ErrBusy = errors.New("the session is busy with another run")

// A BusyError is ErrBusy with what is known of who holds the session.
type BusyError struct {
	By    string    `json:"by"` // "chat", "service"; empty: not known, or a single run
	PID   int       `json:"pid"`
	Since time.Time `json:"since"`
}

func (e *BusyError) Error() string {
	if e.By == "" {
		return ErrBusy.Error()
	}
	return fmt.Sprintf("a %s (process %d) has held the session since %s", e.By, e.PID, e.Since.Local().Format(time.DateTime))
}

// Is reports whether target is ErrBusy.
func (e *BusyError) Is(target error) bool { return target == ErrBusy }

// Sign says in the lock's file who holds it. Where that cannot be written the lock holds all
// the same.
func (l *Lock) Sign(by string, now time.Time) {
	b, err := json.Marshal(BusyError{By: by, PID: os.Getpid(), Since: now.UTC()})
	if err == nil {
		_ = os.WriteFile(l.f.Path(), b, 0o600)
	}
}

// Holder says who holds the lock at path, as far as its file tells.
func Holder(path string) *BusyError {
	e := &BusyError{}
	if b, err := os.ReadFile(path); err != nil || json.Unmarshal(b, e) != nil {
		return &BusyError{}
	}
	return e
}

// AcquireSession takes the lock of a session, or returns a *BusyError. With wait it waits for it.
func AcquireSession(ctx context.Context, path string, wait bool) (lock *Lock, err error) {
	err = Poll(ctx, wait, func() (err error) {
		if lock, err = Acquire(path); errors.Is(err, ErrHeld) {
			err = Holder(path)
		}
		return err
	}, ErrBusy)
	return lock, err
}

// PollEvery is how often Poll tries again.
const PollEvery = 100 * time.Millisecond

// Poll tries until the error is not busy any more; without wait it tries once.
func Poll(ctx context.Context, wait bool, try func() error, busy error) error {
	for {
		err := try()
		if !wait || !errors.Is(err, busy) {
			return err
		}
		select {
		case <-time.After(PollEvery):
		case <-ctx.Done():
			return errors.Join(err, context.Cause(ctx))
		}
	}
}
