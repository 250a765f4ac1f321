// Package descent determines the agents from which a process descends.
//
// The package recognizes each process that an agent started, in any namespace, under any parent and after any number of
// runs. It never trusts a process that claims to have no agent above it. A claim of a process can only add an agent.
// The process and its ancestors together are called its line.
//
// A person's process has these properties. Every other process is treated as an agent's.
//
//  1. Neither the process nor an ancestor is branded (Linux). Before a Perlica starts its first agent,
//     it lowers its own hard limit of file locks, which no kernel uses. Each descendant inherits
//     the limit, and only CAP_SYS_RESOURCE in the first user namespace can raise it. The value names
//     the permission mode. A descendant can only lower the value, which means a stricter mode.
//  2. No ancestor is a Perlica that runs agents. Such a Perlica shows this in its name (Linux).
//  3. No process of the line has the variable Mark in its environment.
//  4. Every process of the line could be read (Linux). It was read from the real /proc with nothing mounted
//     over an entry, and each parent is older than its child. The line ends at process 1, at a parent in an
//     outer pid namespace, or at a process that the system itself hides (hidepid). Only the owner of a pid
//     namespace can hide processes in this way. Because /proc does not show a hidden process, signal 0 tests
//     whether it is alive.
//  5. The process has a controlling terminal if it left the namespaces of an ancestor or is in a namespace
//     that needs no privilege. Commands check this (Line.Hidden).
//  6. An answer comes from the namespaces of the Perlica that asked (Line.Apart). The answering process needs
//     a terminal if it was started by a service such as cron, which starts programs for any process. It also
//     needs one if it has an ancestor outside the container. It needs none if the Perlica that asked descends
//     from the same ancestor.
//
// The age of a terminal, of a tmux server or of a login proves nothing, so no rule uses it. A login through sshd,
// login, su, sudo or a display manager has no brand, so it counts as a person's, however old it is.
package descent

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	// Mark is the variable by which an agent's descendants are known. Its value contains the marks of all
	// Perlica processes above, outermost first, joined by slashes. One mark is agent:pid:start:random.
	Mark = "PERLICA_AGENT_ID"
	// LimitVariable gives an agent's descendants its permission mode on systems without brands.
	LimitVariable = "PERLICA_AGENT_PERMISSIONS"
	// PersonVariable marks a program that a person starts from a Perlica, for example an editor. When Perlica
	// ends its agents, it does not end such a program. The variable grants no rights.
	PersonVariable = "PERLICA_AGENT_NOT"
)

// errHidden means that the system does not show the ancestors of a process.
var errHidden = errors.New("descent: the system does not show which processes this one descends from")

// gapError names an ancestor that cannot be read. The ancestors above it are unknown.
type gapError struct {
	PID   int     // the unreadable ancestor
	Child Process // the last process that was read
	Why   string
}

func (e *gapError) Error() string {
	return fmt.Sprintf("descent: process %d, the parent of %s (%d), cannot be read: %s", e.PID, e.Child.Name, e.Child.PID,
		e.Why)
}

// Unwrap returns errHidden.
func (e *gapError) Unwrap() error { return errHidden }

// Process is the number, the program name and the start of a process, as the system reports them.
type Process struct {
	PID     int
	Name    string
	Started time.Time // zero means unknown
}

// Agent is an agent from which a process descends.
type Agent struct {
	Name   string // the provider's name; empty means unknown
	Runner int    // the number of the Perlica process that runs it
	// Top is the agent's own process. If that process has ended, Top is the uppermost remaining process of
	// the line, which started after the agent.
	Top Process
	// Limit is the permission mode of the agent's run. Empty means unknown.
	Limit string
	id    string
}

// Line is a process with its chain of ancestors.
type Line struct {
	Processes []Process // the process itself first, then its parent
	Agents    []Agent   // in no particular order
	// Partial means that the process is in a pid namespace and may have ancestors outside.
	Partial bool
	// Hidden means that only a controlling terminal can show that a person started the process. The reason is one of
	// three: any process can create the process's namespace, the process left the namespaces of an ancestor, or the
	// system shows no ancestors.
	Hidden bool

	links []link
	limit string // the strictest mode of a brand; empty if no process is branded
}

// link is one process of a line, with the system's knowledge about it.
type link struct {
	Process
	ticks   uint64    // the start in the unit of the marks; 0 means unknown
	marks   []string  // the marks in the initial environment, outermost first
	limit   string    // the mode in its environment
	runner  bool      // the process is a Perlica that runs agents
	runs    string    // the permission mode of those agents
	branded bool      // the process is, or descends from, a Perlica that runs agents
	brand   string    // the permission mode of the brand
	spaces  [3]string // mount namespace, pid namespace and user map; empty means not shown
	// hiddenAbove means that the system hides the parent.
	hiddenAbove bool
}

// Self returns the Line of this process.
func Self() (Line, error) { return Of(os.Getpid()) }

// Of returns the line of descent of a process. If a part of it cannot be read, the error is errHidden or a *gapError,
// and the Line has the known part.
func Of(pid int) (Line, error) {
	links, err := ancestry(pid)
	if pid == os.Getpid() {
		if len(links) == 0 {
			links = []link{{Process: Process{PID: pid}}}
		}
		own := links[0].environ(os.Environ())
		links[0].marks = append(links[0].marks, own.marks...)
		if stricter(own.limit, links[0].limit) {
			links[0].limit = own.limit
		}
		links[0].brand, links[0].branded = ownBrand() // this also works if /proc cannot be read
	}
	l := line(links)
	l.Partial, l.Hidden = namespaced()
	l.Hidden = l.Hidden || moved(links)
	return l, err
}

// moved reports whether a process of the line is in other namespaces than its parent. It ignores the children of a
// service manager, because it starts services in their own namespaces.
func moved(links []link) bool {
	for i := range len(links) - 1 {
		if links[i].otherNamespace(links[i+1]) != "" && !manager(links, i+1) {
			return true
		}
	}
	return false
}

// manager reports whether a link is process 1 or the service manager of a user.
func manager(links []link, i int) bool {
	return links[i].PID == 1 || links[i].Name == "systemd" && i+1 < len(links) && links[i+1].PID == 1
}

// otherNamespace returns the kind of the first namespace that differs between the two processes, or "". Hidden
// namespaces are not compared.
func (l link) otherNamespace(other link) string {
	for i, kind := range namespaceKinds {
		if l.spaces[i] != "" && other.spaces[i] != "" && l.spaces[i] != other.spaces[i] {
			return kind
		}
	}
	return ""
}

// namespaceKinds names the entries of link.spaces.
var namespaceKinds = [3]string{"mount", "pid", "user"}

// launchers are programs that start other programs at the request of any process of the user.
var launchers = []string{"systemd", "cron", "crond", "atd", "anacron", "fcron", "dbus-daemon", "dbus-broker",
	"dbus-broker-lau"}

// ApartError means that a process cannot answer a question of another process.
type ApartError struct {
	PID int // the process that asked
	Why string
	// Terminal means that the process could answer if it had a controlling terminal.
	Terminal bool
}

func (e *ApartError) Error() string { return "an answer from here does not count: " + e.Why }

// Apart returns an *ApartError if this process is in other namespaces than the process that asked. It also returns one
// if only a terminal could show that a person started this process. That is the case if one of the launchers started
// it, or if its parent is outside the container. The terminal is unnecessary if both processes have a common ancestor
// below the launcher, or inside the container.
func (l Line) Apart(asker int) error {
	theirs, err := ancestry(asker)
	if err != nil && len(theirs) == 0 {
		return &ApartError{PID: asker, Why: fmt.Sprintf("process %d, which asked, cannot be read", asker)}
	}
	if kind := l.links[0].otherNamespace(theirs[0]); kind != "" {
		return &ApartError{PID: asker, Why: fmt.Sprintf("process %d, which asked, is in another %s namespace", asker, kind)}
	}
	return l.checkShared(theirs)
}

func (l Line) checkShared(theirs []link) error {
	for i, k := range l.links {
		if k.PID != 1 && i > 0 && slices.Contains(launchers, k.Name) {
			return &ApartError{PID: theirs[0].PID, Terminal: true, Why: fmt.Sprintf("%s (%d) started this process, and it starts programs for everybody", k.Name, k.PID)}
		}
		if k.PID == 1 || slices.ContainsFunc(theirs, func(t link) bool { return t.PID == k.PID && t.ticks == k.ticks }) {
			return nil
		}
	}
	top := l.links[len(l.links)-1]
	if top.hiddenAbove {
		return nil
	}
	return &ApartError{PID: theirs[0].PID, Terminal: true, Why: fmt.Sprintf("the parent of %s (%d) is outside of this container", top.Name, top.PID)}
}

func (l link) environ(env []string) link {
	for _, kv := range env {
		if v, ok := strings.CutPrefix(kv, Mark+"="); ok && v != "" {
			l.marks = append(l.marks, strings.Split(v, "/")...)
		}
		if v, ok := strings.CutPrefix(kv, LimitVariable+"="); ok && (l.limit == "" || stricter(v, l.limit)) {
			l.limit = v
		}
	}
	return l
}

// line makes a Line from the links, and finds the agents among them.
func line(links []link) (l Line) {
	l.links = links
	runners := map[string]bool{}
	for i, k := range links {
		l.Processes = append(l.Processes, k.Process)
		if i == 0 || !k.runner {
			continue
		}
		runners[runnerKey(k.PID, k.ticks)] = true
		child := links[i-1]
		a := Agent{Runner: k.PID, Top: child.Process, Limit: k.runs,
			id: "process " + strconv.Itoa(child.PID) + ":" + strconv.FormatUint(child.ticks, 10)}
		for _, m := range child.marks {
			if name, pid, ticks := parse(m); pid == k.PID && ticks == k.ticks {
				a.Name = name
			}
		}
		l.Agents = append(l.Agents, a)
	}
	seen := map[string]bool{}
	for i := len(links) - 1; i >= 0; i-- { // from the top, to find an agent's uppermost process first
		for _, m := range links[i].marks {
			name, pid, ticks := parse(m)
			if seen[m] || runners[runnerKey(pid, ticks)] {
				continue
			}
			seen[m] = true
			l.Agents = append(l.Agents, Agent{Name: name, Runner: pid, Top: links[i].Process, Limit: limitOf(links[:i+1]),
				id: m})
		}
	}
	top := -1 // the index of the uppermost branded process
	for i, k := range links {
		if !k.branded {
			continue
		}
		if top = i; l.limit == "" || stricter(k.brand, l.limit) {
			l.limit = k.brand
		}
	}
	if top >= 0 && (top == 0 || !links[top].runner) { // the agents of a runner are already listed
		k := links[top]
		l.Agents = append(l.Agents, Agent{Top: k.Process, Limit: l.limit, id: "brand " + runnerKey(k.PID, k.ticks)})
	}
	return l
}

// limitOf returns the strictest mode of the links. It is empty if a link has no mode, because a process may
// have removed the variable.
func limitOf(links []link) string {
	limit := links[0].limit
	for _, k := range links[1:] {
		if stricter(k.limit, limit) {
			limit = k.limit
		}
	}
	return limit
}

func runnerKey(pid int, ticks uint64) string {
	return strconv.Itoa(pid) + ":" + strconv.FormatUint(ticks, 10)
}

// parse splits a mark into its parts. It returns zeros for an unreadable mark.
func parse(mark string) (name string, pid int, ticks uint64) {
	f := strings.Split(mark, ":")
	if len(f) != 4 {
		return "", 0, 0
	}
	pid, err := strconv.Atoi(f[1])
	if err != nil {
		return "", 0, 0
	}
	ticks, err = strconv.ParseUint(f[2], 10, 64)
	if err != nil {
		return "", 0, 0
	}
	return f[0], pid, ticks
}

// Youngest returns the agent of the line that started last. ok is false without agents. An agent with an
// unknown start counts as the youngest.
func (l Line) Youngest() (a Agent, ok bool) {
	for _, b := range l.Agents {
		if !ok || b.Top.Started.IsZero() || !a.Top.Started.IsZero() && b.Top.Started.After(a.Top.Started) {
			a, ok = b, true
		}
	}
	return a, ok
}

// Limit returns the strictest permission mode of the line's agents, or "deny" if a mode is unknown.
func (l Line) Limit() string {
	limit := cmp.Or(l.limit, "allow")
	for _, a := range l.Agents {
		if stricter(a.Limit, limit) {
			limit = a.Limit
		}
	}
	if rank(limit) == 0 {
		return "deny"
	}
	return limit
}

// Stricter returns the stricter of two permission modes.
func Stricter(a, b string) string {
	if stricter(a, b) {
		return a
	}
	return b
}

func stricter(a, b string) bool { return rank(a) < rank(b) }

// rank orders permission modes, the strictest first. An unknown mode is stricter than the known ones.
func rank(mode string) int {
	switch mode {
	case "ask":
		return 1
	case "reads":
		return 2
	case "allow":
		return 3
	}
	return 0 // deny and unknown modes
}

// foreignAgent returns an agent from which the process descends and this process does not. The error means that
// this cannot be determined, because the process has ended or its ancestors are hidden.
func foreignAgent(pid int) (a Agent, ok bool, err error) {
	if pid == os.Getpid() {
		return Agent{}, false, nil
	}
	theirs, err := Of(pid)
	if err != nil {
		return Agent{}, false, err
	}
	ours, err := Self()
	if err != nil {
		return Agent{}, false, err
	}
	if slices.ContainsFunc(ours.Processes, func(p Process) bool { return p.PID == pid }) {
		return Agent{}, false, nil // this process descends from all agents of its ancestors
	}
	for _, a := range theirs.Agents {
		if !slices.ContainsFunc(ours.Agents, func(b Agent) bool { return a.id == b.id }) {
			return a, true, nil
		}
	}
	return Agent{}, false, nil
}

// String names the agent.
func (a Agent) String() string {
	name := "an agent"
	if a.Name != "" {
		name = "the agent " + a.Name
	}
	if a.Runner != 0 {
		name += " of Perlica's process " + strconv.Itoa(a.Runner)
	}
	return name
}

// ForeignError means that a connection comes from a process of an agent.
type ForeignError struct{ Agent Agent }

func (e *ForeignError) Error() string {
	return "the other side descends from " + e.Agent.String() + ", and an agent has no say here"
}

// CheckUnix returns a *ForeignError if the process at the other end of a Unix socket descends from an agent
// and this process does not. It returns another error if that process has ended. It returns nil on a system
// that does not identify the process.
func CheckUnix(c syscall.Conn) error {
	pid, err := unixPeer(c)
	if err != nil || pid == 0 {
		return err
	}
	return check(pid)
}

// CheckTCP is CheckUnix for a connection over a loopback address. The connection leads from the address "peer" to the
// address "here". It returns nil for a connection from another machine.
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
	a, foreign, err := foreignAgent(pid)
	switch {
	case err != nil:
		return fmt.Errorf("process %d at the other end of the socket: %w", pid, err)
	case foreign:
		return &ForeignError{a}
	}
	return nil
}
