package kernel

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/interaction"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/kernel/filelock"
)

// CancelRun stops the turn of a run of this process or of another one. With a nil error the stop is on disk,
// and the run's process sees it: at once if it listens, otherwise within a second. Conversations and runs with
// an open question listen. The run then asks the agent to cancel, or does not send the prompt, and reports the
// result.
//
// The error is ErrRunGone if the run is over or its process is gone. It is interaction.ErrAskerAsleep if the
// process listens and does not react, for example because it is suspended.
func (r *Runner) CancelRun(ctx context.Context, id event.RunID, s fact.Stop) error {
	input, ok, err := r.log.Last(ctx, event.Query{Run: id, Types: []event.Type{event.MessageReceived}})
	if err != nil {
		return err
	}
	alive, err := filelock.Held(filelock.Run(r.opt.Paths.Locks, string(id)))
	if err != nil {
		return err
	}
	if !ok || !alive {
		return fmt.Errorf("%w: run %s is not under way", ErrRunGone, id)
	}
	if _, err := r.log.Append(ctx, event.NewFact(event.CancelRequested, s.By, input.Refs, s)); err != nil {
		return err
	}
	if input.Writer == r.log.Writer() {
		r.lookForStops()
		return nil
	}
	err = r.questions.Wake(input.Writer)
	if errors.Is(err, interaction.ErrAskerGone) {
		return nil // it does not listen, but looks at the log
	}
	return err
}

// lookForStops hands each run of this process a stop that is on the log.
func (r *Runner) lookForStops() {
	r.mu.Lock()
	var live []*run
	for _, run := range r.live {
		live = append(live, run)
	}
	r.mu.Unlock()
	for _, run := range live {
		e, ok, err := r.log.Last(context.Background(), event.Query{Run: run.refs.Run,
			Types: []event.Type{event.CancelRequested}})
		if err != nil || !ok {
			continue
		}
		var s fact.Stop
		if e.Decode(&s) != nil {
			continue
		}
		select {
		case run.remoteStop <- s:
		default: // it has a stop already
		}
	}
}

// checkStop returns an error if the turn was stopped. Then no call may follow.
func (run *run) checkStop() error {
	if run.stopped == nil {
		select {
		case s := <-run.remoteStop:
			run.stopped, run.stopRecorded = &s, true
		case s := <-run.t.Stop:
			run.stopped = &s
		default:
			return nil
		}
	}
	return errStopped(*run.stopped)
}

// untilStopped returns a context that ends with ctx or with a stop of the turn. The caller must call done.
// After that run.stopped holds the stop.
func (run *run) untilStopped(ctx context.Context) (_ context.Context, done func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if run.stopped != nil {
			cancel(errStopped(*run.stopped))
			return
		}
		select {
		case s := <-run.t.Stop:
			run.stopped = &s
			cancel(errStopped(s))
		case s := <-run.remoteStop:
			run.stopped, run.stopRecorded = &s, true
			cancel(errStopped(s))
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		cancel(nil)
		<-ended
	}
}

func errStopped(s fact.Stop) error { return stoppedEarly.With(s.Reason()) }

// cancelFirst is the time for which the end of the questions waits for an agent that has not read the
// cancellation.
const cancelFirst = 100 * time.Millisecond

// cancelTurn asks the agent to cancel, and then closes the agent's questions. In the other order the agent might
// continue and end the turn as usual. The caller has recorded the stop.
func (run *run) cancelTurn() {
	cancel := run.agent.session.Cancel
	if run.clientPrompt != nil {
		cancel = run.clientPrompt.Cancel
	}
	// A deaf agent must not keep us from ending it. The end of the connection ends this goroutine.
	sent := make(chan struct{})
	run.client.lifecycle.cancelling.Go(func() {
		defer close(sent)
		_ = cancel()
	})
	select {
	case <-sent:
	case <-time.After(cancelFirst):
	}
	run.client.lifecycle.cancel()
}

func (run *run) recordStop(ctx context.Context, s fact.Stop) error {
	if err := run.state.advance(event.CancelRequested); err != nil {
		return err
	}
	_, err := run.r.log.Append(context.WithoutCancel(ctx), event.NewFact(event.CancelRequested, s.By,
		run.client.refs(), s))
	return err
}

// unlessStopped calls lock. If the run waits for locks, a stop of the turn ends the wait.
func (run *run) unlessStopped(ctx context.Context, lock func(context.Context) error) error {
	if !run.t.Wait {
		return lock(ctx)
	}
	ctx, done := run.untilStopped(ctx)
	err := lock(ctx)
	done()
	if err != nil && run.stopped != nil {
		err = &StoppedError{*run.stopped}
	}
	return err
}
