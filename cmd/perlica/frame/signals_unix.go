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
// because agents would inherit an ignored signal.
func SurviveBrokenPipes() { signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) }

// IsClosedPipe reports whether the reader of a pipe is gone.
func IsClosedPipe(err error) bool { return errors.Is(err, syscall.EPIPE) }

// resumeWait is the time that a stop may take. If no shell could resume the process, the system does not stop it.
const resumeWait = 500 * time.Millisecond

// StopProcess stops the process and its job as Ctrl-Z would. It returns after again receives a value. No code may
// catch SIGTSTP: only its default action stops a process, and only if a shell can continue it.
func StopProcess[T any](again <-chan T) {
	// The lock keeps a new child from being stopped before it becomes an agent. Its parent would wait for it without
	// being stopped, and the shell would wait for the parent.
	syscall.ForkLock.RLock()
	_ = syscall.Kill(0, syscall.SIGTSTP) // A process may signal its own job.
	syscall.ForkLock.RUnlock()
	select {
	case <-again:
	case <-time.After(resumeWait):
	}
}

// Suspend stops the process until the shell continues it. No other code may wait for SIGCONT at that time. Suspend
// returns nil.
func Suspend() error {
	again := make(chan os.Signal, 1)
	signal.Notify(again, syscall.SIGCONT)
	defer signal.Stop(again)
	StopProcess(again)
	return nil
}

// TerminalResizes reports possible changes of the terminal's size until stop is called.
func TerminalResizes() (changes <-chan os.Signal, stop func()) {
	ch := make(chan os.Signal, 1)
	signal.Notify(ch, syscall.SIGWINCH)
	return ch, func() { signal.Stop(ch) }
}

// BeforeFatalSignal calls restore before a signal such as SIGQUIT ends the process. It covers the signals that no
// other code handles. The signal then takes its usual effect. The goroutine lives as long as the process.
func BeforeFatalSignal(restore func() error) {
	ch := make(chan os.Signal, 1)
	signal.Notify(ch, syscall.SIGQUIT, syscall.SIGABRT, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGALRM,
		syscall.SIGVTALRM,
		syscall.SIGXCPU, syscall.SIGTRAP, syscall.SIGSYS)
	go func() {
		sig := (<-ch).(syscall.Signal)
		_ = restore() // The process ends in any case.
		signal.Reset(sig)
		_ = syscall.Kill(os.Getpid(), sig) // A process may signal itself.
		time.Sleep(deathWait)
		os.Exit(128 + int(sig))
	}()
}

// deathWait is the time that a signal has to take effect. The Go runtime ignores some signals that end other programs.
const deathWait = time.Second
