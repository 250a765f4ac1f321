// Package process starts an agent's process and ends it with all processes that it started.
//
// The package makes three promises. Every process of an agent is ended or named. A pipe that another process holds open
// delays nothing. An agent's environment contains only the variables that the caller has listed for it. The package
// knows no protocol.
//
// The central idea is the mark, a variable in the agent's environment. All descendants of the agent inherit it, so the
// package finds them even after they have moved to another session.
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
	"github.com/perlica/perlica/provider/proxy"
	"github.com/perlica/perlica/provider/sandbox"
)

// agentMark is the variable by which an agent's descendants are known, in any process group and session. See
// markOf for its value.
const agentMark = descent.Mark

const (
	defaultGrace = 2 * time.Second
	drainWait    = 200 * time.Millisecond // time for stderr that another process holds open
	killWait     = 5 * time.Second        // time in which the kernel ends a killed process
)

// Spec describes how to start an agent.
type Spec struct {
	Agent  string              // the name in Survivors; empty means the base name of the command
	Argv   []string            // see resolve for the look-up of the first word
	Env    []string            // the whole environment; Start adds the mark and PWD
	Dir    string              // empty means Perlica's own
	Stderr func(line []byte)   // gets each line without its end, at most 16 KiB; valid only during the call
	Redact func([]byte) []byte // masks a line of stderr before it is kept or passed to Stderr; may be nil
	Grace  time.Duration       // between closing stdin, SIGTERM and SIGKILL; zero means 2 s
	Limit  string              // the permission mode of the run, for descendants; empty means "deny"

	Sandbox *sandbox.Spec // nil means that the agent starts outside of any sandbox
	// Connected gets each connection through the proxy of the sandbox, one after another. It may be nil.
	Connected func(proxy.Connection)

	Launched *Launched // is taken if it was launched with the same spec; may be nil
}

// Process is a running agent and all processes that it started.
//
// The caller must call End once, even if the agent has exited by itself, because only End finds the remaining
// processes. Any goroutine may call any method at any time.
type Process struct {
	cmd   *exec.Cmd
	tree  *tree
	grace time.Duration
	mark  string
	box   *sandbox.Sandbox // nil without a sandbox
	watch *sandbox.Watch   // nil without a sandbox
	proxy *proxy.Proxy     // nil unless the sandbox has one

	stdin, stdout *os.File
	stderr        *stderrTail

	mu     sync.Mutex // held while signalling or reaping, so that the two never happen at once
	reaped bool       // guarded by mu; the process number may belong to another process

	exited      chan struct{} // closed by watch
	noGrace     chan struct{} // closed once, to end all graces
	noGraceOnce sync.Once
	endOnce     sync.Once
	endErr      error
	forced      Forced      // written in endOnce
	killed      atomic.Bool // Kill has sent the signal
}

// Forced describes the force that End had to use after it closed stdin.
type Forced struct {
	Term, Kill bool       // the signals after which the agent itself ended
	Rest       []Survivor // remaining processes that were ended, too
}

// Start starts an agent in its own process group (on Windows: job object). The error is usually a *launchError. It is a
// *sandbox.Error if the machine cannot make the sandbox. It has neither type if the system lacks a resource, such as
// free descriptors.
func Start(spec Spec) (*Process, error) {
	if spec.Launched != nil {
		if p, err, ok := spec.Launched.takeProcess(spec); ok {
			return p, err
		}
	}
	for try := 1; ; try++ {
		p, err := startOnce(spec)
		if err != nil {
			return nil, err
		}
		if p.watch.Entered() || try == maxStarts {
			go p.stderr.readLines()
			return p, nil
		}
		p.discard()
	}
}

// maxStarts is the number of starts if the sandbox cannot be made. Such a start can fail because a program outside
// removes its socket at that moment.
const maxStarts = 5

// discard ends a process that is not in its sandbox. Nothing was written to it, and nothing was read.
func (p *Process) discard() {
	close(p.stderr.done)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_ = p.End(ctx)       // nothing can be left, because only bwrap ran
	_ = p.stdout.Close() // nothing reads the output
}

// startOnce starts an agent. Its stderr is not read yet.
func startOnce(spec Spec) (*Process, error) {
	path, err := resolve(spec)
	if err != nil {
		return nil, err
	}
	name := cmp.Or(spec.Agent, filepath.Base(spec.Argv[0]))
	p := &Process{
		grace:   spec.Grace,
		mark:    markOf(name),
		exited:  make(chan struct{}),
		noGrace: make(chan struct{}),
	}
	if p.grace <= 0 {
		p.grace = defaultGrace
	}
	if p.box, p.cmd, err = command(spec, path); err != nil {
		return nil, err
	}
	p.cmd.Env = markedEnv(spec, p.mark)
	if p.proxy, err = p.box.Open(p.cmd, spec.Connected); err != nil {
		return nil, fmt.Errorf("provider: start %s: %w", spec.Argv[0], err)
	}
	defer p.proxy.Started()
	if p.watch, err = p.box.Watch(p.cmd); err != nil {
		p.proxy.Close()
		return nil, fmt.Errorf("provider: start %s: %w", spec.Argv[0], err)
	}
	defer p.watch.Started()

	child, err := p.openPipes(spec)
	if err != nil {
		p.watch.Entered() // closes its socket
		p.proxy.Close()
		return nil, fmt.Errorf("provider: start %s: %w", spec.Argv[0], err)
	}
	defer closeAll(child)
	// Announce must precede the start of the first agent. Otherwise its descendants would not inherit the brand.
	if err = descent.Announce(spec.Limit); err == nil {
		p.tree, err = newTree(p.mark)
	}
	if err == nil {
		if p.box != nil {
			p.tree.enterSandbox()
		}
		p.tree.prepareCmd(p.cmd)
		started := make(chan error)
		go p.watchChild(started)
		err = <-started
	}
	if err != nil {
		closeAll([]*os.File{p.stdin, p.stdout, p.stderr.r})
		p.watch.Entered() // closes its socket
		p.proxy.Close()
		if p.tree != nil {
			p.tree.closeTree()
		}
		return nil, startError(spec, path, err)
	}
	return p, nil
}

// command returns the command that runs the program at path, inside the sandbox if spec has one.
func command(spec Spec, path string) (*sandbox.Sandbox, *exec.Cmd, error) {
	if spec.Sandbox == nil {
		cmd := exec.Command(path, spec.Argv[1:]...)
		cmd.Args[0], cmd.Dir = spec.Argv[0], spec.Dir
		return nil, cmd, nil
	}
	box, err := sandbox.New(*spec.Sandbox)
	if err != nil {
		return nil, nil, err
	}
	argv := box.Command(spec.Dir, path, spec.Argv[1:]...)
	return box, exec.Command(argv[0], argv[1:]...), nil
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
			r, w = w, r // the child reads stdin
		}
		ours, child = append(ours, r), append(child, w)
	}
	p.stdin, p.stdout = ours[0], ours[1]
	p.stderr = &stderrTail{r: ours[2], line: spec.Stderr, redact: spec.Redact, done: make(chan struct{})}
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = child[0], child[1], child[2]
	return child, nil
}

// watchChild starts the child, waits for it and reaps it, all on one locked thread. Linux sends the parent-death
// signal when the starting thread ends, not when the process ends.
func (p *Process) watchChild(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := p.box.Restrict()
	if err == nil {
		err = p.cmd.Start()
	}
	if err == nil {
		err = p.tree.setLeader(p.cmd.Process)
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
	p.cmd.Wait() // ExitState reads the result; no other error is possible
	p.reaped = true
	p.mu.Unlock()
	p.stderr.drainPipe(drainWait)
	close(p.exited)
}

// Stdin returns the agent's standard input. Its Write accepts a deadline.
func (p *Process) Stdin() *os.File { return p.stdin }

// Output returns the agent's standard output. One caller reads it to its end and closes it.
func (p *Process) Output() *Output { return &Output{f: p.stdout, exited: p.exited} }

// Pid returns the agent's process number, which is also the number of its process group.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Exited is closed after the agent itself was reaped and its stderr was read.
func (p *Process) Exited() <-chan struct{} { return p.exited }

// ExitState returns how the agent itself ended. code is -1 if a signal ended it. ok is false while it runs.
func (p *Process) ExitState() (code int, signal string, ok bool) {
	select {
	case <-p.exited:
		code, signal = p.cmd.ProcessState.ExitCode(), signalName(p.cmd.ProcessState)
		if p.box != nil && signal == "" {
			code, signal = fromShell(code)
		}
		return code, signal, true
	default:
		return 0, "", false
	}
}

// Sandbox returns the sandbox in which the agent runs, or nil.
func (p *Process) Sandbox() *sandbox.Sandbox { return p.box }

// StderrTail returns the last 4 KiB of stderr so far, as valid UTF-8.
func (p *Process) StderrTail() string { return p.stderr.String() }

// Forced returns the force that End used. It is complete after End has returned.
func (p *Process) Forced() Forced {
	f := p.forced
	f.Kill = f.Kill || p.killed.Load()
	return f
}

// Kill ends the agent and its process group (on Windows: job) at once. It closes stdin without writing to it
// and does not wait. The caller must still call End, which then gives no grace.
func (p *Process) Kill() error {
	err := p.signalUnreaped(func() error {
		p.killed.Store(true)
		return p.tree.killGroup()
	})
	p.stdin.Close()
	p.endGrace()
	return err
}

// End ends all processes that the agent started. It records the processes below the agent, closes stdin and waits
// for the grace. It sends SIGTERM to the group, waits again and sends SIGKILL to the group. On Linux it then sends
// the same signals to processes that left the group. It waits for all of them. If ctx is done, End gives no further
// grace, but it still ends the processes and waits. The error is a *survivedError if a process could not be ended.
// Later and concurrent calls wait for the first and return its error.
func (p *Process) End(ctx context.Context) error {
	if ctx.Err() != nil {
		p.endGrace()
	}
	stop := context.AfterFunc(ctx, p.endGrace)
	defer stop()
	p.endOnce.Do(func() { p.endErr = p.endProcesses() })
	return p.endErr
}

func (p *Process) endProcesses() error {
	defer p.tree.closeTree()
	defer p.proxy.Close()
	p.tree.rememberBelowQuickly(p.Pid()) // now, because the agent may exit at once
	p.stdin.Close()
	if !p.waitLeft(p.grace) {
		p.forced.Term = true
		p.tree.rememberBelow(p.Pid())
		p.signalUnreaped(p.tree.termGroup)
		if !p.waitLeft(p.grace) {
			p.forced.Kill = true
			p.tree.rememberBelow(p.Pid())
			p.signalUnreaped(p.tree.killGroup)
		}
	}
	var survived []Survivor
	select {
	case <-p.exited:
	case <-time.After(killWait):
		survived = append(survived, Survivor{PID: p.Pid(), Command: p.cmd.String(), Agent: agentOf(p.mark)})
	}
	rest, stayed := p.tree.endRest(p.grace, p.noGrace)
	p.forced.Rest = rest
	survived = append(survived, stayed...)

	p.stderr.drainPipe(drainWait)
	p.stderr.r.Close()
	if len(survived) > 0 || !treeIsComplete {
		p.stdout.SetReadDeadline(time.Now().Add(drainWait))
	}
	if len(survived) > 0 {
		return &survivedError{Processes: survived}
	}
	return nil
}

// waitLeft waits until the agent itself has ended, the grace has passed or the channel p.noGrace is closed.
func (p *Process) waitLeft(grace time.Duration) bool {
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
	case <-p.noGrace:
	}
	select {
	case <-p.exited: // the agent ended at the same moment
		return true
	default:
		return false
	}
}

// signalUnreaped calls the function "send" only while the process number certainly belongs to the agent.
func (p *Process) signalUnreaped(send func() error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.reaped {
		return nil
	}
	return send()
}

func (p *Process) endGrace() { p.noGraceOnce.Do(func() { close(p.noGrace) }) }

// Survivor is a process that an agent started and that still runs.
type Survivor struct {
	PID     int
	Command string // its command line as the system reports it
	Agent   string // the agent that started it
	Orphan  bool   // the process had no mark, and Perlica adopted it as an orphan
}

// survivedError lists processes of an agent that could not be ended.
type survivedError struct{ Processes []Survivor }

func (e *survivedError) Error() string {
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

// markOf makes a new mark: agent:pid:start:random. pid and start belong to this Perlica process; start is a
// number of clock ticks, or zero if unknown. The random part makes marks of two process namespaces different.
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

// Marked returns the variables that identify a process as the agent's, for a process that a client starts for
// the agent. Perlica does not end such a process with the agent.
func Marked(agent, limit string) []string {
	return markedEnv(Spec{Limit: limit}, markOf(agent))
}

// markedEnv returns the child's environment with one mark, the permission mode and the correct PWD. The mark
// follows the marks of the Perlica processes above this one.
func markedEnv(spec Spec, mark string) []string {
	env := append([]string(nil), spec.Env...) // os/exec passes the last variable of a name, so those added below count
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
