//go:build darwin || freebsd || netbsd || openbsd || dragonfly

package screen

import (
	"golang.org/x/sys/unix"
)

const (
	ioctlGet = unix.TIOCGETA
	ioctlSet = unix.TIOCSETA
)

func (d *device) discardTyped() error {
	const fread = 1 // FREAD of sys/fcntl.h; with it, TIOCFLUSH drops the received bytes
	return unix.IoctlSetPointerInt(d.fd, unix.TIOCFLUSH, fread)
}

// waitInput waits for keys or for the pipe that wakes it, at most ms milliseconds. -1 means no limit. It uses
// select(2), because poll(2) does not support terminals on macOS.
func (d *device) waitInput(ms int) (ready bool, err error) {
	top := max(d.fd, d.wakeR)
	if top >= unix.FD_SETSIZE {
		return false, unix.EMFILE
	}
	var set unix.FdSet
	set.Zero()
	set.Set(d.fd)
	set.Set(d.wakeR)
	var timeout *unix.Timeval
	if ms >= 0 {
		tv := unix.NsecToTimeval(int64(ms) * 1e6)
		timeout = &tv
	}
	n, err := unix.Select(top+1, &set, nil, nil, timeout)
	return err == nil && n > 0 && set.IsSet(d.fd), err
}
