package interaction

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

// bell is how another process wakes this one: it connects to a socket and says nothing.
// What happened stands on the log.
type bell struct {
	listener net.Listener
	wg       sync.WaitGroup
}

// maxSocketPath is the longest path that every system takes for a socket.
const maxSocketPath = 103

// socketPath names the socket of the process that writes the log through the given handle.
// The name is hashed, because paths are limited; where the folder's own path is too long,
// the socket lies in one of the system's folder for temporary files, named after it.
func socketPath(dir, writer string) string {
	name := hashed(writer) + ".sock"
	if path := filepath.Join(dir, name); len(path) <= maxSocketPath {
		return path
	}
	return filepath.Join(os.TempDir(), "perlica-"+hashed(dir), name)
}

func hashed(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:8])
}

// private makes a folder that no one else may enter, or fails if somebody else made it:
// only its owner may change its mode.
func private(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return fmt.Errorf("%s is no folder", dir)
	}
	return os.Chmod(dir, 0o700)
}

// sweepAge keeps a socket from being swept between being made and being listened on.
const sweepAge = time.Minute

// sweep removes the sockets of processes that were killed. A living one is merely woken.
func sweep(dir string, now time.Time) {
	paths, _ := filepath.Glob(filepath.Join(dir, "*.sock")) // the pattern is well-formed
	for _, path := range paths {
		if info, err := os.Lstat(path); err != nil || now.Sub(info.ModTime()) < sweepAge {
			continue
		}
		conn, err := net.DialTimeout("unix", path, time.Second)
		if err == nil {
			_ = conn.Close() // nothing was written to it
		} else if errors.Is(err, syscall.ECONNREFUSED) {
			_ = os.Remove(path) // another process may be sweeping, too
		}
	}
}

// Reachable starts listening for answers of other processes, if it has not been done. An
// error means that they cannot wake this one: their answers count only when it looks.
func (c *Coordinator) Reachable() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.bell != nil || c.dir == "" {
		return nil
	}
	path := socketPath(c.dir, c.log.Writer())
	if err := private(filepath.Dir(path)); err != nil {
		return fmt.Errorf("interaction: the folder for sockets: %w", err)
	}
	sweep(filepath.Dir(path), c.now())
	l, err := net.Listen("unix", path)
	if err != nil {
		return fmt.Errorf("interaction: listen for answers: %w", err)
	}
	b := &bell{listener: l}
	b.wg.Go(func() {
		for {
			conn, err := l.Accept()
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if err != nil { // too many open files; the caller is told nothing and may come again
				time.Sleep(acceptPause)
				continue
			}
			c.Look(context.Background())
			_ = conn.Close() // nothing was written to it; closing it tells the caller that we looked
		}
	})
	c.bell = b
	return nil
}

// acceptPause keeps a socket that cannot be served from taking a processor.
const acceptPause = 50 * time.Millisecond

// wakeTimeout is how long a living asker may take to look at the log.
const wakeTimeout = 5 * time.Second

// Why the process that asked could not be made to look at an answer, which is on the log.
var (
	ErrAskerGone   = errors.New("the process that asked is gone")
	ErrAskerAsleep = errors.New("the process that asked does not look: it may be suspended")
)

// errUnseen says that the process that asked runs outside of a namespace of processes in which this
// one is, or does not listen.
var errUnseen = errors.New("the process that asked cannot be seen from here")

// Asker returns the number of the process that writes the log through the given handle, or errUnseen.
// The number is 0 where the system does not tell it.
func (c *Coordinator) Asker(writer string) (pid int, err error) {
	conn, err := net.DialTimeout("unix", socketPath(c.dir, writer), wakeTimeout)
	if err != nil {
		return 0, fmt.Errorf("interaction: %w: %w", errUnseen, err)
	}
	defer func() { _ = conn.Close() }() // nothing was written to it
	pid, ok := listenerOf(conn)
	if !ok {
		return 0, fmt.Errorf("interaction: %w", errUnseen)
	}
	return pid, nil
}

// Wake makes the process that writes the log through the given handle look at the log, and
// waits until it has. It fails with ErrAskerGone if that process does not listen.
func (c *Coordinator) Wake(writer string) error {
	conn, err := net.DialTimeout("unix", socketPath(c.dir, writer), wakeTimeout)
	if err != nil {
		return fmt.Errorf("interaction: %w: %w", ErrAskerGone, err)
	}
	defer func() { _ = conn.Close() }() // nothing was written to it
	if err := conn.SetReadDeadline(time.Now().Add(wakeTimeout)); err != nil {
		return err
	}
	// It ends when the asker closes, which is the sign, or when the asker's end does.
	if _, err := conn.Read(make([]byte, 1)); errors.Is(err, os.ErrDeadlineExceeded) {
		return fmt.Errorf("interaction: %w", ErrAskerAsleep)
	}
	return nil
}

// TryListen listens on a socket in dir for a moment. The error says why other processes
// could not wake one that asks. Where the folder does not exist yet there is nothing to say.
func TryListen(dir string) error {
	path := socketPath(dir, rand.Text())
	dir = filepath.Dir(path)
	info, err := os.Stat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("interaction: the folder for sockets: %w", err)
	}
	if !info.IsDir() {
		return fmt.Errorf("interaction: the folder for sockets: %w", &fs.PathError{Op: "open", Path: dir, Err: syscall.ENOTDIR})
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return fmt.Errorf("interaction: listen for answers: %w", err)
	}
	return l.Close() // removes the socket
}
