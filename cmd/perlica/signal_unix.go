//go:build unix

package main

import (
	"errors"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// surviveBrokenPipes makes writing to a closed pipe an error. The signal is caught, not
// ignored: agents would inherit that.
func surviveBrokenPipes() { signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) }

func isClosedPipe(err error) bool { return errors.Is(err, syscall.EPIPE) }

// resumeWait is how long a stop may take to come about. Where nobody could resume the process
// the system does not stop it.
const resumeWait = 500 * time.Millisecond

// stopProcess stops the process as its terminal would, all of the job, until again tells that
// somebody has continued it. SIGTSTP must not be caught anywhere: only by default does it stop
// a process, and only if somebody is there to continue it.
func stopProcess[T any](again <-chan T) {
	// A child that is just being born would be stopped with the others before it is an agent;
	// its parent waits for it and is not stopped, and the shell waits for its parent.
	syscall.ForkLock.RLock()
	_ = syscall.Kill(0, syscall.SIGTSTP) // one's own job can be signalled
	syscall.ForkLock.RUnlock()
	select {
	case <-again:
	case <-time.After(resumeWait):
	}
}

// suspend is stopProcess where nobody else looks out for SIGCONT. It returns nil.
func suspend() error {
	again := make(chan os.Signal, 1)
	signal.Notify(again, syscall.SIGCONT)
	defer signal.Stop(again)
	stopProcess(again)
	return nil
}

// resizes tells when the terminal may have another size, until stop is called.
func resizes() (changes <-chan os.Signal, stop func()) {
	ch := make(chan os.Signal, 1)
	signal.Notify(ch, syscall.SIGWINCH)
	return ch, func() { signal.Stop(ch) }
}
