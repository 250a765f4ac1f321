//go:build unix

package frame

import (
	"errors"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// SurviveBrokenPipes makes a write to a closed pipe return an error. It catches SIGPIPE and does not ignore it,
// because an agent would inherit the ignored signal.
func SurviveBrokenPipes() { signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) }

// IsClosedPipe reports whether err means that nobody reads the pipe.
func IsClosedPipe(err error) bool { return errors.Is(err, syscall.EPIPE) }

// resumeWait limits the wait in StopProcess. The limit is needed, because the system does not stop the process if no
// shell could continue it.
const resumeWait = 500 * time.Millisecond

// StopProcess stops the process and its job as Ctrl-Z would. It then waits for a value on the channel, but at most
// for resumeWait. No code may catch SIGTSTP, because only the signal's default action stops a process.
func StopProcess[T any](again <-chan T) {
	// The lock keeps other goroutines from starting a child now. The signal would also stop a child between fork and
	// exec. This process would then wait for the child and never stop, and the shell would wait for this process.
	syscall.ForkLock.RLock()
	_ = syscall.Kill(0, syscall.SIGTSTP) // A process may always signal its own job.
	syscall.ForkLock.RUnlock()
	select {
	case <-again:
	case <-time.After(resumeWait):
	}
}

// Suspend stops the process until the shell continues it. No other code may wait for SIGCONT during this time.
// Suspend always returns nil.
func Suspend() error {
	again := make(chan os.Signal, 1)
	signal.Notify(again, syscall.SIGCONT)
	defer signal.Stop(again)
	StopProcess(again)
	return nil
}

// TerminalResizes returns a channel that receives a value when the terminal's size may have changed, until "stop" is
// called.
func TerminalResizes() (changes <-chan os.Signal, stop func()) {
	ch := make(chan os.Signal, 1)
	signal.Notify(ch, syscall.SIGWINCH)
	return ch, func() { signal.Stop(ch) }
}

// BeforeFatalSignal calls the function restore before a signal ends the process. It handles signals such as SIGQUIT
// that no other code handles. After restore, the signal has its usual effect. The goroutine lives as long as the
// process.
func BeforeFatalSignal(restore func() error) {
	ch := make(chan os.Signal, 1)
	signal.Notify(ch, syscall.SIGQUIT, syscall.SIGABRT, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGALRM,
		syscall.SIGVTALRM,
		syscall.SIGXCPU, syscall.SIGTRAP, syscall.SIGSYS)
	go func() {
		sig := (<-ch).(syscall.Signal)
		_ = restore() // The process ends, with or without an error of restore.
		signal.Reset(sig)
		_ = syscall.Kill(os.Getpid(), sig) // A process may always signal itself.
		time.Sleep(deathWait)
		os.Exit(128 + int(sig))
	}()
}

// deathWait is the time in which the signal should end the process. The Go runtime ignores some signals that end
// other programs, so the process then exits by itself.
const deathWait = time.Second
