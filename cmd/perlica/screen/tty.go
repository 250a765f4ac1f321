package screen

import (
	"errors"
	"fmt"
	"sync"
)

// ErrClosed is returned by a [TTY] after Close.
var ErrClosed = errors.New("terminal: closed")

// errBusy is returned while another question has it.
var errBusy = errors.New("terminal: the terminal is answering another question")

// TTY is the controlling terminal, opened for keys; standard input may be something
// else. It is safe for concurrent use.
type TTY struct {
	dev *device

	mu      sync.Mutex // guards what follows
	inUse   bool
	restore func() error // not nil while the terminal is in raw mode
	closed  bool
}

// OpenTTY opens the controlling terminal: /dev/tty, or CONIN$ on Windows. It fails
// where there is none.
func OpenTTY() (*TTY, error) { return openTTY(ttyPath) }

func openTTY(path string) (*TTY, error) {
	dev, err := openDevice(path)
	if err != nil {
		return nil, fmt.Errorf("terminal: open %s: %w", path, err)
	}
	return &TTY{dev: dev}, nil
}

// Session calls f with the terminal in raw mode: no echo, Ctrl-C is a key, and
// output keeps its newlines, so that f may draw. What was typed before is discarded.
// The mode is restored when f returns or panics. A Session within a Session, or
// beside one, fails.
func (t *TTY) Session(f func(*Keys) error) error {
	return t.Ahead(func(k *Keys) error {
		if err := k.Discard(); err != nil {
			return fmt.Errorf("terminal: discard: %w", err)
		}
		return f(k)
	})
}

// Ahead is a [TTY.Session] that begins with what was typed before. While the terminal was not in raw mode
// an Enter became a line feed.
func (t *TTY) Ahead(f func(*Keys) error) (err error) {
	if err := t.begin(); err != nil {
		return err
	}
	defer func() {
		if e := t.end(); err == nil {
			err = e
		}
	}()
	return f(&Keys{in: t.dev})
}

func (t *TTY) begin() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.closed:
		return ErrClosed
	case t.inUse:
		return errBusy
	}
	restore, err := t.dev.raw()
	if err != nil {
		return fmt.Errorf("terminal: raw mode: %w", err)
	}
	t.inUse, t.restore = true, restore
	return nil
}

func (t *TTY) end() error {
	err := t.Restore()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.inUse = false
	if t.closed {
		t.dev.close()
	}
	return err
}

// Restore gives the terminal back the mode it had before a running Session, for
// the code that is about to end the process. Without a Session it does nothing.
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

// Aside gives the terminal back the mode it had before a running Session while f runs: another
// program has it, or the process is stopped. No goroutine may read keys until then.
func (t *TTY) Aside(f func() error) error {
	if err := t.Restore(); err != nil {
		return err
	}
	ferr := f()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.inUse && !t.closed {
		restore, err := t.dev.raw()
		if err != nil {
			return errors.Join(ferr, fmt.Errorf("terminal: raw mode: %w", err))
		}
		t.restore = restore
	}
	return ferr
}

// Again sets the mode of a running Session once more, after somebody else may have changed it.
func (t *TTY) Again() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.restore == nil || t.closed {
		return nil
	}
	if _, err := t.dev.raw(); err != nil {
		return fmt.Errorf("terminal: raw mode: %w", err)
	}
	return nil
}

// Close restores the terminal and closes it; a Session still running keeps it open
// until it ends, so cancel its context first. Later calls do nothing.
func (t *TTY) Close() error {
	err := t.Restore()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return nil
	}
	t.closed = true
	if !t.inUse {
		t.dev.close()
	}
	return err
}
