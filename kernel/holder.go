package kernel

import (
	"encoding/json"
	"fmt"
	"os"
	"time"
)

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

// sign says in the lock's file who holds it. Where that cannot be written the lock holds all
// the same.
func (l *fileLock) sign(by string, now time.Time) {
	b, err := json.Marshal(BusyError{By: by, PID: os.Getpid(), Since: now.UTC()})
	if err == nil {
		_ = os.WriteFile(l.f.Path(), b, 0o600)
	}
}

// busy says who holds the lock at path, as far as its file tells.
func busy(path string) error {
	e := &BusyError{}
	if b, err := os.ReadFile(path); err != nil || json.Unmarshal(b, e) != nil {
		return &BusyError{}
	}
	return e
}
