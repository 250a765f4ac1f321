package process

import (
	"cmp"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"

	"github.com/perlica/perlica/provider/descent"
)

// Attached runs a program of an agent on the standard streams of this process and in its process
// group, so that what a person types at its terminal, signals among it, reaches the program. It returns
// when that has ended, and all that it left behind; the code is what a shell makes of how it ended:
// 128 and its number for a signal, whose name is returned, too. The error is Start's, or a
// *SurvivedError.
//
// signals are those that this process catches: of them the program is sent SIGTERM and SIGHUP, which
// no terminal sends to both. Where this process is killed the program is, too, on Linux and on Windows.
func Attached(spec Spec, signals <-chan os.Signal) (code int, sig string, err error) {
	path, err := resolve(spec)
	if err != nil {
		return 0, "", err
	}
	p := &Process{
		grace: cmp.Or(spec.Grace, defaultGrace), mark: markOf(cmp.Or(spec.Agent, filepath.Base(spec.Argv[0]))),
		hurry: make(chan struct{}),
	}
	p.cmd = exec.Command(path, spec.Argv[1:]...)
	p.cmd.Args[0] = spec.Argv[0]
	p.cmd.Dir, p.cmd.Env = spec.Dir, markedEnv(spec, p.mark)
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := descent.Announce(spec.Limit); err != nil {
		return 0, "", err
	}
	if p.tree, err = newTree(p.mark); err != nil {
		return 0, "", err
	}
	defer p.tree.close()
	p.tree.attach(p.cmd)
	runtime.LockOSThread() // see watch
	defer runtime.UnlockOSThread()
	if err := p.cmd.Start(); err != nil {
		return 0, "", startError(spec, path, err)
	}
	if err := p.tree.started(p.cmd.Process); err != nil {
		_ = p.cmd.Process.Kill()
		_ = p.cmd.Wait() // it was killed
		return 0, "", err
	}
	ended, stop := context.WithCancel(context.Background())
	go passOn(ended, signals, p.cmd.Process)
	_ = p.cmd.Wait() // the state says how it ended
	stop()
	if _, survived := p.tree.rest(p.grace, p.hurry); len(survived) > 0 {
		err = &SurvivedError{Processes: survived}
	}
	return shellCode(p.cmd.ProcessState), signalName(p.cmd.ProcessState), err
}

// passOn sends a process the signals that are meant for it alone.
func passOn(ended context.Context, signals <-chan os.Signal, to *os.Process) {
	for {
		select {
		case sig := <-signals:
			if sig == syscall.SIGTERM || sig == syscall.SIGHUP {
				_ = to.Signal(sig) // it may have ended
			}
		case <-ended.Done():
			return
		}
	}
}
