package screen

import "golang.org/x/sys/unix"

const (
	ioctlGet = unix.TCGETS
	ioctlSet = unix.TCSETS
)

func (d *device) discardTyped() error {
	return unix.IoctlSetInt(d.fd, unix.TCFLSH, unix.TCIFLUSH)
}

// waitInput waits for keys or for the pipe that wakes it, at most ms milliseconds. -1 means no limit.
func (d *device) waitInput(ms int) (ready bool, err error) {
	fds := []unix.PollFd{{Fd: int32(d.fd), Events: unix.POLLIN}, {Fd: int32(d.wakeR), Events: unix.POLLIN}}
	_, err = unix.Poll(fds, ms)
	return fds[0].Revents != 0, err
}
