package process

import (
	"errors"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/perlica/perlica/provider/descent"
)

// treeIsComplete reports whether endRest finds all processes that an agent started. On Linux it finds
// processes with the mark and members of the group. It also finds processes that were below the agent when
// End began or sent a signal. If no other agent of this process runs, it finds adopted orphans, too.
const treeIsComplete = true

// adopt makes Perlica the parent of its descendants' orphans. An orphan then stays below Perlica, can be
// found there and can be reaped. since is the time of the first call, in clock ticks since boot: a child that
// started earlier is not an orphan.
var adopt = sync.OnceValues(func() (since uint64, err error) {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &now); err != nil {
		return 0, err
	}
	return uint64(now.Nano()) / uint64(time.Second/ticksPerSecond), unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
})

const ticksPerSecond = 100 // the same on every machine

// tree is an agent's process group and all processes with the agent's mark.
type tree struct {
	mark  string
	pgid  int
	known map[int]uint64 // the start times of processes that were seen below the agent, by process number

	sandboxed bool // the leader is bwrap, and its child is process 1 of the agent's pid namespace
}

func newTree(mark string) (*tree, error) {
	if _, err := adopt(); err != nil {
		return nil, os.NewSyscallError("prctl", err)
	}
	trees.Add(1)
	return &tree{mark: mark, known: map[int]uint64{}}, nil
}

// trees counts the agents of this process that were started and not yet closed.
var trees atomic.Int64

// enterSandbox says that the leader is a bwrap and not the agent itself.
func (t *tree) enterSandbox() { t.sandboxed = true }

// prepareCmd gives the agent its own session. Without the person's terminal the agent cannot write to it and
// cannot answer in the person's name.
func (t *tree) prepareCmd(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
}

// prepareAttached leaves the agent on this process's terminal and in its process group.
func (t *tree) prepareAttached(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}

func (t *tree) setLeader(p *os.Process) error {
	t.pgid = p.Pid
	return nil
}

// termGroup asks the agent to end. bwrap would end at once and kill the whole sandbox, so it gets no signal.
func (t *tree) termGroup() error {
	if !t.sandboxed {
		return signalGroup(t.pgid, syscall.SIGTERM)
	}
	for _, s := range descendants(t.pgid) {
		if v, ok := hold(s); ok && s.ppid != t.pgid && s.pgid == t.pgid {
			v.sendSignal(syscall.SIGTERM)
			v.sendSignal(syscall.SIGCONT)
			v.closeFD()
		} else if ok {
			v.closeFD()
		}
	}
	return nil
}

func (t *tree) killGroup() error { return signalGroup(t.pgid, syscall.SIGKILL) }
func (t *tree) closeTree() error { trees.Add(-1); return nil }

// rememberBelow stores the processes below pid. They are found again even after they have cleared their
// environment.
func (t *tree) rememberBelow(pid int) {
	for _, s := range descendants(pid) {
		t.known[s.pid] = s.start
	}
}

// rememberBelowQuickly does the work of rememberBelow, but it reads only a few files. It may miss a process if a
// sibling of the process ends at the same moment.
func (t *tree) rememberBelowQuickly(pid int) {
	if !childrenAreListed() {
		t.rememberBelow(pid)
		return
	}
	for _, child := range children(pid) {
		if s, ok := readStat(child); ok && t.known[child] != s.start {
			t.known[child] = s.start
			t.rememberBelowQuickly(child)
		}
	}
}

// endRest ends the remaining processes after the agent itself has ended and was reaped. It sends each signal
// through a descriptor that was checked to refer to the process. A process number alone may already belong to
// another process.
func (t *tree) endRest(grace time.Duration, noGrace <-chan struct{}) (ended, survived []Survivor) {
	if !haveChildren() {
		return nil, nil // without children no process of the agent is left
	}
	if t.sandboxed { // the end of bwrap kills all processes of its namespace
		inside := t.findMembers(listedBelow)
		signalAll(inside, unix.SIGKILL)
		awaitAll(inside, killWait, nil)
		reapAll(inside)
		reapZombies(t.pgid)
		if !haveChildren() {
			return nil, nil
		}
	}
	seen := map[int]bool{}
	deadline := time.Time{}
	// The search must be empty twice, and the second search reads all processes. A search misses a process if its parent
	// dies at that moment.
	for empty := 0; empty < 2; {
		look := listedBelow
		if empty > 0 {
			look = descendants
		}
		vs := t.findMembers(look)
		if len(vs) == 0 {
			empty++
			continue
		}
		empty = 0
		for _, v := range vs {
			if !seen[v.pid] {
				seen[v.pid] = true
				ended = append(ended, Survivor{PID: v.pid, Command: commandOf(v.procStat), Agent: agentOf(t.mark),
					Orphan: t.isOrphan(v.procStat)})
			}
		}
		if deadline.IsZero() {
			signalAll(vs, unix.SIGTERM)
			signalAll(vs, unix.SIGCONT)
			awaitAll(vs, grace, noGrace)
			deadline = time.Now().Add(killWait)
		}
		signalAll(vs, unix.SIGKILL)
		awaitAll(vs, time.Until(deadline), nil)
		reapAll(vs)
		if time.Now().After(deadline) {
			return t.divideEnded(ended)
		}
	}
	reapZombies(t.pgid)
	return ended, nil
}

// divideEnded separates the ended processes from the running ones.
func (t *tree) divideEnded(all []Survivor) (ended, survived []Survivor) {
	left := map[int]bool{}
	vs := t.findMembers(descendants)
	for _, v := range vs {
		left[v.pid] = true
		v.closeFD()
	}
	for _, s := range all {
		if left[s.PID] {
			survived = append(survived, s)
		} else {
			ended = append(ended, s)
		}
	}
	return ended, survived
}

// findMembers opens the living processes of this agent. The parameter "below" is a function that returns the processes
// below a process.
func (t *tree) findMembers(below func(int) []procStat) []victim {
	var vs []victim
	for _, s := range below(os.Getpid()) {
		if s.state == 'Z' || s.state == 'X' || !t.ownsProcess(s) {
			continue
		}
		if v, ok := hold(s); ok {
			if t.ownsProcess(s) {
				vs = append(vs, v)
			} else {
				v.closeFD()
			}
		}
	}
	return vs
}

func (t *tree) ownsProcess(s procStat) bool {
	switch marked(s.pid, t.mark) {
	case markOurs:
		return true
	case markOther:
		return false
	}
	return t.knowsProcess(s) || t.isOrphan(s)
}

// knowsProcess reports whether an unmarked process was seen below the agent or belongs to its group.
func (t *tree) knowsProcess(s procStat) bool {
	start, ok := t.known[s.pid]
	return ok && start == s.start || s.pgid == t.pgid
}

// isOrphan reports whether a process is an adopted orphan that only this agent can have left. Such a process has no
// mark, and no other agent of this process runs. It is not a program that the person started, because such a program is
// in this process's session or has PersonVariable.
func (t *tree) isOrphan(s procStat) bool {
	since, err := adopt()
	if err != nil || trees.Load() != 1 || s.ppid != os.Getpid() || s.start < since || t.knowsProcess(s) {
		return false
	}
	session, err := unix.Getsid(0)
	return err == nil && s.session != session && marked(s.pid, t.mark) == markNone &&
		startedWith(s.pid, descent.PersonVariable) == ""
}

// victim is an open process. Its descriptor always refers to this process.
type victim struct {
	procStat
	fd int // -1 on kernels before 5.3
}

// hold opens the process that s describes. ok is false if the process has ended.
func hold(s procStat) (victim, bool) {
	fd, err := unix.PidfdOpen(s.pid, 0)
	if err != nil {
		if errors.Is(err, unix.ESRCH) {
			return victim{}, false
		}
		fd = -1
	}
	v := victim{s, fd}
	if now, ok := readStat(s.pid); !ok || now.start != s.start {
		v.closeFD()
		return victim{}, false
	}
	return v, true
}

func (v victim) closeFD() {
	if v.fd >= 0 {
		unix.Close(v.fd)
	}
}

func (v victim) sendSignal(sig syscall.Signal) {
	if v.fd >= 0 {
		unix.PidfdSendSignal(v.fd, sig, nil, 0)
		return
	}
	if now, ok := readStat(v.pid); ok && now.start == v.start {
		unix.Kill(v.pid, sig)
	}
}

// hasEnded reports whether the process has ended, reaped or not.
func (v victim) hasEnded() bool {
	if v.fd >= 0 {
		fds := []unix.PollFd{{Fd: int32(v.fd), Events: unix.POLLIN}}
		n, err := unix.Poll(fds, 0)
		return err == nil && n > 0
	}
	now, ok := readStat(v.pid)
	return !ok || now.start != v.start || now.state == 'Z'
}

func signalAll(vs []victim, sig syscall.Signal) {
	for _, v := range vs {
		v.sendSignal(sig)
	}
}

// awaitAll waits until all have ended, d has passed or noGrace is closed.
func awaitAll(vs []victim, d time.Duration, noGrace <-chan struct{}) {
	end := time.Now().Add(d)
	var fds []unix.PollFd
	for _, v := range vs {
		for !v.hasEnded() {
			select {
			case <-noGrace:
				return
			default:
			}
			left := time.Until(end)
			if left <= 0 {
				return
			}
			fds = fds[:0]
			if v.fd >= 0 {
				fds = append(fds, unix.PollFd{Fd: int32(v.fd), Events: unix.POLLIN})
			}
			// Poll in short slices to notice noGrace.
			unix.Poll(fds, int(min(left, 20*time.Millisecond).Milliseconds())+1)
		}
	}
}

// reapAll reaps each process of vs that has become a child of this process, and closes all descriptors.
func reapAll(vs []victim) {
	for _, v := range vs {
		if v.hasEnded() {
			if v.fd >= 0 {
				unix.Waitid(unix.P_PIDFD, v.fd, nil, unix.WEXITED|unix.WNOHANG, nil)
			} else {
				unix.Wait4(v.pid, nil, unix.WNOHANG, nil)
			}
		}
		v.closeFD()
	}
}

// reapZombies reaps adopted members of the group that died before endRest found them. They are our children and
// only this function reaps them, so their numbers are still valid. It leaves zombies of other groups to init,
// because another part of Perlica may be waiting for such a child.
func reapZombies(pgid int) {
	self := os.Getpid()
	for _, s := range listedBelow(self) {
		if s.state == 'Z' && s.ppid == self && s.pgid == pgid && s.pid != pgid {
			unix.Wait4(s.pid, nil, unix.WNOHANG, nil)
		}
	}
}

// haveChildren reports whether this process has a child, alive or dead.
func haveChildren() bool {
	err := unix.Waitid(unix.P_ALL, 0, nil, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil)
	return !errors.Is(err, unix.ECHILD)
}

// awaitExit waits until the process has ended and does not reap it.
func awaitExit(pid int) {
	pollExit(pid)
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return
		}
	}
}

// pollExit waits in the runtime's poller until the process has ended, if the system can poll pidfds (Linux 5.10). A
// goroutine that waits in a system call would occupy one of the runtime's processors for a while. On a machine with two
// processors, the agent's lines would then wait whenever the other one syncs the log.
func pollExit(pid int) {
	fd, err := unix.PidfdOpen(pid, unix.PIDFD_NONBLOCK)
	if err != nil {
		return
	}
	f := os.NewFile(uintptr(fd), "pidfd")
	defer f.Close()
	conn, err := f.SyscallConn()
	if err != nil {
		return
	}
	// A pidfd is readable after its process has ended. The runtime's poller reports that only once, perhaps before this
	// wait begins. So the function first polls the pidfd itself.
	_ = conn.Read(func(fd uintptr) bool { // after an error, the caller's waitid waits instead
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
		return n > 0 || err != nil && !errors.Is(err, unix.EINTR)
	})
}
