//go:build darwin || dragonfly || freebsd || netbsd || openbsd

package process

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// treeIsComplete reports whether endRest finds all processes that an agent started. On this system it finds only
// members of the process group.
const treeIsComplete = false

// tree is a process group.
type tree struct{ pgid int }

func newTree(mark string) (*tree, error) { return &tree{}, nil }

// prepareCmd gives the agent its own session. Without the person's terminal the agent cannot write to it and
// cannot answer in the person's name.
func (t *tree) prepareCmd(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }

// prepareAttached leaves the agent on this process's terminal and in its process group.
func (t *tree) prepareAttached(*exec.Cmd) {}

func (t *tree) setLeader(p *os.Process) error {
	t.pgid = p.Pid
	return nil
}

func (t *tree) enterSandbox()            {} // this system has no sandbox
func (t *tree) rememberBelow(int)        {}
func (t *tree) rememberBelowQuickly(int) {}
func (t *tree) termGroup() error         { return signalGroup(t.pgid, syscall.SIGTERM) }
func (t *tree) killGroup() error         { return signalGroup(t.pgid, syscall.SIGKILL) }
func (t *tree) closeTree() error         { return nil }

// endRest ends the remaining members of the group after its leader has ended. The group keeps its number while it has a
// member. Between a check and a signal, the group may become empty and the system may give its number to another group.
// This system offers no protection against that.
func (t *tree) endRest(grace time.Duration, noGrace <-chan struct{}) (ended, survived []Survivor) {
	if errors.Is(syscall.Kill(-t.pgid, 0), syscall.ESRCH) {
		return nil, nil
	}
	t.termGroup()
	if t.waitGone(grace, noGrace) {
		return nil, nil
	}
	t.killGroup()
	if t.waitGone(killWait, nil) {
		return nil, nil
	}
	return nil, []Survivor{{PID: t.pgid, Command: "process group"}}
}

// waitGone polls, because this system does not report the end of a group.
func (t *tree) waitGone(d time.Duration, noGrace <-chan struct{}) bool {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	end := time.After(d)
	for {
		if errors.Is(syscall.Kill(-t.pgid, 0), syscall.ESRCH) {
			return true
		}
		select {
		case <-tick.C:
		case <-end:
			return false
		case <-noGrace:
			return false
		}
	}
}

// awaitExit blocks until a child can be reaped, and does not reap it.
func awaitExit(pid int) {
	kq, err := unix.Kqueue()
	if err != nil {
		return // cmd.Wait then does the waiting, and signals must wait for it
	}
	defer unix.Close(kq)
	unix.CloseOnExec(kq)
	ev := make([]unix.Kevent_t, 1)
	unix.SetKevent(&ev[0], pid, unix.EVFILT_PROC, unix.EV_ADD|unix.EV_ONESHOT)
	ev[0].Fflags = unix.NOTE_EXIT
	for {
		_, err := unix.Kevent(kq, ev, ev, nil) // ESRCH means that it has already exited
		if !errors.Is(err, unix.EINTR) {
			return
		}
	}
}

func startTime(int) uint64 { return 0 }

// Survivors returns nothing. This system cannot distinguish surviving processes of an agent from others.
func Survivors() []Survivor { return nil }
