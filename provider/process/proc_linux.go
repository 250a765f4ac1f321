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

// procStat is the content of /proc/PID/stat. pid and start together identify one process while the machine
// runs.
type procStat struct {
	pid, ppid, pgid, session int
	state                    byte
	start                    uint64 // clock ticks since boot
	comm                     string
}

func readStat(pid int) (procStat, bool) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return procStat{}, false
	}
	// The name is in parentheses and may contain any character, including parentheses.
	open, end := bytes.IndexByte(b, '('), bytes.LastIndexByte(b, ')')
	if open < 0 || end < open {
		return procStat{}, false
	}
	f := strings.Fields(string(b[end+1:])) // field 3 of proc(5) is the state, field 22 the start
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

// allProcs returns every visible process.
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

// descendants returns the processes below pid, without pid itself.
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
		delete(children, p) // this ends cycles in a table that changed while it was read
	}
	return found
}

// listedBelow returns the same processes as the function descendants, but it reads only a few files if the system lists
// children. It may miss a process if a sibling of the process ends at the same moment.
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

// childrenAreListed reports whether the system lists the children of a process.
var childrenAreListed = sync.OnceValue(func() bool {
	_, err := os.Stat("/proc/thread-self/children")
	return err == nil
})

// children returns the numbers of a process's children. The system lists them by thread.
func children(pid int) (list []int) {
	dir := "/proc/" + strconv.Itoa(pid) + "/task/"
	threads, _ := os.ReadDir(dir) // the process may have ended
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

// These constants tell whether a process's environment has the mark of an agent.
const (
	markNone = iota
	markOurs
	markOther
)

// marks returns the marks in the initial environment of a process, outermost first.
func marks(pid int) []string {
	if v := startedWith(pid, agentMark); v != "" {
		return strings.Split(v, "/")
	}
	return nil
}

// startedWith returns the value of a variable in the initial environment of a process.
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

// marked reports whether a process has the given mark, another agent's mark, or no mark.
func marked(pid int, mark string) int {
	found := marks(pid)
	if slices.Contains(found, mark) {
		return markOurs
	}
	// Ignore the marks that this process itself has inherited from an agent above it. They do not mark one of its own
	// agents.
	if own := os.Getenv(agentMark); len(found) == 0 || strings.Join(found, "/") == own {
		return markNone
	}
	return markOther
}

// commandOf returns the command line of a process as one line of at most 200 bytes.
func commandOf(s procStat) string {
	b, _ := os.ReadFile("/proc/" + strconv.Itoa(s.pid) + "/cmdline")
	line := cmp.Or(strings.TrimSpace(strings.Join(strings.FieldsFunc(string(b), func(r rune) bool { return r < ' ' }),
		" ")), "["+s.comm+"]")
	return strings.ToValidUTF8(line[:min(len(line), 200)], "\uFFFD")
}

// Survivors lists the processes that agents have started and left running. Both the agent and its Perlica have ended.
// Survivors never kills a process: a person decides.
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
		// The process numbers in a mark are valid only in their own namespace, so skip the processes of other
		// namespaces.
		if ns, _ := os.Readlink("/proc/" + strconv.Itoa(s.pid) + "/ns/pid"); ns != namespace {
			continue
		}
		out = append(out, Survivor{PID: s.pid, Command: commandOf(s), Agent: agentOf(ms[len(ms)-1])})
	}
	return out
}

// anyAlive reports whether any Perlica named in the marks still runs. An unreadable mark counts as a running
// Perlica.
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
