package filelock

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"
)

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
