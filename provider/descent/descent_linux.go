package descent

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// threadName is how the thread is called by which a Perlica that runs agents is known; the
// permission mode follows. The system keeps 15 bytes of a name.
const threadName = "perlica:"

// announced is the thread that carries the name.
var announced struct {
	sync.Mutex
	tid  int
	mode string
}

// Announce says to anyone who looks that this process runs agents, in a permission mode; of several the
// strictest is said. It holds as long as the process lives: what an agent left behind may still
// be a child of it.
func Announce(mode string) error {
	announced.Lock()
	defer announced.Unlock()
	if rank(mode) == 0 {
		mode = "deny"
	}
	if announced.tid != 0 && !stricter(mode, announced.mode) {
		return nil
	}
	if announced.tid == 0 {
		started := make(chan int)
		go func() { // as long as the process lives, which owns it
			runtime.LockOSThread()
			started <- unix.Gettid()
			select {}
		}()
		announced.tid = <-started
	}
	announced.mode = mode
	return os.WriteFile(fmt.Sprintf("/proc/self/task/%d/comm", announced.tid), []byte(threadName+mode), 0)
}

// firstPIDs is the machine's own namespace of processes; the system numbers it so everywhere.
const firstPIDs = "pid:[4026531836]"

// namespaced reports whether this process is in another namespace of processes than the machine's
// own, and whether it is one that needed no right: then one user is all that it knows.
func namespaced() (partial, hidden bool) {
	p := openProc()
	defer p.close()
	if ns, err := os.Readlink("/proc/self/ns/pid"); err != nil || ns == firstPIDs {
		return err != nil, err != nil
	}
	users, err := p.read("self/uid_map")
	f := strings.Fields(string(users))
	return true, err != nil || len(f) == 3 && f[2] == "1"
}

// proc is /proc, or nothing if something else lies there: in a namespace of its own a process can
// put there what it likes, over all of it or over a part.
type proc struct{ fd int }

const procRoot = 1 // its inode

func openProc() proc {
	fd, err := unix.Open("/proc", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return proc{-1}
	}
	var fs unix.Statfs_t
	var st unix.Stat_t
	if unix.Fstatfs(fd, &fs) != nil || fs.Type != unix.PROC_SUPER_MAGIC || unix.Fstat(fd, &st) != nil || st.Ino != procRoot {
		_ = unix.Close(fd) // nothing was read
		return proc{-1}
	}
	return proc{fd}
}

func (p proc) close() {
	if p.fd >= 0 {
		_ = unix.Close(p.fd) // it was read from
	}
}

// open opens what lies in /proc itself, not what was mounted over it.
func (p proc) open(name string) (*os.File, error) {
	fd, err := unix.Openat2(p.fd, name, &unix.OpenHow{Flags: unix.O_RDONLY | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_XDEV})
	if errors.Is(err, unix.ENOSYS) { // before Linux 5.6
		fd, err = unix.Openat(p.fd, name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	}
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), name), nil
}

func (p proc) read(name string) ([]byte, error) {
	f, err := p.open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // it was read from
	return io.ReadAll(f)
}

// ancestry reads a process and its ancestors. It ends at the first whose parent cannot be seen.
func ancestry(pid int) ([]link, error) {
	p := openProc()
	defer p.close()
	if _, parent, ok := p.link(os.Getpid()); !ok || parent != os.Getppid() {
		return nil, ErrHidden
	}
	var links []link
	for pid > 0 {
		l, parent, ok := p.link(pid)
		if !ok {
			break
		}
		links = append(links, l)
		pid = parent
	}
	if len(links) == 0 {
		return nil, fmt.Errorf("%w: it is gone", ErrHidden)
	}
	return links, nil
}

// ticksPerSecond is what the system counts starts in; it is the same everywhere.
const ticksPerSecond = 100

func (p proc) link(pid int) (l link, parent int, ok bool) {
	dir := strconv.Itoa(pid)
	b, err := p.read(dir + "/stat")
	open, end := bytes.IndexByte(b, '('), bytes.LastIndexByte(b, ')')
	if err != nil || open < 0 || end < open {
		return l, 0, false
	}
	f := strings.Fields(string(b[end+1:])) // state is field 3 of proc(5), start is field 22
	if len(f) < 20 {
		return l, 0, false
	}
	l.PID, l.Name = pid, string(b[open+1:end])
	parent, err = strconv.Atoi(f[1])
	if err != nil {
		return l, 0, false
	}
	if l.ticks, err = strconv.ParseUint(f[19], 10, 64); err != nil {
		return l, 0, false
	}
	l.Started = sinceBoot(time.Duration(l.ticks) * time.Second / ticksPerSecond)
	if env, err := p.read(dir + "/environ"); err == nil { // of another user's process it cannot be read
		l = l.environ(strings.Split(string(env), "\x00"))
	}
	l.runs, l.runner = p.runs(dir)
	return l, parent, true
}

// runs reports whether a process has the thread that Announce names.
func (p proc) runs(dir string) (mode string, ok bool) {
	task, err := p.open(dir + "/task")
	if err != nil {
		return "", false
	}
	defer func() { _ = task.Close() }() // it was read from
	threads, _ := task.Readdirnames(-1) // those that could be read
	for _, t := range threads {
		name, err := p.read(dir + "/task/" + t + "/comm")
		if err != nil {
			continue
		}
		if m, found := strings.CutPrefix(strings.TrimSpace(string(name)), threadName); found && (!ok || stricter(m, mode)) {
			mode, ok = m, true
		}
	}
	return mode, ok
}

// sinceBoot is the time at which the machine had run that long.
func sinceBoot(d time.Duration) time.Time {
	var now unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &now) != nil {
		return time.Time{}
	}
	return time.Now().Add(d - time.Duration(now.Nano()))
}

// Born is when a file was made; ok is false where the file system does not say it.
func Born(path string) (at time.Time, ok bool) {
	var st unix.Statx_t
	err := unix.Statx(unix.AT_FDCWD, path, 0, unix.STATX_BTIME, &st)
	if err != nil || st.Mask&unix.STATX_BTIME == 0 {
		return at, false
	}
	return time.Unix(st.Btime.Sec, int64(st.Btime.Nsec)), true
}

// Terminal names the controlling terminal of this process; empty: it has none.
func Terminal() string {
	b, err := os.ReadFile("/proc/self/stat")
	end := bytes.LastIndexByte(b, ')')
	if err != nil || end < 0 {
		return ""
	}
	f := strings.Fields(string(b[end+1:]))
	if len(f) < 5 {
		return ""
	}
	dev, err := strconv.Atoi(f[4])
	if err != nil || dev == 0 {
		return ""
	}
	major, minor := unix.Major(uint64(dev)), unix.Minor(uint64(dev))
	switch {
	case major >= 136 && major <= 143:
		return fmt.Sprintf("/dev/pts/%d", (major-136)<<8|minor)
	case major == 4 && minor < 64:
		return fmt.Sprintf("/dev/tty%d", minor)
	}
	return fmt.Sprintf("terminal %d:%d", major, minor)
}
