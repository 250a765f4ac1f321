package descent

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// runnerName is the beginning of the process name of a Perlica that runs agents. The permission mode follows it. The
// system keeps 15 bytes of a name.
const runnerName = "perlica:"

// announced holds the permission mode that the process name shows.
var announced struct {
	sync.Mutex
	mode    string
	branded bool // this process lowered its limit itself
}

// Announce brands this process and shows in its name that it runs agents in a permission mode. The strictest
// of several modes counts. The name stays until the process ends, because a process that an agent left may
// still be its child. Later children and their descendants inherit the brand.
func Announce(mode string) error {
	announced.Lock()
	defer announced.Unlock()
	if rank(mode) == 0 {
		mode = "deny"
	}
	if announced.mode != "" && !stricter(mode, announced.mode) {
		return nil
	}
	lowered := lowerLocks(uint64(brandBase + rank(mode)))
	announced.branded = announced.branded || lowered
	err := os.WriteFile("/proc/self/comm", []byte(runnerName+mode), 0)
	if err == nil {
		announced.mode = mode
	}
	return err
}

// A process is branded by its hard limit of file locks. That limit is brandBase plus the rank of the permission mode,
// and it is far above every limit that a system sets.
const brandBase = 1 << 62

// lowerLocks lowers the limits of file locks of this process. The result "first" reports whether the hard limit was
// infinite before the call.
func lowerLocks(to uint64) (first bool) {
	var now unix.Rlimit
	if unix.Prlimit(0, unix.RLIMIT_LOCKS, nil, &now) != nil || now.Max <= to {
		return false
	}
	err := unix.Prlimit(0, unix.RLIMIT_LOCKS, &unix.Rlimit{Cur: to, Max: to}, nil)
	return err == nil && now.Max == unix.RLIM_INFINITY // a limit that was finite before is already an ancestor's brand
}

// ownBrand returns the brand with which this process was started.
func ownBrand() (mode string, ok bool) {
	announced.Lock()
	defer announced.Unlock()
	var now unix.Rlimit
	if announced.branded || unix.Prlimit(0, unix.RLIMIT_LOCKS, nil, &now) != nil {
		return "", false
	}
	return brandOf(now.Max)
}

// brandOf decodes a hard limit of file locks. Every finite limit counts as a brand, because a branded process can lower
// its limit to any other value. An unknown value therefore means the strictest mode.
func brandOf(limit uint64) (mode string, ok bool) {
	switch limit {
	case unix.RLIM_INFINITY:
		return "", false
	case brandBase + 1:
		return "ask", true
	case brandBase + 2:
		return "reads", true
	case brandBase + 3:
		return "allow", true
	}
	return "deny", true
}

// firstPIDs is the initial pid namespace. It has this number on every machine.
const firstPIDs = "pid:[4026531836]"

// namespaced reports two facts. The result "partial" says that this process is outside the initial pid namespace.
// The result "hidden" says that a process without privileges may have created the namespace. The user map of such a
// namespace has only one user.
func namespaced() (partial, hidden bool) {
	p := openProc()
	defer p.closeFD()
	own := strconv.Itoa(os.Getpid())
	ns := p.readLink(own + "/ns/pid")
	if ns == "" || ns == firstPIDs {
		return ns == "", ns == ""
	}
	users, err := p.readFile(own + "/uid_map")
	f := strings.Fields(string(users))
	return true, err != nil || len(f) == 3 && f[2] == "1"
}

// proc is an open /proc. It is empty if something else is mounted there, because a process in its own mount
// namespace can replace all or parts of /proc.
type proc struct {
	fd  int
	buf []byte // the buffer of readFile
}

const procRoot = 1 // the inode of the root of a real /proc

func openProc() *proc {
	fd, err := unix.Open("/proc", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return &proc{fd: -1}
	}
	var fs unix.Statfs_t
	var st unix.Stat_t
	if unix.Fstatfs(fd, &fs) != nil || fs.Type != unix.PROC_SUPER_MAGIC || unix.Fstat(fd, &st) != nil ||
		st.Ino != procRoot {
		_ = unix.Close(fd) // nothing was read
		return &proc{fd: -1}
	}
	return &proc{fd: fd}
}

func (p *proc) closeFD() {
	if p.fd >= 0 {
		_ = unix.Close(p.fd) // only used for reading
	}
}

// readFile returns a file of /proc itself and never a mount over it. The next read overwrites the result.
func (p *proc) readFile(name string) ([]byte, error) {
	fd, err := unix.Openat2(p.fd, name, &unix.OpenHow{Flags: unix.O_RDONLY | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_NO_XDEV})
	if errors.Is(err, unix.ENOSYS) { // before Linux 5.6
		fd, err = unix.Openat(p.fd, name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = unix.Close(fd) }() // only used for reading
	for p.buf = p.buf[:0]; ; {
		p.buf = slices.Grow(p.buf, 1024)
		n, err := unix.Read(fd, p.buf[len(p.buf):cap(p.buf)])
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || n <= 0 {
			return p.buf, err
		}
		p.buf = p.buf[:len(p.buf)+n]
	}
}

// readLink returns the target of a link in /proc, or "". It does not follow the link.
func (p *proc) readLink(name string) string {
	how := &unix.OpenHow{Flags: unix.O_PATH | unix.O_NOFOLLOW | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_XDEV}
	fd, err := unix.Openat2(p.fd, name, how)
	if errors.Is(err, unix.ENOSYS) { // before Linux 5.6
		fd, err = unix.Openat(p.fd, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	}
	if err != nil {
		return ""
	}
	defer func() { _ = unix.Close(fd) }() // only used for reading
	var buf [64]byte
	n, err := unix.Readlinkat(fd, "", buf[:])
	if err != nil {
		return ""
	}
	return string(buf[:n])
}

// tries is the largest number of reads of one line of ancestors. A read is repeated if a process of the line ends
// during it.
const tries = 5

// ancestry reads a process and its ancestors.
func ancestry(pid int) (links []link, err error) {
	p := openProc()
	defer p.closeFD()
	if p.readLink("self") != strconv.Itoa(os.Getpid()) { // otherwise /proc belongs to another pid namespace
		return nil, errHidden
	}
	for range tries {
		var again bool
		if links, again, err = p.readLine(pid); !again {
			break
		}
	}
	if len(links) == 0 {
		return nil, fmt.Errorf("%w: it is gone", errHidden)
	}
	return links, err
}

// readLine reads a line once. The result "again" means that a process got another parent during the read.
func (p *proc) readLine(pid int) (links []link, again bool, err error) {
	parent := 0
	for pid > 0 {
		l, above, err := p.readProcess(pid)
		var child link
		if n := len(links); n > 0 {
			child = links[n-1]
			if now, same, serr := p.readStat(child.PID); serr != nil || now.ticks != child.ticks || same != parent ||
				err == nil && l.ticks > child.ticks {
				return links, true, &gapError{PID: pid, Child: child.Process, Why: "its number passes from process to process"}
			}
		}
		switch {
		case err == nil:
		case len(links) == 0:
			return nil, false, err
		case !errors.Is(err, unix.EXDEV) && lives(pid): // hidepid: the system hides the process
			links[len(links)-1].hiddenAbove = true
			return links, false, nil
		default:
			return links, false, &gapError{PID: pid, Child: child.Process, Why: why(err)}
		}
		links = append(links, l)
		pid, parent = above, above
	}
	return links, false, nil
}

// lives asks the kernel, and not /proc, whether a process exists.
func lives(pid int) bool {
	err := unix.Kill(pid, 0)
	return err == nil || errors.Is(err, unix.EPERM)
}

// why describes the reason why a process could not be read from /proc.
func why(err error) string {
	if errors.Is(err, unix.EXDEV) {
		return "something is mounted over it"
	}
	return err.Error()
}

// readProcess reads one process. The error names the part that cannot be read. A process of another user hides its
// environment and its namespaces.
func (p *proc) readProcess(pid int) (l link, parent int, err error) {
	l, parent, err = p.readStat(pid)
	if err != nil {
		return l, 0, err
	}
	dir := strconv.Itoa(pid) + "/"
	env, err := p.readFile(dir + "environ")
	if errors.Is(err, unix.EXDEV) {
		return l, 0, err
	}
	if err == nil {
		l = l.environ(strings.Split(string(env), "\x00"))
	}
	limits, err := p.readFile(dir + "limits")
	if errors.Is(err, unix.EXDEV) {
		return l, 0, err
	}
	l.brand, l.branded = brandIn(limits)
	// A user namespace is not visible from the namespaces below it, but its map of users is.
	users, err := p.readFile(dir + "uid_map")
	if errors.Is(err, unix.EXDEV) {
		return l, 0, err
	}
	l.spaces = [3]string{p.readLink(dir + "ns/mnt"), p.readLink(dir + "ns/pid"), string(users)}
	return l, parent, nil
}

// brandIn finds the brand in /proc/PID/limits. The columns of this file are name, soft limit, hard limit and unit.
func brandIn(limits []byte) (mode string, ok bool) {
	_, rest, found := bytes.Cut(limits, []byte("Max file locks"))
	f := bytes.Fields(rest)
	if !found || len(f) < 2 || string(f[1]) == "unlimited" {
		return "", false
	}
	hard, err := strconv.ParseUint(string(f[1]), 10, 64)
	if err != nil {
		return "deny", true
	}
	return brandOf(hard)
}

// ticksPerSecond is the unit of a process's start. It is the same on every machine.
const ticksPerSecond = 100

// readStat reads the name, the start and the parent of a process.
func (p *proc) readStat(pid int) (l link, parent int, err error) {
	b, err := p.readFile(strconv.Itoa(pid) + "/stat")
	if err != nil {
		return l, 0, err
	}
	open, end := bytes.IndexByte(b, '('), bytes.LastIndexByte(b, ')')
	if open < 0 || end < open {
		return l, 0, errNoStat
	}
	f := strings.Fields(string(b[end+1:])) // field 3 of proc(5) is the state, field 22 the start
	if len(f) < 20 {
		return l, 0, errNoStat
	}
	l.PID, l.Name = pid, string(b[open+1:end])
	if l.runs, l.runner = strings.CutPrefix(l.Name, runnerName); l.runner {
		l.Name = strings.TrimSuffix(runnerName, ":")
	}
	parent, err = strconv.Atoi(f[1])
	if err != nil {
		return l, 0, errNoStat
	}
	if l.ticks, err = strconv.ParseUint(f[19], 10, 64); err != nil {
		return l, 0, errNoStat
	}
	l.Started = sinceBoot(time.Duration(l.ticks) * time.Second / ticksPerSecond)
	return l, parent, nil
}

// errNoStat means that a file does not have the form of /proc/PID/stat.
var errNoStat = errors.New("its /proc/PID/stat is malformed")

// sinceBoot converts a time since boot to a time of day.
func sinceBoot(d time.Duration) time.Time {
	var now unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &now) != nil {
		return time.Time{}
	}
	return time.Now().Add(d - time.Duration(now.Nano()))
}

// Born returns the creation time of a file. ok is false if the file system does not record it.
func Born(path string) (at time.Time, ok bool) {
	var st unix.Statx_t
	err := unix.Statx(unix.AT_FDCWD, path, 0, unix.STATX_BTIME, &st)
	if err != nil || st.Mask&unix.STATX_BTIME == 0 {
		return at, false
	}
	return time.Unix(st.Btime.Sec, int64(st.Btime.Nsec)), true
}

// Terminal returns the name of this process's controlling terminal, or "".
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
