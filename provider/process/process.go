// Package process starts an agent's process and ends it with all that it started.
//
// It promises that no process of an agent is left behind without being named, that a pipe which
// something else holds open holds up nothing, and that an agent's environment has no variable that
// was not named for it. It knows no protocol.
//
// The one idea: descendants carry a mark in their environment, by which they are found wherever
// they went.
package process

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/perlica/perlica/provider/descent"
)

// agentMark is the variable by which an agent's descendants are known, whatever
// group or session they moved to. markOf says what a mark holds.
const agentMark = descent.Mark

const (
	defaultGrace = 2 * time.Second
	drainWait    = 200 * time.Millisecond // for stderr that something else holds open
	killWait     = 5 * time.Second        // for the kernel to take down what was killed
)

// Spec says how an agent is started.
type Spec struct {
	Agent  string              // who it is in Survivors; empty: the command's base name
	Argv   []string            // see resolve for how the first word is looked up
	Env    []string            // the whole environment; the mark and PWD are added
	Dir    string              // empty: Perlica's own
	Stderr func(line []byte)   // each line, without its end, at most 16 KiB; valid during the call
	Redact func([]byte) []byte // masks a line of stderr before it is kept or handed on; may be nil
	Grace  time.Duration       // between closing stdin, SIGTERM and SIGKILL; zero: 2 s
	Limit  string              // the permission mode of the run, for descendants; empty: "deny"

	Launched *Launched // is taken if it was launched with the same; nil: none was
}

// Process is a running agent and everything it started.
//
// The caller must call End once, also after the agent has left by itself:
// only End finds what the agent left behind. All methods may be called at any
// time by any goroutine.
type Process struct {
	cmd   *exec.Cmd
	tree  *tree
	grace time.Duration
	mark  string

	stdin, stdout *os.File
	stderr        *stderrTail

	mu     sync.Mutex // held while signalling and while reaping, never both at once
	reaped bool       // guarded by mu: the process number may belong to somebody else

	exited    chan struct{} // closed by watch
	hurry     chan struct{} // closed once: no more grace
	hurryOnce sync.Once
	endOnce   sync.Once
	endErr    error
	forced    Forced      // written in endOnce
	killed    atomic.Bool // Kill has sent the signal
}

// Forced says what End had to do beyond closing stdin.
type Forced struct {
	Term, Kill bool       // the agent itself did not leave until it was signalled
	Rest       []Survivor // what it had left behind, ended too
}

// Start starts an agent in a process group (Windows: a job object) of its
// own. The error is a *StartError unless the system ran out of something.
func Start(spec Spec) (*Process, error) {
	if spec.Launched != nil {
		if p, err, ok := spec.Launched.take(spec); ok {
			return p, err
		}
	}
	path, err := resolve(spec)
	if err != nil {
		return nil, err
	}
	name := cmp.Or(spec.Agent, filepath.Base(spec.Argv[0]))
	p := &Process{
		grace:  spec.Grace,
		mark:   markOf(name),
		exited: make(chan struct{}),
		hurry:  make(chan struct{}),
	}
	if p.grace <= 0 {
		p.grace = defaultGrace
	}
	p.cmd = exec.Command(path, spec.Argv[1:]...)
	p.cmd.Args[0] = spec.Argv[0]
	p.cmd.Dir = spec.Dir
	p.cmd.Env = markedEnv(spec, p.mark)

	child, err := p.openPipes(spec)
	if err != nil {
		return nil, fmt.Errorf("provider: start %s: %w", spec.Argv[0], err)
	}
	defer closeAll(child)
	// Before the first agent can start anything, so that nothing of it goes unknown.
	if err = descent.Announce(spec.Limit); err == nil {
		p.tree, err = newTree(p.mark)
	}
	if err == nil {
		p.tree.prepare(p.cmd)
		started := make(chan error)
		go p.watch(started)
		err = <-started
	}
	if err != nil {
		closeAll([]*os.File{p.stdin, p.stdout, p.stderr.r})
		if p.tree != nil {
			p.tree.close()
		}
		return nil, startError(spec, path, err)
	}
	go p.stderr.read()
	return p, nil
}

// openPipes makes the three pipes and returns the child's ends.
func (p *Process) openPipes(spec Spec) (child []*os.File, err error) {
	var ours []*os.File
	for range 3 {
		r, w, err := os.Pipe()
		if err != nil {
			closeAll(append(ours, child...))
			return nil, err
		}
		if len(ours) == 0 {
			r, w = w, r // stdin is read by the child
		}
		ours, child = append(ours, r), append(child, w)
	}
	p.stdin, p.stdout = ours[0], ours[1]
	p.stderr = &stderrTail{r: ours[2], line: spec.Stderr, redact: spec.Redact, done: make(chan struct{})}
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = child[0], child[1], child[2]
	return child, nil
}

// watch starts the child, waits for it and reaps it. It does all three on one
// thread that it keeps to itself: Linux sends the parent-death signal when the
// starting thread ends, not the process.
func (p *Process) watch(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := p.cmd.Start()
	if err == nil {
		err = p.tree.started(p.cmd.Process)
		if err != nil {
			p.cmd.Process.Kill()
			p.cmd.Wait()
		}
	}
	started <- err
	if err != nil {
		return
	}
	awaitExit(p.cmd.Process.Pid)
	p.mu.Lock()
	p.cmd.Wait() // the state is read by ExitState; there is nothing else to fail
	p.reaped = true
	p.mu.Unlock()
	p.stderr.drain(drainWait)
	close(p.exited)
}

// Stdin is the agent's standard input. Its Write can be given a deadline.
func (p *Process) Stdin() *os.File { return p.stdin }

// Output is the agent's standard output; one caller reads it to its end and closes it.
func (p *Process) Output() *Output { return &Output{f: p.stdout, exited: p.exited} }

// Pid is the number of the agent itself, which is also its process group's.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Exited is closed once the agent itself has been waited for and what it wrote to
// stderr has been read.
func (p *Process) Exited() <-chan struct{} { return p.exited }

// ExitState says how the agent itself ended. code is -1 when a signal ended it,
// ok false while it runs.
func (p *Process) ExitState() (code int, signal string, ok bool) {
	select {
	case <-p.exited:
		return p.cmd.ProcessState.ExitCode(), signalName(p.cmd.ProcessState), true
	default:
		return 0, "", false
	}
}

// StderrTail returns the end of what was read from stderr so far, from at most
// 4 KiB, as valid UTF-8.
func (p *Process) StderrTail() string { return p.stderr.String() }

// Forced says what End had to force. It is complete once End has returned.
func (p *Process) Forced() Forced {
	f := p.forced
	f.Kill = f.Kill || p.killed.Load()
	return f
}

// Kill ends the agent and its process group at once (Windows: its job). It closes
// stdin without writing to it and does not wait. End is still to be called; it
// will give no more grace to anything.
func (p *Process) Kill() error {
	err := p.signal(func() error {
		p.killed.Store(true)
		return p.tree.kill()
	})
	p.stdin.Close()
	p.hurryUp()
	return err
}

// End ends everything the agent started: it looks what hangs below the agent, closes stdin, gives grace, sends
// SIGTERM to the group, gives grace, sends SIGKILL to the group, then does the
// last two to whatever left the group (Linux), and waits. When ctx is done it
// gives no more grace, but still ends and waits. The error is a *SurvivedError
// when something could not be ended. Later and concurrent calls wait for the
// first and return the same.
func (p *Process) End(ctx context.Context) error {
	if ctx.Err() != nil {
		p.hurryUp()
	}
	stop := context.AfterFunc(ctx, p.hurryUp)
	defer stop()
	p.endOnce.Do(func() { p.endErr = p.end() })
	return p.endErr
}

func (p *Process) end() error {
	defer p.tree.close()
	p.tree.rememberQuickly(p.Pid()) // as long as it hangs below the agent: that may leave at once
	p.stdin.Close()
	if !p.left(p.grace) {
		p.forced.Term = true
		p.tree.remember(p.Pid())
		p.signal(p.tree.term)
		if !p.left(p.grace) {
			p.forced.Kill = true
			p.tree.remember(p.Pid())
			p.signal(p.tree.kill)
		}
	}
	var survived []Survivor
	select {
	case <-p.exited:
	case <-time.After(killWait):
		survived = append(survived, Survivor{PID: p.Pid(), Command: p.cmd.String(), Agent: agentOf(p.mark)})
	}
	rest, stayed := p.tree.rest(p.grace, p.hurry)
	p.forced.Rest = rest
	survived = append(survived, stayed...)

	p.stderr.drain(drainWait)
	p.stderr.r.Close()
	if len(survived) > 0 || !treeIsComplete {
		p.stdout.SetReadDeadline(time.Now().Add(drainWait))
	}
	if len(survived) > 0 {
		return &SurvivedError{Processes: survived}
	}
	return nil
}

// left waits for the agent itself to leave, unless there is no more grace.
func (p *Process) left(grace time.Duration) bool {
	t := time.NewTimer(grace)
	defer t.Stop()
	select {
	case <-p.exited:
		return true
	default:
	}
	select {
	case <-p.exited:
		return true
	case <-t.C:
	case <-p.hurry:
	}
	select {
	case <-p.exited: // as it came to the same moment
		return true
	default:
		return false
	}
}

// signal calls send while the process number is certainly still the agent's.
func (p *Process) signal(send func() error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.reaped {
		return nil
	}
	return send()
}

func (p *Process) hurryUp() { p.hurryOnce.Do(func() { close(p.hurry) }) }

// Survivor is a process that an agent started and that still runs.
type Survivor struct {
	PID     int
	Command string // its command line as the system shows it
	Agent   string // the agent that it came from
	Stray   bool   // it had no mark: Perlica knows it as an orphan that it adopted
}

// SurvivedError says that processes of an agent could not be ended.
type SurvivedError struct{ Processes []Survivor }

func (e *SurvivedError) Error() string {
	var b strings.Builder
	b.WriteString("processes of the agent could not be ended:")
	for i, s := range e.Processes {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, " %d (%s)", s.PID, s.Command)
	}
	return b.String()
}

// markOf makes a new mark: agent:pid:start:random. pid and start (a number of
// clock ticks, zero where unknown) are those of this Perlica process; the random
// part keeps two process namespaces apart.
func markOf(agent string) string {
	agent = strings.Map(func(r rune) rune {
		if r <= ' ' || strings.ContainsRune(":/=", r) {
			return '_'
		}
		return r
	}, agent)
	pid := os.Getpid()
	return fmt.Sprintf("%s:%d:%d:%s", agent, pid, startTime(pid), rand.Text()[:12])
}

func agentOf(mark string) string {
	agent, _, _ := strings.Cut(mark, ":")
	return agent
}

// Marked returns the variables by which a process that a client starts for an agent is known to be the
// agent's. It is not ended with the agent.
func Marked(agent, limit string) []string {
	return markedEnv(Spec{Limit: limit}, markOf(agent))
}

// markedEnv is the environment of the child: one mark, after those of the
// Perlica processes above, the permission mode, and a PWD that is true.
func markedEnv(spec Spec, mark string) []string {
	env := append([]string(nil), spec.Env...) // of two with one name os/exec passes the later
	if above := os.Getenv(agentMark); above != "" {
		mark = above + "/" + mark
	}
	if filepath.IsAbs(spec.Dir) {
		env = append(env, "PWD="+spec.Dir)
	}
	return append(env, agentMark+"="+mark, descent.LimitVariable+"="+cmp.Or(spec.Limit, "deny"))
}

func closeAll[C io.Closer](cs []C) {
	for _, c := range cs {
		c.Close()
	}
}
