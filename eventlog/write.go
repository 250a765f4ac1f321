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
	"github.com/perlica/perlica/eventlog/message"
	"github.com/perlica/perlica/eventlog/store"
)

// restAfter is the time since the last checkpoint after which an idle log empties its write-ahead log.
const restAfter = time.Second

// runWriter is the writer goroutine. It commits entries without a waiting caller, and entries that a committing
// caller left in the queue. It also runs the jobs of Reopen, Prune and Close.
func (l *Log) runWriter() {
	defer close(l.done)
	for {
		var job func()
		select {
		case <-l.queue.wake:
		case <-l.queue.due.C:
			l.queue.timerFired()
		case <-l.rest.C:
			job = l.batch.emptyIdleWAL
		case done := <-l.reopen:
			job = func() { done <- l.reopenFile() }
		case p := <-l.prune:
			job = func() { p.done <- l.runPruneJob(l.batch, p) }
		}
		if ended := l.runJob(job); ended {
			return
		}
	}
}

// runJob calls the function "job" unless it is nil, and commits the urgent entries. It returns true if the log is
// closed.
func (l *Log) runJob(job func()) (ended bool) {
	l.commitMu.Lock()
	defer l.unlockCommit()
	if job != nil {
		job()
	}
	for l.commitBatch() {
	}
	if !l.queue.isDrained() {
		return false
	}
	// Close the readers' connections first. Then closeFile closes the last connection and empties the write-ahead log.
	l.closeErr = errors.Join(l.Reader.Close(), l.batch.closeFile())
	return true
}

// commitBatch commits the next batch, if one must be committed now, and appends the batch's checkpoint to the anchor.
// It returns false if there was no such batch. The caller holds commitMu.
func (l *Log) commitBatch() bool {
	batch := l.queue.takeBatch()
	if batch == nil {
		return false
	}
	err := l.batch.writeBatch(batch)
	if err == nil && l.committed != nil {
		for i := range batch {
			l.committed(batch[i].events)
		}
	}
	if err == nil && l.batch.newest.Size > 0 {
		l.queue.setAnchorErr(l.batch.appendAnchor())
		l.rest.Reset(restAfter)
	}
	l.queue.finishBatch(batch, l.batch.newest, err)
	return true
}

// reopenFile opens the file of a failed log again. The caller holds commitMu.
func (l *Log) reopenFile() error {
	if l.Err() == nil {
		return nil
	}
	if err := l.batch.reopenFile(context.Background()); err != nil {
		return fmt.Errorf("eventlog: reopen %s: %w", l.batch.path, err)
	}
	l.queue.resume()
	return nil
}

// A ConflictError says that the log already has an event that excludes the new events. That is an intent for the same
// input, an outcome of the same run, or an answer to the same question. For AppendUnless, it is an event that the query
// "unless" selects. Nothing of the call was written, and the log stays usable.
type ConflictError struct{ Type event.Type }

func (e *ConflictError) Error() string {
	return fmt.Sprintf("eventlog: there is already one %s", e.Type)
}

// A WriteError says that the log could not be written. It ends the Log: every later call returns this error until
// Reopen.
type WriteError struct {
	// Op is the failed operation, such as "begin", "insert" or "commit".
	Op string
	// Unknown means that the commit itself failed. The events may be on disk or not. After Reopen, the caller can look
	// for them in the log.
	Unknown bool
	Err     error
}

var (
	notWritten   = message.New("eventlog.not-written", "eventlog: %s: %s")
	maybeWritten = message.New("eventlog.maybe-written",
		"eventlog: %s: %s (the last events may or may not have been written)")
)

// Tell returns the sentence of the error.
func (e *WriteError) Tell() *message.Text {
	if e.Unknown {
		return maybeWritten.With(e.Op, e.Err)
	}
	return notWritten.With(e.Op, e.Err)
}

func (e *WriteError) Error() string { return e.Tell().Text }

func (e *WriteError) Unwrap() error { return e.Err }

// TryWrite checks whether a log in dir could be written as required. It makes a log in a temporary folder within dir,
// appends to the log, checks the settings of the connection, and removes the folder. The error wraps ErrFull or
// ErrReadOnly, or is a *SettingError.
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
