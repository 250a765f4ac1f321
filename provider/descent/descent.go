// Package descent says from which agents a process descends.
//
// It promises that a process which an agent started is known, as long as the system shows its
// ancestors: by the mark in its environment or in that with which an ancestor was started, and on
// Linux, where Perlica is the parent of its descendants' orphans, by an ancestor that is a Perlica
// which runs agents. It refuses to take a process's own word that it is free: what a process says
// of itself only ever adds to what is known of it.
//
// The one idea: a Perlica that runs agents says so in the name of one of its threads, which only
// that Perlica can write and everybody can read. No binary, folder or variable counts for it.
package descent

import (
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
	// Mark is the variable by which an agent's descendants are known. Its value is the marks of all
	// Perlica processes above, outermost first, joined by slashes: agent:pid:start:random.
	Mark = "PERLICA_AGENT_ID"
	// LimitVariable tells an agent's descendants its permission mode, where the system cannot.
	LimitVariable = "PERLICA_AGENT_PERMISSIONS"
)

// ErrHidden says that the system does not show the ancestors of a process.
var ErrHidden = errors.New("descent: the system does not show which processes this one descends from")

// Process is a process as the system names it.
type Process struct {
	PID     int
	Name    string
	Started time.Time // zero: not known
}

// Agent is an agent from which a process descends.
type Agent struct {
	Name   string // as its provider is called; empty: not known
	Runner int    // the process of the Perlica that runs it
	// Top is the agent's own process or, where that is gone, the first of the line that is left. It
	// was not started before the agent.
	Top Process
	// Limit is the permission mode of its run; empty: not known.
	Limit string
	id    string
}

// Line is the line of descent of a process.
type Line struct {
	Processes []Process // the process itself first, then its parent
	Agents    []Agent   // without an order
	// Partial says that there may be ancestors outside of a namespace of processes in which this one is.
	Partial bool
	// Hidden says so of a namespace that any process can make for itself, or that the system shows no
	// ancestors at all: a terminal is all that speaks for a person then.
	Hidden bool
}

// link is one process of a line, with what the system says of it.
type link struct {
	Process
	ticks  uint64   // its start as marks have it; 0: not known
	marks  []string // with which it was started, outermost first
	limit  string   // likewise
	runner bool     // it is a Perlica that runs agents
	runs   string   // their permission mode
}

// Self is the line of this process.
func Self() (Line, error) { return Of(os.Getpid()) }

// Of returns the line of a process, or ErrHidden.
func Of(pid int) (Line, error) {
	links, err := ancestry(pid)
	if pid == os.Getpid() && len(links) == 0 {
		links = []link{{Process: Process{PID: pid}}}
	}
	if pid == os.Getpid() {
		own := links[0].environ(os.Environ())
		links[0].marks = append(links[0].marks, own.marks...)
		if stricter(own.limit, links[0].limit) {
			links[0].limit = own.limit
		}
	}
	l := line(links)
	l.Partial, l.Hidden = namespaced()
	return l, err
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

// line finds the agents among the links.
func line(links []link) (l Line) {
	runners := map[string]bool{}
	for i, k := range links {
		l.Processes = append(l.Processes, k.Process)
		if i == 0 || !k.runner {
			continue
		}
		runners[runnerKey(k.PID, k.ticks)] = true
		child := links[i-1]
		a := Agent{Runner: k.PID, Top: child.Process, Limit: k.runs, id: "process " + strconv.Itoa(child.PID) + ":" + strconv.FormatUint(child.ticks, 10)}
		for _, m := range child.marks {
			if name, pid, ticks := parse(m); pid == k.PID && ticks == k.ticks {
				a.Name = name
			}
		}
		l.Agents = append(l.Agents, a)
	}
	seen := map[string]bool{}
	for i := len(links) - 1; i >= 0; i-- { // from the top: the first that carries a mark is its agent, or what is left of it
		for _, m := range links[i].marks {
			name, pid, ticks := parse(m)
			if seen[m] || runners[runnerKey(pid, ticks)] {
				continue
			}
			seen[m] = true
			l.Agents = append(l.Agents, Agent{Name: name, Runner: pid, Top: links[i].Process, Limit: limitOf(links[:i+1]), id: m})
		}
	}
	return l
}

// limitOf is the strictest mode that the links name; empty if one of them names none: it may have
// been taken away.
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

// parse takes a mark apart; of one that cannot be read it returns zeros.
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

// Youngest is the agent of the line that was started last; ok is false if there is none. One whose
// start is not known counts as started now.
func (l Line) Youngest() (a Agent, ok bool) {
	for _, b := range l.Agents {
		if !ok || b.Top.Started.IsZero() || !a.Top.Started.IsZero() && b.Top.Started.After(a.Top.Started) {
			a, ok = b, true
		}
	}
	return a, ok
}

// Limit is the strictest permission mode of the line's agents: "deny" where one is not known.
func (l Line) Limit() string {
	limit := "allow"
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

// rank orders permission modes, the strictest first; what is none of them is stricter than all.
func rank(mode string) int {
	switch mode {
	case "ask":
		return 1
	case "reads":
		return 2
	case "allow":
		return 3
	}
	return 0 // deny, and what is not known
}

// Foreign returns an agent from which the process descends and this one does not. A process that is
// gone, or whose ancestors are hidden, cannot be told: then the error says so.
func Foreign(pid int) (a Agent, ok bool, err error) {
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
