// Package filelock has the locks by which processes find each other: a locked file for each run and each session.
//
// A lock ends with its process, and at no other time. Checking a lock does not keep another process from taking it.
// The package starts nothing, and waits only if the caller asks for it.
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
	"github.com/perlica/perlica/eventlog/message"
)

// ErrHeld says that another process, or another run of this one, holds a lock.
var ErrHeld = errors.New("locked")

// Lock is held until Release is called or the process dies.
type Lock struct{ f *flock.Flock }

// A process that checks a lock holds it shared for a moment. Acquire tries again for at least that time.
const (
	lookers   = 100
	lookPause = time.Millisecond
)

// Acquire takes the lock at path, or returns ErrHeld. Release removes the file, so a lock counts only if the locked
// file still lies at path.
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
			shared, err := f.TryRLock() // succeeds while other processes check the lock, not while one holds it
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

// lockFile returns the file of a lock, to be opened for writing. So a watcher of the folder sees the death of a
// holder as the end of writing. A check opens the file for reading only, and the watcher does not see it.
func lockFile(path string) *flock.Flock {
	return flock.New(path, flock.SetPermissions(0o600), flock.SetFlag(os.O_CREATE|os.O_RDWR))
}

// Reserve makes the file of a lock before its use, so that Take is cheaper than Acquire. Until Take, the lock
// counts as free, because a shared lock does not disturb a check.
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

// Take turns a reservation into a lock, or fails as Acquire does.
func (l *Lock) Take() (*Lock, error) {
	if ok, err := l.f.TryLock(); err == nil && ok {
		if fi, err := l.f.Stat(); err == nil && !removed(fi) { // no other process has the file, so none replaced it
			return l, nil
		}
	}
	_ = l.f.Close() // another process checks the lock, or this system cannot upgrade a shared lock
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

// Release removes the file and releases the lock. A remaining file does no harm.
func (l *Lock) Release() {
	_ = os.Remove(l.f.Path()) // Windows refuses to remove an open file, and the empty file stays
	_ = l.f.Close()           // nothing was written
}

// Free releases the lock at once and leaves its file to Sweep, because the removal takes longer.
func (l *Lock) Free() { _ = l.f.Close() }

// Sweep removes the file of a freed lock unless another process has taken the lock since. Only one process may
// sweep a path: a second one with a shared lock could remove a third one's new file. A check sees the lock as free
// during a sweep.
func (l *Lock) Sweep() { removeIfFree(flock.New(l.f.Path(), flock.SetFlag(os.O_RDONLY))) }

func removeIfFree(f *flock.Flock) {
	if free, err := f.TryRLock(); err == nil && free {
		// Another process may have replaced the file by a locked one between its opening and its locking.
		if current, err := isCurrent(f, f.Path()); err == nil && current {
			_ = os.Remove(f.Path())
		}
	}
	_ = f.Close() // nothing was written
}

// Held reports whether a process holds the lock at path. It neither creates nor removes the file. It does not block
// a process that asks for the lock a moment later.
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

// Count counts the locks in dir, a context's folder of locks. held counts the ones that a process holds. left
// counts the files of ended processes and idle conversations. These files do no harm.
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
			sessions++ // not checked, because a starting run would find it busy
			continue
		}
		if !strings.HasPrefix(name, "run-") {
			continue
		}
		alive, err := Held(filepath.Join(dir, name)) // the name may hold a digest instead of the run's id
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
		left += sessions // their holders have ended
	}
	return held, left, nil
}

// Sessions returns the holder of each held session lock in dir.
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

// Input is the path in dir of the lock of an input that a worker handles for a team.
func Input(dir, input string) string { return lockPath(dir, "input", input) }

// Server is the path of the lock of the process that serves browsers, in the dir of the user's own context. Its
// holder's name in the file is the address that it serves.
func Server(dir string) string { return filepath.Join(dir, "web.lock") }

// lockPath returns the path of the lock for an id. A log from a cloned repository can contain malicious ids. The
// lock's file is removed later, so it must lie in dir.
func lockPath(dir, kind, id string) string {
	if uuid.Validate(id) != nil {
		sum := sha256.Sum256([]byte(id))
		id = hex.EncodeToString(sum[:])
	}
	return filepath.Join(dir, kind+"-"+id+".lock")
}

// ErrBusy says that a session's lock is held.
var ErrBusy = message.New("filelock.busy", "the session is busy with another run")

// A BusyError is ErrBusy with the known details of the holder.
type BusyError struct {
	// By is "chat" or "service". Empty means an unknown holder or a single run.
	By    string    `json:"by"`
	PID   int       `json:"pid"`
	Since time.Time `json:"since"`
}

var heldBy = message.New("filelock.held-by", "a %s (process %d) has held the session since %s")

// Tell returns the error's sentence.
func (e *BusyError) Tell() *message.Text {
	if e.By == "" {
		return ErrBusy
	}
	return heldBy.With(e.By, e.PID, e.Since.Local().Format(time.DateTime))
}

func (e *BusyError) Error() string { return e.Tell().Text }

// Is reports whether target is ErrBusy.
func (e *BusyError) Is(target error) bool { return target == ErrBusy }

// Sign writes the holder's name into the lock's file. If that fails, the lock is held all the same.
func (l *Lock) Sign(by string, now time.Time) {
	b, err := json.Marshal(BusyError{By: by, PID: os.Getpid(), Since: now.UTC()})
	if err == nil {
		_ = os.WriteFile(l.f.Path(), b, 0o600)
	}
}

// Holder returns the holder of the lock at path, as far as its file names one.
func Holder(path string) *BusyError {
	e := &BusyError{}
	if b, err := os.ReadFile(path); err != nil || json.Unmarshal(b, e) != nil {
		return &BusyError{}
	}
	return e
}

// AcquireSession takes the lock of a session, or returns a *BusyError. With wait, it waits for the lock.
func AcquireSession(ctx context.Context, path string, wait bool) (lock *Lock, err error) {
	err = Poll(ctx, wait, func() (err error) {
		if lock, err = Acquire(path); errors.Is(err, ErrHeld) {
			err = Holder(path)
		}
		return err
	}, ErrBusy)
	return lock, err
}

// PollEvery is the time between two tries of Poll.
const PollEvery = 100 * time.Millisecond

// Poll calls try until its error is not busy. Without wait it calls try once.
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
