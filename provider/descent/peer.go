package descent

import (
	"fmt"
	"net/netip"
	"syscall"
)

// ForeignError says that a connection comes from a process of an agent.
type ForeignError struct{ Agent Agent }

func (e *ForeignError) Error() string {
	return "the other side descends from " + e.Agent.String() + ", and an agent has no say here"
}

// CheckUnix returns a *ForeignError if the process at the other side of a Unix socket descends from
// an agent from which this one does not, and another error if that cannot be told: it is gone. Where
// the system does not say who it is, it returns nil.
func CheckUnix(c syscall.Conn) error {
	pid, err := unixPeer(c)
	if err != nil || pid == 0 {
		return err
	}
	return check(pid)
}

// CheckTCP is CheckUnix for a connection from peer to here over a loopback address. A connection
// from another machine is no one's here, and is let through.
func CheckTCP(peer, here netip.AddrPort) error {
	if !peer.Addr().Unmap().IsLoopback() && peer.Addr().Unmap() != here.Addr().Unmap() {
		return nil
	}
	pids, err := tcpOwners(peer, here)
	for _, pid := range pids {
		if err := check(pid); err != nil {
			return err
		}
	}
	return err
}

func check(pid int) error {
	a, foreign, err := Foreign(pid)
	switch {
	case err != nil:
		return fmt.Errorf("process %d at the other side: %w", pid, err)
	case foreign:
		return &ForeignError{a}
	}
	return nil
}
