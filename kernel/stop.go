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

// CancelRun stops a run of this or another process. If the error is nil, the stop is on disk, and the run's process
// sees it. That happens at once if the process listens, and otherwise within a second. Conversations and runs with an
// open question listen. The run then asks the agent to cancel, or does not send the prompt, and reports the result.
//
// The error is ErrRunGone if the run has ended or its process has died. It is interaction.ErrAskerAsleep if the process
// listens but does not react, for example because it is suspended.
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
		return nil // the process does not listen, but it reads the log each second
	}
	return err
}

// lookForStops looks for recorded stops of this process's runs, and passes each to its run.
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
		default: // the run already has a stop
		}
	}
}

// checkStop returns an error if the turn was stopped. In that case the run must not make the call.
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

// untilStopped returns a context that ends with ctx or when the turn is stopped. The caller must call the function
// "done". After that, run.stopped has the stop, if there was one.
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

// cancelFirst is the time for which cancelTurn waits until the agent's input has taken the cancellation.
const cancelFirst = 100 * time.Millisecond

// cancelTurn asks the agent to cancel, and then ends the agent's questions. If the questions ended first, the agent
// could continue and end the turn as if nobody had stopped it. The caller has recorded the stop.
func (run *run) cancelTurn() {
	cancel := run.agent.session.Cancel
	if run.clientPrompt != nil {
		cancel = run.clientPrompt.Cancel
	}
	// The agent may not read its input, so cancelTurn waits in a goroutine. The goroutine ends with the connection.
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

// unlessStopped calls the function lock. If the run may wait for locks, a stop of the turn ends the waiting.
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
