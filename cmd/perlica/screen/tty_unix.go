//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package screen

import (
	"context"
	"errors"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

const ttyPath = "/dev/tty"

// device is a terminal with its own file descriptor. The poller of Go's runtime cannot wait for /dev/tty on all
// systems. Therefore a pipe wakes the waiting goroutine.
type device struct {
	fd           int
	wakeR, wakeW int
}

func openDevice(path string) (*device, error) {
	fd, err := unix.Open(path, unix.O_RDWR|unix.O_NOCTTY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	d := &device{fd: fd}
	if _, err := unix.IoctlGetTermios(fd, ioctlGet); err != nil {
		unix.Close(fd)
		return nil, err
	}
	var p [2]int
	if err := unix.Pipe(p[:]); err != nil {
		unix.Close(fd)
		return nil, err
	}
	d.wakeR, d.wakeW = p[0], p[1]
	for _, fd := range p {
		unix.CloseOnExec(fd)
		_ = unix.SetNonblock(fd, true)
	}
	return d, nil
}

func (d *device) closeAll() {
	for _, fd := range []int{d.fd, d.wakeR, d.wakeW} {
		unix.Close(fd)
	}
}

// setRaw sets the same mode as cfmakeraw(3), except that the output still turns \n into \r\n.
func (d *device) setRaw() (restore func() error, err error) {
	old, err := unix.IoctlGetTermios(d.fd, ioctlGet)
	if err != nil {
		return nil, err
	}
	t := *old
	t.Iflag &^= unix.IGNBRK | unix.BRKINT | unix.PARMRK | unix.ISTRIP | unix.INLCR | unix.IGNCR | unix.ICRNL | unix.IXON
	t.Lflag &^= unix.ECHO | unix.ECHONL | unix.ICANON | unix.ISIG | unix.IEXTEN
	t.Cflag = t.Cflag&^(unix.CSIZE|unix.PARENB) | unix.CS8
	t.Cc[unix.VMIN], t.Cc[unix.VTIME] = 1, 0
	if err := unix.IoctlSetTermios(d.fd, ioctlSet, &t); err != nil {
		return nil, err
	}
	return func() error { return unix.IoctlSetTermios(d.fd, ioctlSet, old) }, nil
}

func (d *device) readBytes(ctx context.Context, wait time.Duration) ([]byte, error) {
	woken := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		_, _ = unix.Write(d.wakeW, []byte{0})
		close(woken)
	})
	defer func() {
		if !stop() {
			<-woken
			var b [16]byte
			_, _ = unix.Read(d.wakeR, b[:])
		}
	}()
	deadline := time.Now().Add(wait)
	var buf [4096]byte
	for {
		left := -1 // -1 means no limit
		if wait > 0 {
			left = int(max(time.Until(deadline), 0).Milliseconds())
		}
		ready, err := d.waitInput(left)
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return nil, err
		case !ready && wait > 0 && time.Now().After(deadline.Add(-time.Millisecond)):
			return nil, errNothing
		case !ready:
			continue
		}
		n, err := unix.Read(d.fd, buf[:])
		switch {
		case errors.Is(err, unix.EAGAIN), errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.EIO), err == nil && n == 0: // The terminal was closed.
			return nil, io.EOF
		case err != nil:
			return nil, os.NewSyscallError("read", err)
		}
		return buf[:n:n], nil
	}
}

func (d *device) echoText(s string) {
	_, _ = unix.Write(d.fd, []byte(s)) // If the terminal is closed, reading the next key fails, too.
}
