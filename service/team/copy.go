package team

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/perlica/perlica/service/team/hub"
)

// isOther reports whether an error says that this worker's log is not the one that the hub has a copy of.
func isOther(err error) bool {
	var fork *hub.ForkError
	return errors.As(err, &fork) || errors.Is(err, hub.ErrOtherLog)
}

// enrol compares this worker's log with its copy before anything is taken: a log that was put back from a backup, or
// is a clone's, lacks intents and would call again. It waits for the hub; without one nothing can be taken. It
// returns nil when ctx ends.
func (w *Worker) enrol(ctx context.Context) error {
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

// copy sends this worker's log to the hub, behind its disk, until ctx ends; what is left then lastCopy sends. Several
// processes of a worker may do so. Where the log is found to be another one than the copy it calls stop, and sends no
// more.
func (w *Worker) copy(ctx context.Context, stop context.CancelCauseFunc) {
	changes, err := w.t.Log().Changes(ctx)
	if err != nil {
		if ctx.Err() == nil {
			w.opt.Note(fmt.Sprintf("the log is copied at the end only: %v", err))
		}
		return
	}
	defer func() { _ = changes.Close() }() // it was read from
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
		case <-time.After(wait): // what comes in the meantime goes in one stretch
			_, _ = changes.Wait(ctx, pulseEvery) // an error is the log's, and Send's next
		}
	}
}

// lastCopy sends what is left at the end of a worker, when nothing is written to its log any more.
func (w *Worker) lastCopy() {
	ctx, cancel := context.WithTimeout(context.Background(), flushLimit)
	defer cancel()
	if err := w.sender.Send(ctx); err != nil && !isOther(err) {
		w.opt.Note(fmt.Sprintf("the copy of the log is behind; it goes on with the next start: %v", err))
	}
}
