package eventlog

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/perlica/perlica/eventlog/disk"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/evidence"
	"github.com/perlica/perlica/eventlog/store"
)

// poke makes the writer look at the queue.
func (l *Log) poke() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// restAfter is how long after a checkpoint the log must be at rest before its write-ahead log
// is emptied.
const restAfter = time.Second

// write is the writer goroutine: it writes what no one waits for, and what those who wait
// left.
func (l *Log) write() {
	defer close(l.done)
	for {
		due := false
		var job func()
		select {
		case <-l.wake:
		case <-l.due.C:
			due = true
			l.disarm()
		case <-l.rest.C:
			job = l.batch.truncate
		case done := <-l.reopen:
			job = func() { done <- l.revive(l.batch) }
		case p := <-l.prune:
			job = func() { p.done <- l.remove(l.batch, p) }
		}
		if ended := l.work(job, due); ended {
			return
		}
	}
}

// disarm says that the timer has fired, and is armed again by what is queued from now on.
func (l *Log) disarm() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.armed = false
}

// work takes the writer's turn. It reports whether it was the last: the log is closed.
func (l *Log) work(job func(), due bool) (ended bool) {
	l.turn.Lock()
	defer l.releaseTurn()
	if job != nil {
		job()
	}
	for l.step(due) {
	}
	if !l.over() {
		return false
	}
	// The writer's connection is the last to go: it empties the write-ahead log.
	l.ended = errors.Join(l.Reader.Close(), l.batch.close())
	return true
}

// step writes the next batch, if one is due, and the line of the anchor for its checkpoint. Who calls
// it holds turn.
func (l *Log) step(due bool) bool {
	batch := l.take(due)
	if batch == nil {
		return false
	}
	err := l.batch.commit(batch)
	if err == nil && l.batch.newest.Size > 0 {
		fault := l.batch.anchor()
		l.mu.Lock()
		l.anchor = fault
		l.mu.Unlock()
		l.rest.Reset(restAfter)
	}
	l.finish(batch, l.batch.newest, err)
	return true
}

// over reports whether the log is closing and all is written.
func (l *Log) over() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.closing && len(l.queue) == 0
}

// revive gives a dead log a new handle.
func (l *Log) revive(w *batchWriter) error {
	if l.Err() == nil {
		return nil
	}
	if err := w.reopen(context.Background()); err != nil {
		return fmt.Errorf("eventlog: reopen %s: %w", w.path, err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.err = nil
	if l.behind {
		l.follow()
	}
	return nil
}

// follow queues the checkpoint behind an answer, which no one waits for. The caller holds mu, and
// looks at the queue when it has given it up.
func (l *Log) follow() {
	l.queue = append(l.queue, entry{checkpoint: true})
	l.queued++
	l.urgent, l.behind = true, false
}

// take removes the next batch from the queue, or returns nil if nothing is due.
func (l *Log) take(due bool) (batch []entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.queue) == 0 || !(due || l.urgent || l.closing) {
		return nil
	}
	n, events, bytes := 0, 0, 0
	for n < len(l.queue) && (n == 0 || events < batchEvents && bytes < batchBytes) {
		for i := range l.queue[n].events {
			bytes += weight(&l.queue[n].events[i])
			events++
		}
		n++
	}
	batch = l.queue[:n:n]
	l.queue = l.queue[n:]
	l.bytes -= bytes
	if len(l.queue) == 0 {
		l.queue, l.urgent = nil, false
	}
	l.room.Broadcast()
	return batch
}

// finish tells everybody in the batch what became of it. After a fault the log is
// dead: what is still queued fails with the same error.
func (l *Log) finish(batch []entry, newest evidence.Checkpoint, err error) {
	l.mu.Lock()
	if isPutOff(batch, err) {
		l.anchor, err = err, nil
	}
	if err != nil {
		l.err = err
		batch = append(batch, l.queue...)
		l.queue, l.bytes, l.urgent = nil, 0, false
		l.room.Broadcast()
		if l.loss == nil {
			l.kept = l.completed
		}
		l.lost, l.loss = l.completed+Mark(len(batch)), err
		l.behind = l.behind || slices.ContainsFunc(batch, entry.follows)
	}
	l.completed += Mark(len(batch))
	l.known.Broadcast()
	if err == nil && newest.Size == 0 && slices.ContainsFunc(batch, entry.checkpointFollows) {
		l.follow() // before anybody knows of the batch, so that none of them misses the checkpoint
	}
	l.mu.Unlock()
	for _, e := range batch {
		if e.wait == nil {
			continue
		}
		r := result{checkpoint: newest, err: err}
		if n := len(e.events); n > 0 && err == nil {
			r.last = e.events[n-1].Seq
			if r.last == 0 {
				r.err = &ConflictError{Type: unique(e.events)}
			}
		}
		e.wait <- r
	}
}

// isPutOff reports whether all that failed is a checkpoint that no one waits for, because others held
// the lock: nothing was begun, and the next run's covers what it would have.
func isPutOff(batch []entry, err error) bool {
	var failed *WriteError
	return errors.As(err, &failed) && errors.Is(err, disk.ErrBusy) && !failed.Unknown &&
		!slices.ContainsFunc(batch, func(e entry) bool { return !e.follows() })
}

// unique returns the type among events that a log may hold only once per reference.
func unique(events []event.Event) event.Type {
	for _, e := range events {
		if e.Type.Once() != "" {
			return e.Type
		}
	}
	return events[0].Type
}

// A ConflictError says that the log already holds what may be there only once: an
// intent for the same input, an outcome of the same run, an answer to the same
// question. Nothing of the call that got it was written; the log lives on.
type ConflictError struct{ Type event.Type }

func (e *ConflictError) Error() string {
	return fmt.Sprintf("eventlog: there is already one %s", e.Type)
}

// A WriteError says that the log could not be written. The Log that returned it is
// dead: every later call fails with the same error.
type WriteError struct {
	Op string // what was being done: "begin", "insert", "commit"
	// Unknown is set if the commit itself failed: the events may be on disk or not,
	// and only reopening the log tells.
	Unknown bool
	Err     error
}

func (e *WriteError) Error() string {
	msg := "eventlog: " + e.Op + ": " + e.Err.Error()
	if e.Unknown {
		msg += " (the last events may or may not have been written)"
	}
	return msg
}

func (e *WriteError) Unwrap() error { return e.Err }

// An entry is what one call wants written, all or none of it.
type entry struct {
	events     []event.Event
	checkpoint bool                 // a checkpoint is wanted behind them
	store      *evidence.Checkpoint // has a note that is to be stored; nil: none
	unless     event.Query          // nothing is written if the log holds an event that it selects; zero: whatever it holds
	ahead      bool                 // who waits does not wait for the checkpoint that the events ask for
	wait       chan result          // nil if no one waits; capacity 1
}

// makesCheckpoint reports whether the batch with the entry ends with a checkpoint.
func (e entry) makesCheckpoint() bool { return e.checkpoint || !e.ahead && e.endsRun() }

// checkpointFollows reports whether a checkpoint is to follow the batch with the entry.
func (e entry) checkpointFollows() bool { return e.ahead && e.endsRun() }

// follows reports whether the entry is such a checkpoint: no one waits for it.
func (e entry) follows() bool { return e.checkpoint && e.wait == nil }

func (e entry) endsRun() bool {
	return slices.ContainsFunc(e.events, func(e event.Event) bool { return e.Type == event.CallEnforced })
}

type result struct {
	last       event.Seq
	checkpoint evidence.Checkpoint
	err        error
}

// weight is what an event takes in memory, about: a flood of short lines is one, too.
func weight(e *event.Event) int { return len(e.Payload) + 512 }

// TryWrite makes a log in a temporary folder within dir, appends to it, asks its
// connection for the Settings, and removes it. The error says why a log in dir could not
// be written as it must be: ErrFull, ErrReadOnly, a *SettingError.
func TryWrite(ctx context.Context, dir string) (err error) {
	tmp, err := os.MkdirTemp(dir, ".perlica-try-")
	if err != nil {
		kind := disk.ErrReadOnly
		if disk.IsNoSpace(err) {
			kind = disk.ErrFull
		}
		return fmt.Errorf("%w: %w", kind, err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(tmp)) }()
	log, err := Open(ctx, filepath.Join(tmp, "eventlog.db"), Options{Context: "try"})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	w, err := store.OpenWritable(ctx, log.Path())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	if err := store.CheckSettings(ctx, w.DB, slices.Collect(maps.Keys(store.Settings()))...); err != nil {
		return err
	}
	_, err = log.Append(ctx, event.NewFact(event.MessageReceived, "doctor", event.Refs{}, struct{}{}))
	return err
}
