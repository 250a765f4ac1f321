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

// wakeListener lets other processes wake this one. They connect to its socket and write nothing, because the news is
// on the log.
type wakeListener struct {
	listener net.Listener
	path     string // the path of the socket
	wg       sync.WaitGroup
}

// maxSocketPath is the maximum length of a socket path that every system accepts, in bytes.
const maxSocketPath = 103

// socketPath returns the path of the socket of a process. The parameter writer is the event.Event.Writer of that
// process. The file name is a hash, because socket paths must be short. If the path in dir is too long, the socket is
// in the system's folder for temporary files. There it is in a folder with a hash of dir in its name.
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

// makePrivate creates dir for this user alone. It fails if another user owns dir, because only the owner can change
// the mode.
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

// removeFolder removes the folder of a socket if the folder is empty and lies in the system's folder for temporary
// files. Otherwise one folder would stay there for each long path. The parameter dir is the one of socketPath.
func removeFolder(dir, path string) {
	if folder := filepath.Dir(path); folder != filepath.Clean(dir) {
		_ = os.Remove(folder) // fails while another process has a socket in the folder
	}
}

// listenTries limits the attempts to listen. A further attempt is needed if another process removed the empty folder.
const listenTries = 100

// listen listens on the socket at path. It makes the folder of the socket and removes stale sockets from it.
func listen(path string, now time.Time) (net.Listener, error) {
	if err := makePrivate(filepath.Dir(path)); err != nil {
		return nil, fmt.Errorf("interaction: the folder for sockets: %w", err)
	}
	removeStale(filepath.Dir(path), now)
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("interaction: listen for answers: %w", err)
	}
	return l, nil
}

// staleAge is the minimum age of a socket that removeStale removes. A younger socket may belong to a process that has
// created the file and does not listen yet.
const staleAge = time.Minute

// removeStale removes the sockets of killed processes. It connects to each socket, which only wakes a running
// process.
func removeStale(dir string, now time.Time) {
	paths, _ := filepath.Glob(filepath.Join(dir, "*.sock")) // the pattern is well-formed
	for _, path := range paths {
		if info, err := os.Lstat(path); err != nil || now.Sub(info.ModTime()) < staleAge {
			continue
		}
		conn, err := net.DialTimeout("unix", path, time.Second)
		if err == nil {
			_ = conn.Close() // nothing was written
		} else if errors.Is(err, syscall.ECONNREFUSED) {
			_ = os.Remove(path) // another process may have removed the socket already
		}
	}
}

// Reachable lets other processes wake this one after an answer. A second call does nothing. After an error, this
// process learns of answers only when it looks at the log.
func (c *Coordinator) Reachable() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.waking != nil || c.dir == "" {
		return nil
	}
	path := socketPath(c.dir, c.log.Writer())
	l, err := listen(path, c.now())
	for range listenTries {
		if !errors.Is(err, fs.ErrNotExist) {
			break
		}
		l, err = listen(path, c.now())
	}
	if err != nil {
		removeFolder(c.dir, path)
		return err
	}
	b := &wakeListener{listener: l, path: path}
	b.wg.Go(func() {
		for {
			conn, err := l.Accept()
			if errors.Is(err, net.ErrClosed) {
				return
			}
			// Accept fails when too many files are open. The other process gets no reply and may try again.
			if err != nil {
				time.Sleep(acceptPause)
				continue
			}
			c.Look(context.Background())
			_ = conn.Close() // the close tells the other process that this process has read the log
		}
	})
	c.waking = b
	return nil
}

// acceptPause is the pause after a failed Accept. It limits the processor time.
const acceptPause = 50 * time.Millisecond

// wakeTimeout is the maximum time that a running process may take to look at its log.
const wakeTimeout = 5 * time.Second

// These errors say that the answer is on the log, but the asking process did not look at it.
var (
	ErrAskerGone   = message.New("interaction.asker-gone", "the process that asked has ended")
	ErrAskerAsleep = message.New("interaction.asker-asleep",
		"the process that asked does not respond: it may be suspended")
)

// errUnseen says that the asking process does not listen, or that it has no process number in this process's
// namespace.
var errUnseen = message.New("interaction.unseen", "the process that asked cannot be seen from here")

// Asker returns the process number of the process with this event.Event.Writer, or errUnseen. The number is 0 on
// systems that do not report it.
func (c *Coordinator) Asker(writer string) (pid int, err error) {
	conn, err := net.DialTimeout("unix", socketPath(c.dir, writer), wakeTimeout)
	if err != nil {
		return 0, fmt.Errorf("interaction: %w: %w", errUnseen, err)
	}
	defer func() { _ = conn.Close() }() // nothing was written
	pid, ok := listenerOf(conn)
	if !ok {
		return 0, fmt.Errorf("interaction: %w", errUnseen)
	}
	return pid, nil
}

// Wake makes the process with this event.Event.Writer look at the log, and waits until it has looked. It returns
// ErrAskerGone if that process does not listen.
func (c *Coordinator) Wake(writer string) error {
	conn, err := net.DialTimeout("unix", socketPath(c.dir, writer), wakeTimeout)
	if err != nil {
		return fmt.Errorf("interaction: %w: %w", ErrAskerGone, err)
	}
	defer func() { _ = conn.Close() }() // nothing was written
	if err := conn.SetReadDeadline(time.Now().Add(wakeTimeout)); err != nil {
		return err
	}
	// The asking process closes the connection after it has looked. The read ends then, or when that process ends.
	if _, err := conn.Read(make([]byte, 1)); errors.Is(err, os.ErrDeadlineExceeded) {
		return fmt.Errorf("interaction: %w", ErrAskerAsleep)
	}
	return nil
}

// TryListen listens on a socket in dir and stops at once. The error explains why other processes could not wake a
// process that uses dir. A missing dir is not an error.
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
