package interaction

import (
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// numbered reports whether the other side of a connection has a number in this namespace of processes.
func numbered(conn net.Conn) bool {
	c, ok := conn.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return false
	}
	pid := int32(0)
	err = raw.Control(func(fd uintptr) {
		if cred, err := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED); err == nil {
			pid = cred.Pid
		}
	})
	return err == nil && pid != 0
}
