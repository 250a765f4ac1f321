package service

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/gofrs/flock"

	"github.com/perlica/perlica/eventlog/folder"
)

// A HeldError says that another bridge serves the project. Its fields are what is known of it.
type HeldError struct {
	PID     int       `json:"pid"`
	Context string    `json:"context"`
	Since   time.Time `json:"since"`
}

func (e *HeldError) Error() string {
	if e.PID == 0 {
		return "another bridge serves this project"
	}
	return fmt.Sprintf("another bridge serves this project: process %d, since %s, in the context %q",
		e.PID, e.Since.Local().Format(time.DateTime), e.Context)
}

// lock takes the lock of the project's one bridge, or fails with a *HeldError. The file stays
// when it is given up: it only says who holds it while somebody does.
func lock(path, context string, now time.Time) (*flock.Flock, error) {
	if err := folder.Check(path); err != nil {
		return nil, err
	}
	f := flock.New(path, flock.SetPermissions(0o600))
	ok, err := f.TryLock()
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	if !ok {
		return nil, errors.Join(held(path), f.Close())
	}
	if b, err := json.Marshal(HeldError{os.Getpid(), context, now.UTC()}); err == nil {
		_ = os.WriteFile(path, b, 0o600) // it holds all the same
	}
	return f, nil
}

// Holder says which bridge serves a project; nil: none. It neither makes nor keeps the lock.
func Holder(path string) (*HeldError, error) {
	if err := folder.Check(path); err != nil {
		return nil, err
	}
	f := flock.New(path, flock.SetFlag(os.O_RDONLY))
	free, err := f.TryRLock()
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	defer func() { _ = f.Close() }() // nothing was written
	if free {
		return nil, nil
	}
	return held(path), nil
}

// held is what the file of the lock says.
func held(path string) *HeldError {
	e := &HeldError{}
	if b, err := os.ReadFile(path); err != nil || json.Unmarshal(b, e) != nil {
		return &HeldError{}
	}
	return e
}
