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

// treeIsComplete says whether rest finds all that an agent started. Here it finds
// the processes with the mark, those of the group, those that hung below the agent when
// it was signalled and, if no other agent of this process runs, the strays.
const treeIsComplete = true

// adopt makes Perlica the parent of its descendants' orphans: they stay below it,
// can be found there, and can be waited for. since is the time of the first call, in clock ticks since
// boot: an older child is nobody's orphan.
var adopt = sync.OnceValues(func() (since uint64, err error) {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &now); err != nil {
		return 0, err
	}
	return uint64(now.Nano()) / uint64(time.Second/ticksPerSecond), unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
})

const ticksPerSecond = 100 // of the starts of processes, on each machine

// tree is an agent's process group and whatever carries its mark.
type tree struct {
	mark  string
	pgid  int
	known map[int]uint64 // number and start of processes seen below the agent
}

func newTree(mark string) (*tree, error) {
	if _, err := adopt(); err != nil {
		return nil, os.NewSyscallError("prctl", err)
	}
	trees.Add(1)
	return &tree{mark: mark, known: map[int]uint64{}}, nil
}

// trees is how many agents of this process were started and not yet closed.
var trees atomic.Int64

// prepare gives the agent a session of its own: without the person's terminal it can neither write on
// it, nor answer in its name.
func (t *tree) prepare(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
}

// attach leaves the agent on this process's terminal, in its process group.
func (t *tree) attach(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}

func (t *tree) started(p *os.Process) error {
	t.pgid = p.Pid
	return nil
}

func (t *tree) term() error  { return signalGroup(t.pgid, syscall.SIGTERM) }
func (t *tree) kill() error  { return signalGroup(t.pgid, syscall.SIGKILL) }
func (t *tree) close() error { trees.Add(-1); return nil }

// remember notes what hangs below pid, so that it is found again although it has
// cleared its environment.
func (t *tree) remember(pid int) {
	for _, s := range descendants(pid) {
		t.known[s.pid] = s.start
	}
}

// rememberQuickly is remember at the price of reading a few files. It may miss a process whose sibling
// ends in the same moment.
func (t *tree) rememberQuickly(pid int) {
	if !childrenAreListed() {
		t.remember(pid)
		return
	}
	for _, child := range children(pid) {
		if s, ok := readStat(child); ok && t.known[child] != s.start {
			t.known[child] = s.start
			t.rememberQuickly(child)
		}
	}
}

// rest ends what is left once the agent itself is gone and reaped. Every process
// is signalled through a descriptor that was checked to be it, never by a number
// that may have passed to another.
func (t *tree) rest(grace time.Duration, hurry <-chan struct{}) (ended, survived []Survivor) {
	if !haveChildren() {
		return nil, nil // nothing lives below us, so nothing of the agent does
	}
	seen := map[int]bool{}
	deadline := time.Time{}
	// Twice, the second time by all that runs: a process whose parent dies while it is looked for is missed.
	for empty := 0; empty < 2; {
		look := listedBelow
		if empty > 0 {
			look = descendants
		}
		vs := t.find(look)
		if len(vs) == 0 {
			empty++
			continue
		}
		empty = 0
		for _, v := range vs {
			if !seen[v.pid] {
				seen[v.pid] = true
				ended = append(ended, Survivor{PID: v.pid, Command: commandOf(v.procStat), Agent: agentOf(t.mark), Stray: t.strayed(v.procStat)})
			}
		}
		if deadline.IsZero() {
			signalAll(vs, unix.SIGTERM)
			signalAll(vs, unix.SIGCONT)
			awaitAll(vs, grace, hurry)
			deadline = time.Now().Add(killWait)
		}
		signalAll(vs, unix.SIGKILL)
		awaitAll(vs, time.Until(deadline), nil)
		reapAll(vs)
		if time.Now().After(deadline) {
			return t.divide(ended)
		}
	}
	reapZombies(t.pgid)
	return ended, nil
}

// divide tells what was ended from what is still there.
func (t *tree) divide(all []Survivor) (ended, survived []Survivor) {
	left := map[int]bool{}
	vs := t.find(descendants)
	for _, v := range vs {
		left[v.pid] = true
		v.close()
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

// find opens every living process that is this agent's, of those that below returns.
func (t *tree) find(below func(int) []procStat) []victim {
	var vs []victim
	for _, s := range below(os.Getpid()) {
		if s.state == 'Z' || s.state == 'X' || !t.owns(s) {
			continue
		}
		if v, ok := hold(s); ok {
			if t.owns(s) {
				vs = append(vs, v)
			} else {
				v.close()
			}
		}
	}
	return vs
}

func (t *tree) owns(s procStat) bool {
	switch marked(s.pid, t.mark) {
	case markOurs:
		return true
	case markOther:
		return false
	}
	return t.knows(s) || t.strayed(s)
}

// knows reports whether an unmarked process was seen below the agent, or is in its group.
func (t *tree) knows(s procStat) bool {
	start, ok := t.known[s.pid]
	return ok && start == s.start || s.pgid == t.pgid
}

// strayed reports whether a process is an orphan that this process adopted and that only an agent can
// have left: it has no mark, and no other agent of this process runs. A program of the person stays in
// the session of this process, or carries PersonVariable.
func (t *tree) strayed(s procStat) bool {
	since, err := adopt()
	if err != nil || trees.Load() != 1 || s.ppid != os.Getpid() || s.start < since || t.knows(s) {
		return false
	}
	session, err := unix.Getsid(0)
	return err == nil && s.session != session && marked(s.pid, t.mark) == markNone && startedWith(s.pid, descent.PersonVariable) == ""
}

// victim is a process that is held: its descriptor means it and no other.
type victim struct {
	procStat
	fd int // -1 on kernels before 5.3
}

// hold opens the process that s describes, unless it is gone.
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
		v.close()
		return victim{}, false
	}
	return v, true
}

func (v victim) close() {
	if v.fd >= 0 {
		unix.Close(v.fd)
	}
}

func (v victim) signal(sig syscall.Signal) {
	if v.fd >= 0 {
		unix.PidfdSendSignal(v.fd, sig, nil, 0)
		return
	}
	if now, ok := readStat(v.pid); ok && now.start == v.start {
		unix.Kill(v.pid, sig)
	}
}

// dead says whether the process has ended, reaped or not.
func (v victim) dead() bool {
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
		v.signal(sig)
	}
}

// awaitAll waits until all have ended, at most d, or until hurry is closed.
func awaitAll(vs []victim, d time.Duration, hurry <-chan struct{}) {
	end := time.Now().Add(d)
	var fds []unix.PollFd
	for _, v := range vs {
		for !v.dead() {
			select {
			case <-hurry:
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
			// In slices, so that hurry is seen.
			unix.Poll(fds, int(min(left, 20*time.Millisecond).Milliseconds())+1)
		}
	}
}

// reapAll reaps those of vs that are our children by now, and lets go of all.
func reapAll(vs []victim) {
	for _, v := range vs {
		if v.dead() {
			if v.fd >= 0 {
				unix.Waitid(unix.P_PIDFD, v.fd, nil, unix.WEXITED|unix.WNOHANG, nil)
			} else {
				unix.Wait4(v.pid, nil, unix.WNOHANG, nil)
			}
		}
		v.close()
	}
}

// reapZombies reaps adopted members of the group that died before they were seen.
// They are children of ours that only we reap, so their numbers are theirs. Those
// of other groups are left to init, when Perlica ends: they cannot be told from
// children that some other part of Perlica is about to wait for.
func reapZombies(pgid int) {
	self := os.Getpid()
	for _, s := range listedBelow(self) {
		if s.state == 'Z' && s.ppid == self && s.pgid == pgid && s.pid != pgid {
			unix.Wait4(s.pid, nil, unix.WNOHANG, nil)
		}
	}
}

// haveChildren says whether this process has any child, dead or alive.
func haveChildren() bool {
	err := unix.Waitid(unix.P_ALL, 0, nil, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil)
	return !errors.Is(err, unix.ECHILD)
}

// awaitExit waits until the process has ended, and leaves it to be reaped.
func awaitExit(pid int) {
	pollExit(pid)
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return
		}
	}
}

// pollExit waits until the process has ended, in the runtime's poller, where the system has pidfds
// that can be polled (Linux 5.10). A goroutine that waits in a system call keeps a processor of the
// runtime to itself at first: with two, and the other in a sync of the log, the agent's lines waited
// for the sync.
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
	// A pidfd is readable when its process has ended. It is looked at each time, as the poller tells of an
	// end once, perhaps before this waits.
	_ = conn.Read(func(fd uintptr) bool { // waitid follows in any case
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
		return n > 0 || err != nil && !errors.Is(err, unix.EINTR)
	})
}
