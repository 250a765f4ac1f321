package interaction

import (
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// listenerOf returns the process that listens at the other side of a connection. ok is false where
// the process has no number in this namespace of processes.
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
