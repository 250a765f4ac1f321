package kernel

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/interaction"
	"github.com/perlica/perlica/kernel/filelock"
)

// CancelRun stops the turn of a run, of this process or another. When it returns nil the stop
// is on disk, and the run's process sees it: at once if it listens, as conversations and
// everything with an open question do, else within a second. The agent is asked to cancel, or
// not prompted at all, and what comes of it is the run's to tell. It fails with ErrRunGone if
// the run is over or its process is gone, and with interaction.ErrAskerAsleep if its process
// listens and does not look: it may be suspended.
func (r *Runner) CancelRun(ctx context.Context, id event.RunID, s Stop) error {
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
		return nil // it does not listen, but looks
	}
	return err
}

// lookForStops hands the runs of this process what stops them on the log.
func (r *Runner) lookForStops() {
	r.mu.Lock()
	var live []*run
	for _, run := range r.live {
		live = append(live, run)
	}
	r.mu.Unlock()
	for _, run := range live {
		e, ok, err := r.log.Last(context.Background(), event.Query{Run: run.refs.Run, Types: []event.Type{event.CancelRequested}})
		if err != nil || !ok {
			continue
		}
		var s Stop
		if e.Decode(&s) != nil {
			continue
		}
		select {
		case run.remoteStop <- s:
		default: // it knows
		}
	}
}

// checkStop returns an error if the turn was stopped: no call may follow.
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

// untilStopped is ctx, cancelled as well when the turn is stopped; run.stopped then says so.
// It may be read when done, which must be called, has returned.
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

func errStopped(s Stop) error { return errors.New("stopped before the prompt was sent: " + s.Why) }

// cancelFirst is how long an agent's questions are not answered yet because it does not read that its turn is cancelled.
const cancelFirst = 100 * time.Millisecond

// cancelTurn asks the agent to cancel, and closes its questions, in this order: an agent that reads of its question's end alone
// may go on, and end the turn as if nobody had stopped it. The stop is on record.
func (run *run) cancelTurn() {
	cancel := run.agent.session.Cancel
	if run.carried != nil {
		cancel = run.carried.Cancel
	}
	// A deaf agent must not keep us from ending it; the end of the connection ends this.
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

func (run *run) recordStop(ctx context.Context, s Stop) error {
	if err := run.state.advance(event.CancelRequested); err != nil {
		return err
	}
	_, err := run.r.log.Append(context.WithoutCancel(ctx), event.NewFact(event.CancelRequested, s.By, run.client.refs(), s))
	return err
}

// unlessStopped takes locks of a run. Where it waits for them it does so until it is stopped.
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
