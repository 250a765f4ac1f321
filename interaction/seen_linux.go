package interaction

import (
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// listenerOf returns the process number of the listener at the other end of a connection. ok is false if that process
// has no number in this process namespace.
func listenerOf(conn net.Conn) (pid int, ok bool) {
	c, ok := conn.(syscall.Conn)
	if !ok {
		return 0, false
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return 0, false
	}
	err = raw.Control(func(fd uintptr) {
		if cred, err := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED); err == nil {
			pid = int(cred.Pid)
		}
	})
	return pid, err == nil && pid != 0
}
