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

	"github.com/perlica/perlica/eventlog/message"
)

// wakeListener wakes this process for other processes. They connect to its socket and write nothing: the news is on the
// log.
type wakeListener struct {
	listener net.Listener
	wg       sync.WaitGroup
}

// maxSocketPath is the longest socket path that every system accepts.
const maxSocketPath = 103

// socketPath returns the socket path of the process that writes the log through the given handle. The file name is a
// hash, because socket paths are limited. If the path in dir is too long, the socket lies in the system's folder for
// temporary files, in a folder named after dir.
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

// makePrivate creates dir for this user alone. It fails if another user owns dir, because only the owner may change the
// mode.
func makePrivate(dir string) error {
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

// staleAge protects young sockets from removeStale: a process creates its socket file before it listens.
const staleAge = time.Minute

// removeStale removes the sockets of killed processes. Connecting to the socket of a running process only wakes that
// process.
func removeStale(dir string, now time.Time) {
	paths, _ := filepath.Glob(filepath.Join(dir, "*.sock")) // the pattern is well-formed
	for _, path := range paths {
		if info, err := os.Lstat(path); err != nil || now.Sub(info.ModTime()) < staleAge {
			continue
		}
		conn, err := net.DialTimeout("unix", path, time.Second)
		if err == nil {
			_ = conn.Close() // nothing was written to it
		} else if errors.Is(err, syscall.ECONNREFUSED) {
			_ = os.Remove(path) // another process may have removed it already
		}
	}
}

// Reachable starts to listen for answers from other processes. A second call does nothing. After an error, other
// processes cannot wake this one, and their answers count only when this process looks at the log.
func (c *Coordinator) Reachable() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.waking != nil || c.dir == "" {
		return nil
	}
	path := socketPath(c.dir, c.log.Writer())
	if err := makePrivate(filepath.Dir(path)); err != nil {
		return fmt.Errorf("interaction: the folder for sockets: %w", err)
	}
	removeStale(filepath.Dir(path), c.now())
	l, err := net.Listen("unix", path)
	if err != nil {
		return fmt.Errorf("interaction: listen for answers: %w", err)
	}
	b := &wakeListener{listener: l}
	b.wg.Go(func() {
		for {
			conn, err := l.Accept()
			if errors.Is(err, net.ErrClosed) {
				return
			}
			// Accept fails when too many files are open. The caller gets no reply and may come again.
			if err != nil {
				time.Sleep(acceptPause)
				continue
			}
			c.Look(context.Background())
			_ = conn.Close() // closing tells the caller that this process has looked
		}
	})
	c.waking = b
	return nil
}

// acceptPause limits the processor time that a socket takes while Accept fails.
const acceptPause = 50 * time.Millisecond

// wakeTimeout is the time in which a running process must look at its log.
const wakeTimeout = 5 * time.Second

// These errors say that the answer is on the log, but the process that asked did not look at it.
var (
	ErrAskerGone   = message.New("interaction.asker-gone", "the process that asked is gone")
	ErrAskerAsleep = message.New("interaction.asker-asleep",
		"the process that asked does not look: it may be suspended")
)

// errUnseen says that the process that asked does not listen, or has no process number in the namespace of this
// process.
var errUnseen = message.New("interaction.unseen", "the process that asked cannot be seen from here")

// Asker returns the process number of the process that writes the log through the given handle, or errUnseen. The
// number is 0 on systems that do not report it.
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

// Wake makes the process that writes the log through the given handle look at the log, and waits until it has looked.
// It returns ErrAskerGone if that process does not listen.
func (c *Coordinator) Wake(writer string) error {
	conn, err := net.DialTimeout("unix", socketPath(c.dir, writer), wakeTimeout)
	if err != nil {
		return fmt.Errorf("interaction: %w: %w", ErrAskerGone, err)
	}
	defer func() { _ = conn.Close() }() // nothing was written to it
	if err := conn.SetReadDeadline(time.Now().Add(wakeTimeout)); err != nil {
		return err
	}
	// The read ends when the asker closes the connection after its look, or when the asker ends.
	if _, err := conn.Read(make([]byte, 1)); errors.Is(err, os.ErrDeadlineExceeded) {
		return fmt.Errorf("interaction: %w", ErrAskerAsleep)
	}
	return nil
}

// TryListen listens on a socket in dir for a moment. Its error explains why other processes could not wake a process
// that uses dir. A missing dir is not an error.
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
		return fmt.Errorf("interaction: the folder for sockets: %w",
			&fs.PathError{Op: "open", Path: dir, Err: syscall.ENOTDIR})
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return fmt.Errorf("interaction: listen for answers: %w", err)
	}
	return l.Close() // removes the socket
}
