package main

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/perlica/perlica/kernel"
	"github.com/perlica/perlica/kernel/streamjson"
)

// stopper turns signals, Ctrl-C at a question, a timeout and a closed pipe into the two
// steps of stopping: the first asks the agent to cancel, the second ends it.
type stopper struct {
	first chan kernel.Stop // capacity 1
	end   context.CancelCauseFunc

	mu     sync.Mutex // guards what follows
	asked  bool
	onStop func() // called at the first step
}

// signals makes Ctrl-C, SIGTERM, SIGHUP and the timeout stop the run. A closed pipe must
// not kill Perlica in the middle of a turn: writing to it fails instead.
func (a *app) signals(ctx context.Context, timeout time.Duration) (context.Context, *stopper) {
	ctx, cancel := context.WithCancelCause(ctx)
	s := newStopper(cancel)
	ch := make(chan os.Signal, 2)
	surviveBrokenPipes()
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
				s.stop(stopOf(sig))
			case <-timer:
				timer = nil
				s.stop(kernel.Stop{By: streamjson.ByTimeout, Why: "--timeout " + timeout.String() + " passed"})
			case <-ctx.Done():
				signal.Stop(ch)
				return
			}
		}
	}()
	return ctx, s
}

// hungUp is why a turn is stopped when its terminal is gone.
const hungUp = "the terminal was closed"

func stopOf(sig os.Signal) kernel.Stop {
	switch sig {
	case os.Interrupt:
		return kernel.Stop{By: streamjson.ByUser, Why: "interrupted"}
	case syscall.SIGHUP:
		return kernel.Stop{By: streamjson.ByTerminated, Why: hungUp}
	}
	return kernel.Stop{By: streamjson.ByTerminated, Why: "terminated"}
}

// newStopper returns a stopper that no signal reaches; end ends the agent.
func newStopper(end context.CancelCauseFunc) *stopper {
	return &stopper{first: make(chan kernel.Stop, 1), end: end}
}

// stop asks for the turn to end; a second time it ends the agent as well.
func (s *stopper) stop(why kernel.Stop) {
	s.mu.Lock()
	again, onStop := s.asked, s.onStop
	s.asked = true
	s.mu.Unlock()
	if !again {
		s.first <- why
		if onStop != nil {
			onStop()
		}
		return
	}
	// Of a terminal that is closed Perlica hears in several ways: by a signal, and by whoever
	// reads from it or writes to it. Only a person, or somebody else's signal, says it twice.
	if why.By == streamjson.ByUser || why.By == streamjson.ByTerminated && why.Why != hungUp {
		s.end(&kernel.StoppedError{Stop: why})
	}
}

// tell has f called when the turn is asked to end, at once if it has been.
func (s *stopper) tell(f func()) {
	s.mu.Lock()
	asked := s.asked
	s.onStop = f
	s.mu.Unlock()
	if asked {
		f()
	}
}

// release gives the signals back.
func (s *stopper) release() { s.end(nil) }
