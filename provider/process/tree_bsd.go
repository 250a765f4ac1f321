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

// treeIsComplete says whether rest finds all that an agent started. Here it finds
// what stayed in the process group.
const treeIsComplete = false

// tree is a process group.
type tree struct{ pgid int }

func newTree(mark string) (*tree, error) { return &tree{}, nil }

// prepare gives the agent a session of its own: without the person's terminal it can neither write on
// it, nor answer in its name.
func (t *tree) prepare(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }

// attach leaves the agent on this process's terminal, in its process group.
func (t *tree) attach(*exec.Cmd) {}

func (t *tree) started(p *os.Process) error {
	t.pgid = p.Pid
	return nil
}

func (t *tree) remember(int)        {}
func (t *tree) rememberQuickly(int) {}
func (t *tree) term() error         { return signalGroup(t.pgid, syscall.SIGTERM) }
func (t *tree) kill() error         { return signalGroup(t.pgid, syscall.SIGKILL) }
func (t *tree) close() error        { return nil }

// rest ends what is left of the group after its leader is gone. The number stays
// the group's as long as the group has a member; that it had none and was given
// away within this moment is not excluded.
func (t *tree) rest(grace time.Duration, hurry <-chan struct{}) (ended, survived []Survivor) {
	if errors.Is(syscall.Kill(-t.pgid, 0), syscall.ESRCH) {
		return nil, nil
	}
	t.term()
	if t.gone(grace, hurry) {
		return nil, nil
	}
	t.kill()
	if t.gone(killWait, nil) {
		return nil, nil
	}
	return nil, []Survivor{{PID: t.pgid, Command: "process group"}}
}

// gone polls: nothing here reports the end of a group.
func (t *tree) gone(d time.Duration, hurry <-chan struct{}) bool {
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
		case <-hurry:
			return false
		}
	}
}

// awaitExit blocks until a child can be reaped, and does not reap it.
func awaitExit(pid int) {
	kq, err := unix.Kqueue()
	if err != nil {
		return // Wait will wait, and signals will wait with it
	}
	defer unix.Close(kq)
	unix.CloseOnExec(kq)
	ev := make([]unix.Kevent_t, 1)
	unix.SetKevent(&ev[0], pid, unix.EVFILT_PROC, unix.EV_ADD|unix.EV_ONESHOT)
	ev[0].Fflags = unix.NOTE_EXIT
	for {
		_, err := unix.Kevent(kq, ev, ev, nil) // ESRCH: it has exited already
		if !errors.Is(err, unix.EINTR) {
			return
		}
	}
}

func startTime(int) uint64 { return 0 }

// Survivors lists processes that outlived their agent and their Perlica. Here
// they cannot be told from others, so the list is empty.
func Survivors() []Survivor { return nil }
