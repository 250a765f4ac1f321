package descent

import (
	"bufio"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io/fs"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// errPeerGone means that no process has the socket open. A process that waits for an answer never causes this error,
// because it keeps its socket open.
var errPeerGone = errors.New("descent: the process at the other side is gone")

// unixPeer returns the number of the process that connected, in this process's pid namespace.
func unixPeer(c syscall.Conn) (pid int, err error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return 0, err
	}
	var cred *unix.Ucred
	var cerr error
	if err := raw.Control(func(fd uintptr) {
		cred, cerr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET,
			unix.SO_PEERCRED)
	}); err != nil {
		return 0, err
	}
	if cerr != nil {
		return 0, os.NewSyscallError("getsockopt", cerr)
	}
	if cred.Pid == 0 { // the process is in a namespace that is not below ours
		return 0, errPeerGone
	}
	return int(cred.Pid), nil
}

// tcpOwners returns the processes that hold the socket at peer. If none is found, it returns the processes with hidden
// open files, because any of them may hold the socket.
func tcpOwners(peer, here netip.AddrPort) ([]int, error) {
	inode, ok := tcpSocket(peer, here)
	if !ok {
		return nil, errPeerGone
	}
	pids, closed := holders("socket:[" + inode + "]")
	if len(pids) == 0 {
		pids = closed
	}
	if len(pids) == 0 {
		return nil, errPeerGone
	}
	return pids, nil
}

// tcpSocket finds the peer's end of a connection.
func tcpSocket(peer, here netip.AddrPort) (inode string, ok bool) {
	for _, name := range []string{"/proc/self/net/tcp", "/proc/self/net/tcp6"} {
		f, err := os.Open(name)
		if err != nil {
			continue
		}
		defer f.Close()
		for in := bufio.NewScanner(f); in.Scan(); {
			w := strings.Fields(in.Text()) // sl local remote state queues timer retransmits uid timeout inode …
			if len(w) < 10 || address(w[1]) != unmapped(peer) || address(w[2]) != unmapped(here) {
				continue
			}
			return w[9], w[9] != "0"
		}
	}
	return "", false
}

func unmapped(a netip.AddrPort) netip.AddrPort {
	return netip.AddrPortFrom(a.Addr().Unmap().WithZone(""), a.Port())
}

// address parses the form of /proc/net/tcp: four-byte words in the machine's byte order, a colon and the
// port.
func address(s string) netip.AddrPort {
	words, port, _ := strings.Cut(s, ":")
	b, err := hex.DecodeString(words)
	n, perr := strconv.ParseUint(port, 16, 16)
	if err != nil || perr != nil || len(b)%4 != 0 {
		return netip.AddrPort{}
	}
	for i := 0; i < len(b); i += 4 {
		binary.BigEndian.PutUint32(b[i:], binary.NativeEndian.Uint32(b[i:]))
	}
	addr, ok := netip.AddrFromSlice(b)
	if !ok {
		return netip.AddrPort{}
	}
	return netip.AddrPortFrom(addr.Unmap(), uint16(n))
}

// holders returns the processes that have a socket open, and the processes with hidden open files.
func holders(socket string) (pids, closed []int) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil, nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1) // a partial list is used as it is
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		fds, err := os.ReadDir("/proc/" + name + "/fd")
		if errors.Is(err, fs.ErrPermission) {
			closed = append(closed, pid)
		}
		for _, fd := range fds {
			if to, err := os.Readlink("/proc/" + name + "/fd/" + fd.Name()); err == nil && to == socket {
				pids = append(pids, pid)
				break
			}
		}
	}
	return pids, closed
}
