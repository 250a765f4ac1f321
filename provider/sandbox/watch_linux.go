package sandbox

import (
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// A Watch finds out whether bubblewrap has built the sandbox of a process. It passes a socket with one byte to
// bubblewrap. The last step of bubblewrap copies this byte into a file of the sandbox and closes the socket. If
// bubblewrap ends earlier, nobody reads the byte, and reading the other end of the socket fails.
type Watch struct {
	box   *Sandbox
	own   net.Conn
	child *os.File // the socket for bubblewrap; nil after Started
}

// enterTime is the maximum time for which Entered waits.
const enterTime = 10 * time.Second

// Watch prepares a command that has the arguments from Command. The caller must call Started after the start, also if
// the start failed, and then Entered once. For a nil Sandbox, Watch returns nil.
func (b *Sandbox) Watch(cmd *exec.Cmd) (*Watch, error) {
	if b == nil {
		return nil, nil
	}
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("socketpair", err)
	}
	own, child := os.NewFile(uintptr(fds[0]), "sandbox"), os.NewFile(uintptr(fds[1]), "sandbox")
	conn, err := net.FileConn(own)
	_ = own.Close() // conn has a copy
	if err == nil {
		_, err = conn.Write([]byte{'\n'})
	}
	if err == nil {
		err = conn.(*net.UnixConn).CloseWrite()
	}
	if err != nil {
		_ = child.Close() // nothing was read
		return nil, err
	}
	number := strconv.Itoa(3 + len(cmd.ExtraFiles))
	cmd.ExtraFiles = append(cmd.ExtraFiles, child)
	cmd.Args = slices.Insert(cmd.Args, slices.Index(cmd.Args, "--"), "--file", number, "/dev/sandbox")
	return &Watch{b, conn, child}, nil
}

// Started closes the file that the child has inherited. A nil Watch does nothing.
func (w *Watch) Started() {
	if w != nil && w.child != nil {
		_ = w.child.Close() // nothing was written
		w.child = nil
	}
}

// Entered waits until bubblewrap has built the sandbox, but at most for enterTime. It returns false if bubblewrap
// failed. A nil Watch returns true.
func (w *Watch) Entered() bool {
	if w == nil {
		return true
	}
	w.Started()
	_ = w.own.SetReadDeadline(time.Now().Add(enterTime)) // if this fails, Entered waits for bwrap without a limit
	_, err := w.own.Read(make([]byte, 1))
	_ = w.own.Close() // Entered reads no further byte
	w.box.removeLeft()
	return errors.Is(err, io.EOF) || errors.Is(err, os.ErrDeadlineExceeded)
}
