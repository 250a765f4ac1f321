package team

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/perlica/perlica/service/team/hub"
)

// isOther reports whether an error says that the hub's copy belongs to another log than this
// worker's.
func isOther(err error) bool {
	var fork *hub.ForkError
	return errors.As(err, &fork) || errors.Is(err, hub.ErrOtherLog)
}

// enrolLog compares this worker's log with its copy before the worker takes an input. A log that
// was restored from a backup, or cloned, lacks intents and would repeat calls. enrolLog waits for
// the hub, because a worker can take nothing without it. It returns nil when ctx ends.
func (w *Worker) enrolLog(ctx context.Context) error {
	for {
		err := w.sender.Check(ctx)
		if err == nil || ctx.Err() != nil {
			return nil
		}
		if isOther(err) {
			return err
		}
		w.trouble(err)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(backoff):
		}
	}
}

// copyLog sends the durable events of this worker's log to the hub until ctx ends. lastCopy then sends the rest.
// Several processes of a worker may send events at the same time. If the log differs from the copy, copyLog calls the
// function "stop" and sends nothing further.
func (w *Worker) copyLog(ctx context.Context, stop context.CancelCauseFunc) {
	changes, err := w.t.Log().Changes(ctx)
	if err != nil {
		if ctx.Err() == nil {
			w.opt.Note(fmt.Sprintf("the log is copied at the end only: %v", err))
		}
		return
	}
	defer func() { _ = changes.Close() }() // the log was only read
	said := ""
	for {
		err := w.sender.Send(ctx)
		wait := copyPause
		switch {
		case ctx.Err() != nil:
			return
		case isOther(err):
			stop(err)
			return
		case err == nil && said != "":
			said = ""
			w.opt.Note("the copy of the log goes on")
		case err != nil:
			if wait = backoff; err.Error() != said {
				said = err.Error()
				w.opt.Note("the copy of the log waits: " + said)
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(wait):
			// Wait until the log changes, for at most this time. All changes until then are sent together.
			_, _ = changes.Wait(ctx, pulseEvery) // Send returns the same error of the log
		}
	}
}

// lastCopy sends the rest of the log after the worker has stopped writing to it.
func (w *Worker) lastCopy() {
	ctx, cancel := context.WithTimeout(context.Background(), flushLimit)
	defer cancel()
	if err := w.sender.Send(ctx); err != nil && !isOther(err) {
		w.opt.Note(fmt.Sprintf("the copy of the log is behind; it goes on with the next start: %v", err))
	}
}
