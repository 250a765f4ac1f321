//go:build unix

package frame

import (
	"errors"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// SurviveBrokenPipes makes writing to a closed pipe an error. The signal is caught, not
// ignored: agents would inherit that.
func SurviveBrokenPipes() { signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) }

// IsClosedPipe reports whether the reader of a pipe is gone.
func IsClosedPipe(err error) bool { return errors.Is(err, syscall.EPIPE) }

// resumeWait is how long a stop may take to come about. Where no shell could resume the process
// the system does not stop it.
const resumeWait = 500 * time.Millisecond

// StopProcess stops the process as its terminal would, all of the job, until again tells that
// somebody has continued it. SIGTSTP must not be caught anywhere: only by default does it stop
// a process, and only if somebody is there to continue it.
func StopProcess[T any](again <-chan T) {
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

// Suspend is stopProcess where no other code looks out for SIGCONT. It returns nil.
func Suspend() error {
	again := make(chan os.Signal, 1)
	signal.Notify(again, syscall.SIGCONT)
	defer signal.Stop(again)
	StopProcess(again)
	return nil
}

// TerminalResizes tells when the terminal may have another size, until stop is called.
func TerminalResizes() (changes <-chan os.Signal, stop func()) {
	ch := make(chan os.Signal, 1)
	signal.Notify(ch, syscall.SIGWINCH)
	return ch, func() { signal.Stop(ch) }
}

// BeforeFatalSignal calls restore when a signal is about to end the process that no other code handles, such as SIGQUIT.
// The signal then takes its usual effect. The goroutine lives as long as the process.
func BeforeFatalSignal(restore func() error) {
	ch := make(chan os.Signal, 1)
	signal.Notify(ch, syscall.SIGQUIT, syscall.SIGABRT, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGALRM, syscall.SIGVTALRM,
		syscall.SIGXCPU, syscall.SIGTRAP, syscall.SIGSYS)
	go func() {
		sig := (<-ch).(syscall.Signal)
		_ = restore() // the process ends in any case
		signal.Reset(sig)
		_ = syscall.Kill(os.Getpid(), sig) // a process may signal itself
		time.Sleep(deathWait)
		os.Exit(128 + int(sig))
	}()
}

// deathWait is the time that a signal has to take effect. The Go runtime ignores some signals that end other programs.
const deathWait = time.Second
