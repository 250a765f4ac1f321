// Package filelock has the locks by which processes find each other: one locked file for each run and each session.
//
// A lock ends when its process ends, even if the process crashes. Checking a lock does not prevent another process from
// taking it. The package starts nothing, and waits only if the caller asks for it.
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

// ErrHeld means that another process, or another run of this process, holds a lock.
var ErrHeld = errors.New("locked")

// Lock is held until Release is called or the process dies.
type Lock struct{ f *flock.Flock }

// A process that only checks a lock holds it shared for a moment. So Acquire tries up to lookers times, with lookPause
// between two tries.
const (
	lookers   = 100
	lookPause = time.Millisecond
)

// Acquire takes the lock at path, or returns ErrHeld. Release removes the lock's file. So Acquire checks that the file
// that it has locked is still the file at path.
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
			shared, err := f.TryRLock() // succeeds if other processes only check the lock
			if cerr := f.Close(); cerr != nil || err != nil || !shared || tries == lookers {
				return nil, errors.Join(ErrHeld, err, cerr)
			}
			tries++
			time.Sleep(lookPause)
			continue
		}
		current, err := isCurrent(f, path)
		if err == nil && current {
			if fi, err := f.Stat(); err == nil && fi.Size() > 0 {
				_ = os.Truncate(path, 0) // The file may still describe an earlier holder.
			}
			return &Lock{f}, nil
		}
		if cerr := f.Close(); err != nil || cerr != nil {
			return nil, errors.Join(err, cerr)
		}
	}
}

// Queue takes a lock for a short step. It waits for other holders until ctx ends. The system wakes one waiting process
// at a time. The file at path is never removed, so the holder calls Free. No process may call Acquire for this path.
func Queue(ctx context.Context, path string) (*Lock, error) {
	if err := disk.Check(path); err != nil {
		return nil, err
	}
	f := lockFile(path)
	taken := make(chan error, 1)
	go func() { taken <- f.Lock() }() // the goroutine ends when the last holder has finished its step
	select {
	case err := <-taken:
		if err != nil {
			return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), f.Close())
		}
		return &Lock{f}, nil
	case <-ctx.Done():
		go func() {
			<-taken
			_ = f.Close() // nothing was written, so the error does not matter
		}()
		return nil, errors.Join(ErrHeld, context.Cause(ctx))
	}
}

// lockFile returns the file of a lock, to be opened for writing. When the lock's holder ends, the system closes this
// file, so a process that watches the folder notices the end. Held does not wake the watcher, because it opens the file
// for reading only.
func lockFile(path string) *flock.Flock {
	return flock.New(path, flock.SetPermissions(0o600), flock.SetFlag(os.O_CREATE|os.O_RDWR))
}

// Reserve creates the file of a lock before its use, so that Take is faster than Acquire. Until Take, other processes
// see the lock as free, because it is only shared.
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

// Take converts a reservation into a lock. It returns the same errors as Acquire.
func (l *Lock) Take() (*Lock, error) {
	if ok, err := l.f.TryLock(); err == nil && ok {
		if fi, err := l.f.Stat(); err == nil && !removed(fi) { // no other process can have replaced the locked file
			return l, nil
		}
	}
	_ = l.f.Close() // Acquire also works while another process checks the lock
	return Acquire(l.f.Path())
}

// isCurrent reports whether the locked file is still the file at path.
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

// Release removes the lock's file and releases the lock. If the file remains, it does no harm.
func (l *Lock) Release() {
	_ = os.Remove(l.f.Path()) // Windows does not remove an open file; the file then remains
	_ = l.f.Close()           // nothing was written, so the error does not matter
}

// Free releases the lock at once. It leaves the removal of the file, which takes longer, to Sweep.
func (l *Lock) Free() { _ = l.f.Close() }

// Sweep removes the file of a lock after Free, unless another process has taken the lock. Only one process may sweep a
// path. Otherwise the second process could remove the new file of a third one. During a sweep, Held reports the lock as
// free.
func (l *Lock) Sweep() { removeIfFree(flock.New(l.f.Path(), flock.SetFlag(os.O_RDONLY))) }

func removeIfFree(f *flock.Flock) {
	if free, err := f.TryRLock(); err == nil && free {
		// Another process may have replaced the file by a new locked file after this process opened it. So check the
		// file again before its removal.
		if current, err := isCurrent(f, f.Path()); err == nil && current {
			_ = os.Remove(f.Path())
		}
	}
	_ = f.Close() // nothing was written, so the error does not matter
}

// Held reports whether a process holds the lock at path. It neither creates nor removes the file. It disturbs an
// Acquire of another process only for a moment.
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
	return !free, f.Close()
}

// Count counts the lock files in a context's folder. The result "held" is the number of locked files of runs. The
// result "left" is the number of files without a holder. Ended processes and idle conversations leave them, and they do
// no harm.
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
			sessions++ // not checked, because the check could make a starting run fail
			continue
		}
		if !strings.HasPrefix(name, "run-") {
			continue
		}
		alive, err := Held(filepath.Join(dir, name)) // the name may contain a digest instead of the run's id
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
		left += sessions // no run is active, so no session is locked by a run
	}
	return held, left, nil
}

// Sessions returns the holder of each locked session in dir, by session id.
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

// Run returns the path of a run's lock in dir.
func Run(dir, run string) string { return lockPath(dir, "run", run) }

// Session returns the path of a session's lock in dir.
func Session(dir, session string) string { return lockPath(dir, "session", session) }

// Schedule returns the path of the lock in dir of a schedule with a running input.
func Schedule(dir, id string) string { return lockPath(dir, "schedule", id) }

// SchedulePlan returns the path of the lock in dir that a process holds while it plans the next input of a schedule.
func SchedulePlan(dir, id string) string { return lockPath(dir, "plan", id) }

// Input returns the path of the lock in dir for an input that a worker answers for a team.
func Input(dir, input string) string { return lockPath(dir, "input", input) }

// Server returns the path of the lock of the process that serves browsers. dir is the lock folder of the user's own
// context. The holder's name in the file is the address of the server.
func Server(dir string) string { return filepath.Join(dir, "web.lock") }

// lockPath returns the path of the lock for an id. It hashes an id that is not a UUID, because a log from a cloned
// repository can contain ids such as "../x". The lock's file is removed later, so it must be in dir.
func lockPath(dir, kind, id string) string {
	if uuid.Validate(id) != nil {
		sum := sha256.Sum256([]byte(id))
		id = hex.EncodeToString(sum[:])
	}
	return filepath.Join(dir, kind+"-"+id+".lock")
}

// ErrBusy means that another holder has locked the session.
var ErrBusy = message.New("filelock.busy", "the session is busy with another run")

// A BusyError is an ErrBusy with the known details of the lock's holder.
type BusyError struct {
	// By is the holder's name, such as "chat" or "service". It is empty if the holder is unknown or is a single run.
	By    string    `json:"by"`
	PID   int       `json:"pid"`
	Since time.Time `json:"since"`
}

var heldBy = message.New("filelock.held-by", "a %s (process %d) has been using the session since %s")

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

// Sign writes the holder's name into the lock's file. If writing fails, the lock is still held.
func (l *Lock) Sign(by string, now time.Time) {
	b, err := json.Marshal(BusyError{By: by, PID: os.Getpid(), Since: now.UTC()})
	if err == nil {
		_ = os.WriteFile(l.f.Path(), b, 0o600)
	}
}

// Holder returns the details in the lock's file at path. Unknown details are empty.
func Holder(path string) *BusyError {
	e := &BusyError{}
	if b, err := os.ReadFile(path); err != nil || json.Unmarshal(b, e) != nil {
		return &BusyError{}
	}
	return e
}

// AcquireSession takes the lock of a session, or returns a *BusyError. If "wait" is true, it waits until the lock is
// free.
func AcquireSession(ctx context.Context, path string, wait bool) (lock *Lock, err error) {
	err = Poll(ctx, wait, func() (err error) {
		if lock, err = Acquire(path); errors.Is(err, ErrHeld) {
			err = Holder(path)
		}
		return err
	}, ErrBusy)
	return lock, err
}

// PollEvery is the time between two calls of try in Poll.
const PollEvery = 100 * time.Millisecond

// Poll calls the function "try" until it returns nil or an error other than the parameter "busy". If "wait" is false,
// Poll calls it once.
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
