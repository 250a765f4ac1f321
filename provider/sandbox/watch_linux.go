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

// A Watch tells whether bubblewrap has made the sandbox of a process. Its last step copies the byte of an inherited
// socket into a file of the sandbox, and closes the socket. If bubblewrap ends earlier, the byte is not read, and the
// system tells that to the other end.
type Watch struct {
	box   *Sandbox
	own   net.Conn
	child *os.File // nil after Started
}

// enterTime is the longest time that Entered waits.
const enterTime = 10 * time.Second

// Watch prepares a command from Command. The caller calls Started after the start, or after it failed, and then Entered
// once. For a nil Sandbox it returns nil.
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

// Entered waits until the process is in its sandbox, and returns false if the sandbox could not be made. A nil Watch
// returns true.
func (w *Watch) Entered() bool {
	if w == nil {
		return true
	}
	w.Started()
	_ = w.own.SetReadDeadline(time.Now().Add(enterTime)) // without it Entered waits for bwrap
	_, err := w.own.Read(make([]byte, 1))
	_ = w.own.Close() // nothing more is read
	w.box.removeLeft()
	return errors.Is(err, io.EOF) || errors.Is(err, os.ErrDeadlineExceeded)
}
