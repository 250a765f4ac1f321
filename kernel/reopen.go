package kernel

import (
	"context"
	"errors"
	"fmt"

	"github.com/perlica/perlica/eventlog/event"
)

// repair makes a log that failed fit for another input: it opens the file again, in which all that
// was acknowledged must be, and gives an outcome to the runs of this process that could not
// write theirs. A log that lives it leaves alone. The error says why no input can be accepted.
//
// Whatever was under way when the log failed has lines that are not on record, and must not go
// on: those runs are ended first, and an agent that was kept is not used again; see epoch.
func (r *Runner) repair(ctx context.Context) error {
	r.repairing.Lock()
	defer r.repairing.Unlock()
	dead := r.log.Err()
	if dead == nil {
		return nil
	}
	if err := r.endRecorded(ctx); err != nil {
		return errors.Join(dead, err)
	}
	r.epoch.Add(1)
	if err := r.log.Reopen(ctx); err != nil {
		return fmt.Errorf("%w; it cannot be opened again: %w", dead, err)
	}
	r.opt.Trail.Warn("the event log was opened again", "error", dead.Error())
	_, err := r.recoverAll(ctx, cause{"record_failed", "the event log could not be written, and the outcome was not recorded"})
	return err
}

// endRecorded ends the runs that have something on record, and waits until they have gone. One
// that only waits for its locks has lost nothing.
func (r *Runner) endRecorded(ctx context.Context) error {
	r.mu.Lock()
	var list []*run
	for _, run := range r.live {
		list = append(list, run)
	}
	r.mu.Unlock()
	for _, run := range list {
		if !run.recorded.Load() {
			continue
		}
		go func() { // ends with the run
			select {
			case <-run.client.ready:
				run.client.conn.Kill()
			case <-run.released:
			}
		}()
		select {
		case <-run.released:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// forget ends a kept agent whose session has lines that are not on record, and sees that the
// session itself is. The caller holds turns.
func (c *Conversation) forget(ctx context.Context) error {
	c.mu.Lock()
	l := c.life
	c.mu.Unlock()
	if c.epoch == c.r.epoch.Load() {
		return nil
	}
	if l != nil {
		l.cancel()
		<-l.ready
		if l.conn != nil {
			l.conn.Kill()
		}
		c.drop(ctx, l)
	}
	_, there, err := c.r.log.Last(ctx, event.Query{Session: c.setup.Session})
	if err != nil {
		return err
	}
	c.created = !there
	c.epoch = c.r.epoch.Load()
	return nil
}
