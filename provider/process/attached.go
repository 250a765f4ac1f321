package process

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"syscall"

	"github.com/perlica/perlica/provider/descent"
)

// Attached runs an agent's program on the standard streams and in the process group of this process. The
// program thus receives the person's input and terminal signals. Attached returns after the program and all
// its remaining processes have ended. code is the exit code that a shell would report: for a signal 128 and
// the signal's number. sig is the name of that signal. The error is an error of Start or a *survivedError.
//
// signals are the signals that this process catches. Attached sends SIGTERM and SIGHUP on to the program,
// because the terminal does not send them to both processes. On Linux and Windows the program dies with this
// process.
func Attached(spec Spec, signals <-chan os.Signal) (code int, sig string, err error) {
	path, err := resolve(spec)
	if err != nil {
		return 0, "", err
	}
	p := &Process{
		grace: cmp.Or(spec.Grace, defaultGrace), mark: markOf(cmp.Or(spec.Agent, filepath.Base(spec.Argv[0]))),
		noGrace: make(chan struct{}),
	}
	if p.box, p.cmd, err = command(spec, path); err != nil {
		return 0, "", err
	}
	if p.box != nil { // the program must not type into the terminal
		p.cmd.Args = slices.Insert(p.cmd.Args, 1, "--new-session")
	}
	p.cmd.Env = markedEnv(spec, p.mark)
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	if p.proxy, err = p.box.Open(p.cmd, spec.Connected); err != nil {
		return 0, "", err
	}
	defer p.proxy.Close()
	if p.watch, err = p.box.Watch(p.cmd); err != nil {
		return 0, "", err
	}
	defer p.watch.Started()
	if err := descent.Announce(spec.Limit); err != nil {
		return 0, "", err
	}
	if p.tree, err = newTree(p.mark); err != nil {
		return 0, "", err
	}
	defer p.tree.closeTree()
	p.tree.prepareAttached(p.cmd)
	runtime.LockOSThread() // watchChild explains why
	defer runtime.UnlockOSThread()
	if err := p.box.Restrict(); err != nil {
		return 0, "", err
	}
	if err := p.cmd.Start(); err != nil {
		return 0, "", startError(spec, path, err)
	}
	p.proxy.Started()
	p.watch.Entered() // its result is not needed, because the person sees a failure
	if err := p.tree.setLeader(p.cmd.Process); err != nil {
		_ = p.cmd.Process.Kill()
		_ = p.cmd.Wait() // the result is known: it was killed
		return 0, "", err
	}
	ended, stop := context.WithCancel(context.Background())
	go passOn(ended, signals, p.cmd.Process)
	_ = p.cmd.Wait() // p.cmd.ProcessState has the result
	stop()
	if _, survived := p.tree.endRest(p.grace, p.noGrace); len(survived) > 0 {
		err = &survivedError{Processes: survived}
	}
	return shellCode(p.cmd.ProcessState), signalName(p.cmd.ProcessState), err
}

// passOn sends SIGTERM and SIGHUP on to a process.
func passOn(ended context.Context, signals <-chan os.Signal, to *os.Process) {
	for {
		select {
		case sig := <-signals:
			if sig == syscall.SIGTERM || sig == syscall.SIGHUP {
				_ = to.Signal(sig) // fails only if the process has ended
			}
		case <-ended.Done():
			return
		}
	}
}
