package frame

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/perlica/perlica/kernel"
	"github.com/perlica/perlica/kernel/streamjson"
)

// Stopper turns signals, Ctrl-C at a question, a timeout and a closed pipe into the two
// steps of stopping: the first asks the agent to cancel, the second ends it.
type Stopper struct {
	First chan kernel.Stop // capacity 1
	End   context.CancelCauseFunc

	mu     sync.Mutex // guards what follows
	asked  bool
	OnStop func() // called at the first step
}

// CatchSignals makes Ctrl-C, SIGTERM, SIGHUP and the timeout stop the run. A closed pipe must
// not kill Perlica in the middle of a turn: writing to it fails instead.
func CatchSignals(ctx context.Context, timeout time.Duration) (context.Context, *Stopper) {
	ctx, cancel := context.WithCancelCause(ctx)
	s := NewStopper(cancel)
	ch := make(chan os.Signal, 2)
	SurviveBrokenPipes()
	for _, sig := range []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP} {
		if !signal.Ignored(sig) { // nohup, or a shell's background job
			signal.Notify(ch, sig)
		}
	}
	var timer <-chan time.Time
	if timeout > 0 {
		timer = time.After(timeout)
	}
	go func() {
		for {
			select {
			case sig := <-ch:
				s.Stop(StopOfSignal(sig))
			case <-timer:
				timer = nil
				s.Stop(kernel.Stop{By: streamjson.ByTimeout, Why: "--timeout " + timeout.String() + " passed"})
			case <-ctx.Done():
				signal.Stop(ch)
				return
			}
		}
	}()
	return ctx, s
}

// HungUp is why a turn is stopped when its terminal is gone.
const HungUp = "the terminal was closed"

// StopOfSignal is what a signal means to a turn.
func StopOfSignal(sig os.Signal) kernel.Stop {
	switch sig {
	case os.Interrupt:
		return kernel.Stop{By: streamjson.ByUser, Why: "interrupted"}
	case syscall.SIGHUP:
		return kernel.Stop{By: streamjson.ByTerminated, Why: HungUp}
	}
	return kernel.Stop{By: streamjson.ByTerminated, Why: "terminated"}
}

// NewStopper returns a stopper that no signal reaches; end ends the agent.
func NewStopper(end context.CancelCauseFunc) *Stopper {
	return &Stopper{First: make(chan kernel.Stop, 1), End: end}
}

// Stop asks for the turn to end; a second time it ends the agent as well.
func (s *Stopper) Stop(why kernel.Stop) {
	s.mu.Lock()
	again, onStop := s.asked, s.OnStop
	s.asked = true
	s.mu.Unlock()
	if !again {
		s.First <- why
		if onStop != nil {
			onStop()
		}
		return
	}
	// Of a terminal that is closed Perlica hears in several ways: by a signal, and by what
	// reads from it or writes to it. Only a person, or somebody else's signal, says it twice.
	if why.By == streamjson.ByUser || why.By == streamjson.ByTerminated && why.Why != HungUp {
		s.End(&kernel.StoppedError{Stop: why})
	}
}

// Tell has f called when the turn is asked to end, at once if it has been.
func (s *Stopper) Tell(f func()) {
	s.mu.Lock()
	asked := s.asked
	s.OnStop = f
	s.mu.Unlock()
	if asked {
		f()
	}
}

// CatchDuringChild catches what would end this process before the program that it runs in its terminal, until
// stop is called. What is ignored stays so, for the program, too.
func CatchDuringChild() (caught <-chan os.Signal, stop func()) {
	ch := make(chan os.Signal, 4)
	for _, sig := range []os.Signal{os.Interrupt, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGHUP} {
		if !signal.Ignored(sig) {
			signal.Notify(ch, sig)
		}
	}
	return ch, func() { signal.Stop(ch) }
}

// Release gives the signals back.
func (s *Stopper) Release() { s.End(nil) }

// Interruptible calls f with a context that Ctrl-C ends; a second one ends the process. left
// says what that leaves behind.
func Interruptible(ctx context.Context, left string, f func(ctx context.Context) error) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	defer context.AfterFunc(ctx, stop)()
	err := f(ctx)
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return errors.New("interrupted; " + left)
	}
	return err
}

// Quiet drops the error of a pipe that its reader closed: that reader has had enough.
func Quiet(err error) error {
	if IsClosedPipe(err) {
		return nil
	}
	return err
}
