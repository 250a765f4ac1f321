package descent

import (
	"bytes"
	"encoding/binary"
	"os"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Announce does nothing on this system. On Linux it marks the Perlica that becomes the parent of an agent's orphans. On
// this system an orphan gets another parent.
func Announce(string) error { return nil }

// ancestry reads a process and its ancestors.
func ancestry(pid int) ([]link, error) {
	var links []link
	for pid > 0 {
		k, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
		if err != nil || int(k.Proc.P_pid) != pid {
			break
		}
		start := k.Proc.P_starttime
		l := link{Process: Process{
			PID: pid, Name: unix.ByteSliceToString(k.Proc.P_comm[:]), Started: time.Unix(start.Sec, int64(start.Usec)*1000),
		}}
		links = append(links, l.environ(environOf(pid)))
		if pid == int(k.Eproc.Ppid) {
			break
		}
		pid = int(k.Eproc.Ppid)
	}
	if len(links) == 0 {
		return nil, errHidden
	}
	return links, nil
}

// environOf returns the environment with which a process was started, as far as the system shows it. The
// buffer holds the number of arguments, the program, zeros, the arguments and the environment.
func environOf(pid int) []string {
	b, err := unix.SysctlRaw("kern.procargs2", pid)
	if err != nil || len(b) < 4 {
		return nil
	}
	n := int(binary.NativeEndian.Uint32(b))
	_, rest, _ := bytes.Cut(b[4:], []byte{0})
	all := strings.Split(string(bytes.TrimLeft(rest, "\x00")), "\x00")
	if n < 0 || n > len(all) {
		return nil
	}
	return all[n:]
}

// namespaced returns false, because this system has no namespaces.
func namespaced() (partial, hidden bool) { return false, false }

// ownBrand finds nothing, because no process can read the brand of another one on this system.
func ownBrand() (mode string, ok bool) { return "", false }

// Born returns the creation time of a file.
func Born(path string) (at time.Time, ok bool) {
	info, err := os.Stat(path)
	if err != nil {
		return at, false
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return at, false
	}
	return time.Unix(st.Birthtimespec.Sec, st.Birthtimespec.Nsec), true
}

// Terminal returns the name of this process's controlling terminal, or "".
func Terminal() string { return openTerminal() }

// unixPeer returns the process that connected.
func unixPeer(c syscall.Conn) (pid int, err error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return 0, err
	}
	var serr error
	if err := raw.Control(func(fd uintptr) {
		pid, serr = unix.GetsockoptInt(int(fd), unix.SOL_LOCAL,
			unix.LOCAL_PEERPID)
	}); err != nil {
		return 0, err
	}
	return pid, os.NewSyscallError("getsockopt", serr)
}
