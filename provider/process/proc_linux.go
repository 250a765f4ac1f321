package process

import (
	"bytes"
	"cmp"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// procStat is what /proc/PID/stat says of a process. pid and start together name
// one process for as long as the machine runs.
type procStat struct {
	pid, ppid, pgid, session int
	state                    byte
	start                    uint64 // in clock ticks since boot
	comm                     string
}

func readStat(pid int) (procStat, bool) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return procStat{}, false
	}
	// The name is in parentheses and may hold any character, parentheses too.
	open, end := bytes.IndexByte(b, '('), bytes.LastIndexByte(b, ')')
	if open < 0 || end < open {
		return procStat{}, false
	}
	f := strings.Fields(string(b[end+1:])) // state is field 3 of proc(5), start is field 22
	if len(f) < 20 {
		return procStat{}, false
	}
	s := procStat{pid: pid, state: f[0][0], comm: string(b[open+1 : end])}
	s.ppid, _ = strconv.Atoi(f[1])
	s.pgid, _ = strconv.Atoi(f[2])
	s.session, _ = strconv.Atoi(f[3])
	s.start, err = strconv.ParseUint(f[19], 10, 64)
	return s, err == nil
}

func startTime(pid int) uint64 {
	s, _ := readStat(pid)
	return s.start
}

// allProcs reads every process that can be seen.
func allProcs() []procStat {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1)
	var all []procStat
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		if s, ok := readStat(pid); ok {
			all = append(all, s)
		}
	}
	return all
}

// descendants returns the processes below pid, without it.
func descendants(pid int) []procStat {
	children := map[int][]procStat{}
	for _, s := range allProcs() {
		children[s.ppid] = append(children[s.ppid], s)
	}
	found := children[pid]
	delete(children, pid)
	for i := 0; i < len(found); i++ {
		p := found[i].pid
		found = append(found, children[p]...)
		delete(children, p) // no cycles, even from a table that was read while it changed
	}
	return found
}

// listedBelow is descendants at the price of reading a few files, where the system lists children. It may miss a process whose
// sibling ends in the same moment.
func listedBelow(pid int) (found []procStat) {
	if !childrenAreListed() {
		return descendants(pid)
	}
	for _, child := range children(pid) {
		if s, ok := readStat(child); ok {
			found = append(append(found, s), listedBelow(child)...)
		}
	}
	return found
}

// childrenAreListed says whether the system keeps lists of children.
var childrenAreListed = sync.OnceValue(func() bool {
	_, err := os.Stat("/proc/thread-self/children")
	return err == nil
})

// children returns the numbers of a process's children, as the system lists them by thread.
func children(pid int) (list []int) {
	dir := "/proc/" + strconv.Itoa(pid) + "/task/"
	threads, _ := os.ReadDir(dir) // it may be gone
	for _, thread := range threads {
		b, _ := os.ReadFile(dir + thread.Name() + "/children") // the thread may have ended
		for _, f := range strings.Fields(string(b)) {
			if child, err := strconv.Atoi(f); err == nil {
				list = append(list, child)
			}
		}
	}
	return list
}

// What a process's environment says of whose it is.
const (
	markNone = iota
	markOurs
	markOther
)

// marks returns the marks that a process started with, outermost first.
func marks(pid int) []string {
	if v := startedWith(pid, agentMark); v != "" {
		return strings.Split(v, "/")
	}
	return nil
}

// startedWith returns the value of a variable with which a process was started.
func startedWith(pid int, name string) string {
	env, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	if err != nil {
		return ""
	}
	for kv := range bytes.SplitSeq(env, []byte{0}) {
		if v, ok := bytes.CutPrefix(kv, []byte(name+"=")); ok {
			return string(v)
		}
	}
	return ""
}

// marked says whether mark is among those of a process.
func marked(pid int, mark string) int {
	found := marks(pid)
	if slices.Contains(found, mark) {
		return markOurs
	}
	// Marks that we carry ourselves say nothing about which agent of ours it is.
	if own := os.Getenv(agentMark); len(found) == 0 || strings.Join(found, "/") == own {
		return markNone
	}
	return markOther
}

// commandOf returns the command line of a process on one line, at most 200 bytes.
func commandOf(s procStat) string {
	b, _ := os.ReadFile("/proc/" + strconv.Itoa(s.pid) + "/cmdline")
	line := cmp.Or(strings.TrimSpace(strings.Join(strings.FieldsFunc(string(b), func(r rune) bool { return r < ' ' }), " ")), "["+s.comm+"]")
	return strings.ToValidUTF8(line[:min(len(line), 200)], "\uFFFD")
}

// Survivors lists processes that outlived their agent and every Perlica that could
// still end them. They are never killed by this: a person decides.
func Survivors() []Survivor {
	namespace, _ := os.Readlink("/proc/self/ns/pid")
	var out []Survivor
	for _, s := range allProcs() {
		if s.state == 'Z' {
			continue
		}
		ms := marks(s.pid)
		if len(ms) == 0 || anyAlive(ms) {
			continue
		}
		// The numbers in the mark mean something in their own namespace only.
		if ns, _ := os.Readlink("/proc/" + strconv.Itoa(s.pid) + "/ns/pid"); ns != namespace {
			continue
		}
		out = append(out, Survivor{PID: s.pid, Command: commandOf(s), Agent: agentOf(ms[len(ms)-1])})
	}
	return out
}

// anyAlive says whether a Perlica that one of the marks names still runs. A mark
// that cannot be read counts as one.
func anyAlive(ms []string) bool {
	for _, m := range ms {
		f := strings.Split(m, ":")
		if len(f) != 4 {
			return true
		}
		pid, err1 := strconv.Atoi(f[1])
		start, err2 := strconv.ParseUint(f[2], 10, 64)
		if err1 != nil || err2 != nil {
			return true
		}
		if s, ok := readStat(pid); ok && s.start == start && s.state != 'Z' {
			return true
		}
	}
	return false
}
