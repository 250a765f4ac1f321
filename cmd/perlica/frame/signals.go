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
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/kernel/streamjson"
)

// Stopper stops a turn in two steps. The first stop asks the agent to cancel the turn, and the second stop ends the
// agent. Stops come from signals, from Ctrl-C at a question, from a timeout and from a closed pipe.
type Stopper struct {
	First chan fact.Stop // receives the first stop; capacity 1
	End   context.CancelCauseFunc

	mu     sync.Mutex // guards the fields below
	asked  bool
	OnStop func() // OnStop is called once, at the first stop.
}

// CatchSignals returns a context and a Stopper for a run. Ctrl-C, SIGTERM, SIGHUP or the timeout stops the run. From
// now on, writing to a closed pipe returns an error and does not kill Perlica in the middle of a turn.
func CatchSignals(ctx context.Context, timeout time.Duration) (context.Context, *Stopper) {
	ctx, cancel := context.WithCancelCause(ctx)
	s := NewStopper(cancel)
	SurviveBrokenPipes()
	ch, release := catch(os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
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
				s.Stop(fact.Stop{By: streamjson.ByTimeout, Why: "--timeout " + timeout.String() + " passed"})
			case <-ctx.Done():
				release()
				return
			}
		}
	}()
	return ctx, s
}

// HungUp is the reason of a stop that was caused by a closed terminal.
const HungUp = "the terminal was closed"

// StopOfSignal returns the stop that a signal causes.
func StopOfSignal(sig os.Signal) fact.Stop {
	switch sig {
	case os.Interrupt:
		return fact.NewStop(streamjson.ByUser, fact.Interrupted)
	case syscall.SIGHUP:
		return fact.Stop{By: streamjson.ByTerminated, Why: HungUp}
	}
	return fact.Stop{By: streamjson.ByTerminated, Why: "terminated"}
}

// NewStopper returns a Stopper that is not connected to signals. The function "end" ends the agent.
func NewStopper(end context.CancelCauseFunc) *Stopper {
	return &Stopper{First: make(chan fact.Stop, 1), End: end}
}

// Stop asks the agent to cancel the turn. A second call ends the agent.
func (s *Stopper) Stop(why fact.Stop) {
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
	// A closed terminal causes several stops: a signal, a failed read and a failed write. Only the user or a SIGTERM
	// counts as a second stop.
	if why.By == streamjson.ByUser || why.By == streamjson.ByTerminated && why.Why != HungUp {
		s.End(&kernel.StoppedError{Stop: why})
	}
}

// Tell makes the Stopper call f at the first stop. If the first stop has happened, Tell calls f at once.
func (s *Stopper) Tell(f func()) {
	s.mu.Lock()
	asked := s.asked
	s.OnStop = f
	s.mu.Unlock()
	if asked {
		f()
	}
}

// CatchDuringChild catches the signals that would end this process while another program uses its terminal. Signals
// that are ignored stay ignored for the other program, too. The caller calls the function "stop" when the program has
// ended.
func CatchDuringChild() (caught <-chan os.Signal, stop func()) {
	return catch(os.Interrupt, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGHUP)
}

// catch catches signals until the function "stop" is called. Under nohup and in a shell's background jobs, signals are
// ignored and must stay so.
func catch(signals ...os.Signal) (caught <-chan os.Signal, stop func()) {
	ch := make(chan os.Signal, len(signals))
	for _, sig := range signals {
		if !signal.Ignored(sig) {
			signal.Notify(ch, sig)
		}
	}
	return ch, func() { signal.Stop(ch) }
}

// Release stops catching signals.
func (s *Stopper) Release() { s.End(nil) }

// Interruptible calls f with a context that the first Ctrl-C, SIGTERM or SIGHUP ends. A second Ctrl-C or SIGTERM ends
// the process. A second SIGHUP does nothing, because the kernel and a shell both send one when the terminal closes. The
// parameter "left" is the part of the error message about the things that may remain.
func Interruptible(ctx context.Context, left string, f func(ctx context.Context) error) error {
	ctx, end := context.WithCancel(ctx)
	defer end()
	asked, release := catch(os.Interrupt, syscall.SIGTERM)
	defer release()
	hungUp, releaseHangUp := catch(syscall.SIGHUP)
	defer releaseHangUp()
	go func() {
		select {
		case <-asked:
		case <-hungUp:
		case <-ctx.Done():
		}
		release()
		end()
	}()
	err := f(ctx)
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return errors.New("interrupted; " + left)
	}
	return err
}

// IgnoreClosedPipe returns nil if err is the error of a closed pipe, and err otherwise.
func IgnoreClosedPipe(err error) error {
	if IsClosedPipe(err) {
		return nil
	}
	return err
}
