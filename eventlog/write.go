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

// restAfter is the idle time after a checkpoint at which the write-ahead log is emptied.
const restAfter = time.Second

// runWriter is the writer goroutine. It commits entries for which no caller waits, entries that a
// committing caller left, and the jobs of Reopen, Prune and Close.
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

// runJob runs the job, if it is not nil, and commits the urgent entries. It reports whether the log is
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
	// The writer's connection must be closed last, because it empties the write-ahead log.
	l.closeErr = errors.Join(l.Reader.Close(), l.batch.closeFile())
	return true
}

// commitBatch commits the next batch, if it is due, and appends its checkpoint to the anchor. The
// caller holds commitMu.
func (l *Log) commitBatch() bool {
	batch := l.queue.takeBatch()
	if batch == nil {
		return false
	}
	err := l.batch.writeBatch(batch)
	if err == nil && l.batch.newest.Size > 0 {
		l.queue.setAnchorErr(l.batch.appendAnchor())
		l.rest.Reset(restAfter)
	}
	l.queue.finishBatch(batch, l.batch.newest, err)
	return true
}

// reopenFile opens the file of a dead log again. The caller holds commitMu.
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

// A ConflictError says that the log already has an event that excludes the new ones: an intent for the
// same input, an outcome of the same run, an answer to the same question, or an event that AppendUnless
// names. Nothing of the call was written, and the log stays usable.
type ConflictError struct{ Type event.Type }

func (e *ConflictError) Error() string {
	return fmt.Sprintf("eventlog: there is already one %s", e.Type)
}

// A WriteError says that the log could not be written. It ends the Log: every later call returns the
// same error until Reopen.
type WriteError struct {
	// Op is the failed operation, such as "begin", "insert" or "commit".
	Op string
	// Unknown is set if the commit itself failed. The events may be on disk or not, and only Reopen
	// shows it.
	Unknown bool
	Err     error
}

var (
	notWritten   = message.New("eventlog.not-written", "eventlog: %s: %s")
	maybeWritten = message.New("eventlog.maybe-written",
		"eventlog: %s: %s (the last events may or may not have been written)")
)

// Tell returns the error's sentence.
func (e *WriteError) Tell() *message.Text {
	if e.Unknown {
		return maybeWritten.With(e.Op, e.Err)
	}
	return notWritten.With(e.Op, e.Err)
}

func (e *WriteError) Error() string { return e.Tell().Text }

func (e *WriteError) Unwrap() error { return e.Err }

// TryWrite makes a log in a temporary folder within dir, appends to it, checks the settings of its
// connection, and removes it. The error says why a log in dir could not be written as required:
// ErrFull, ErrReadOnly or a *SettingError.
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
