package screen

import (
	"errors"
	"fmt"
	"sync"
)

// ErrClosed is the error of a closed [TTY].
var ErrClosed = errors.New("terminal: closed")

// errBusy is the error of a session that begins during another session.
var errBusy = errors.New("terminal: the terminal is answering another question")

// TTY is the controlling terminal, which is opened to read keys. Standard input may be another file. The methods are
// safe for concurrent use.
type TTY struct {
	dev *device

	mu      sync.Mutex // guards the fields below
	inUse   bool
	restore func() error // nil if the terminal is not in raw mode
	closed  bool
}

// OpenTTY opens the controlling terminal: /dev/tty, or CONIN$ on Windows.
func OpenTTY() (*TTY, error) { return openTTY(ttyPath) }

func openTTY(path string) (*TTY, error) {
	dev, err := openDevice(path)
	if err != nil {
		return nil, fmt.Errorf("terminal: open %s: %w", path, err)
	}
	return &TTY{dev: dev}, nil
}

// Session calls f with the terminal in raw mode. The terminal does not echo, and Ctrl-C is a key. In the output, \n
// still becomes \r\n. Session drops bytes that were typed earlier. It restores the mode when f returns or panics. It
// fails if another session runs.
func (t *TTY) Session(f func(*Keys) error) error {
	return t.Ahead(func(k *Keys) error {
		if err := k.Discard(); err != nil {
			return fmt.Errorf("terminal: discard: %w", err)
		}
		return f(k)
	})
}

// Ahead works like [TTY.Session], but keeps bytes that were typed earlier. Among these, the key Enter is a line
// feed.
func (t *TTY) Ahead(f func(*Keys) error) (err error) {
	if err := t.beginSession(); err != nil {
		return err
	}
	defer func() {
		if e := t.endSession(); err == nil {
			err = e
		}
	}()
	return f(&Keys{in: t.dev})
}

func (t *TTY) beginSession() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.closed:
		return ErrClosed
	case t.inUse:
		return errBusy
	}
	restore, err := t.dev.setRaw()
	if err != nil {
		return fmt.Errorf("terminal: raw mode: %w", err)
	}
	t.inUse, t.restore = true, restore
	return nil
}

func (t *TTY) endSession() error {
	err := t.Restore()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.inUse = false
	if t.closed {
		t.dev.closeAll()
	}
	return err
}

// Restore sets the terminal's old mode during a session. A caller needs it before the process ends. Without a
// session it does nothing.
func (t *TTY) Restore() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.restore == nil {
		return nil
	}
	restore := t.restore
	t.restore = nil
	if err := restore(); err != nil {
		return fmt.Errorf("terminal: restore: %w", err)
	}
	return nil
}

// Aside sets the terminal's old mode while f runs. f lets another program use the terminal, or stops the process. No
// goroutine may read keys until Aside returns.
func (t *TTY) Aside(f func() error) error {
	if err := t.Restore(); err != nil {
		return err
	}
	ferr := f()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.inUse && !t.closed {
		restore, err := t.dev.setRaw()
		if err != nil {
			return errors.Join(ferr, fmt.Errorf("terminal: raw mode: %w", err))
		}
		t.restore = restore
	}
	return ferr
}

// Again sets raw mode again during a session. A caller needs it when another program may have changed the mode.
func (t *TTY) Again() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.restore == nil || t.closed {
		return nil
	}
	if _, err := t.dev.setRaw(); err != nil {
		return fmt.Errorf("terminal: raw mode: %w", err)
	}
	return nil
}

// Close restores the terminal's mode and closes it. A running session keeps it open until the session ends, so the
// caller cancels the session's context first. Later calls do nothing.
func (t *TTY) Close() error {
	err := t.Restore()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return nil
	}
	t.closed = true
	if !t.inUse {
		t.dev.closeAll()
	}
	return err
}
