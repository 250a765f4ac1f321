package eventlog

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/perlica/perlica/eventlog/disk"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/evidence"
	"github.com/perlica/perlica/eventlog/intents"
	"github.com/perlica/perlica/eventlog/store"
)

// Options are the options of Open.
type Options struct {
	// Context is the context_id of every event written. A project may have several contexts, each with its own log.
	Context string
	// Now returns the current time. nil means time.Now.
	Now func() time.Time

	// Lazy is the maximum time that a recorded event waits in the queue before it is written. Zero means 20 ms.
	Lazy time.Duration

	// Keys sign the checkpoint at the end of every run; see [evidence.UseKeys]. nil means that checkpoints are not
	// signed.
	Keys *evidence.Keys

	// Redact replaces secrets in every payload before the payload is hashed, so the log never contains them. If Redact
	// is nil, the log has the exact bytes that the agent and Perlica exchanged. Redact must return valid JSON for valid
	// JSON. Several goroutines call Redact at the same time.
	Redact func(payload []byte) []byte

	// Committed is called with events after they are on disk and before Append returns. It must not block and must not
	// keep the events. nil means no call.
	Committed func([]event.Event)

	// fail is called at named points of a commit. Tests set it to return errors there.
	fail func(point string) error
}

// Log is an event log open for appending. Several goroutines may call its methods at the same time.
// The zero value is not usable; call Open.
//
// A Log has one goroutine, runWriter. A goroutine that waits for a commit may commit itself: see
// queue. Lock commitMu before queue.mu.
type Log struct {
	store.Reader // reads the committed events

	context string
	writer  string
	redact  func([]byte) []byte
	// committed is Options.Committed, or nil.
	committed func([]event.Event)
	queue     *queue

	// reopen and prune pass jobs to the writer goroutine.
	reopen chan chan<- error
	prune  chan pruneJob
	// rest fires when the time restAfter has passed since the last checkpoint. Then the log empties its write-ahead
	// log.
	rest *time.Timer
	// done is closed when the writer goroutine has ended. closeErr is set before that.
	done     chan struct{}
	closeErr error

	// unfinished and newest describe the log at the time of Open.
	unfinished bool
	newest     store.Newest

	commitMu sync.Mutex
	// batch is guarded by commitMu. Tests set its fields before the first append.
	batch *batchWriter
}

// Open opens the log at path for appending and creates it if it does not exist. The folder must
// exist. The error wraps ErrReadOnly, ErrFull, ErrBusy, ErrCorrupt, ErrForeign or ErrVersion if one
// of them is the reason.
//
// Several processes may have one log open. The caller must Close it.
func Open(ctx context.Context, path string, opt Options) (*Log, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	w, err := store.OpenWritable(ctx, path)
	if err != nil {
		return nil, store.OpenError(path, err)
	}
	if opt.Now == nil {
		opt.Now = time.Now
	}
	if opt.Lazy <= 0 {
		opt.Lazy = 20 * time.Millisecond
	}
	// Readers have their own connections, which the first query opens. Readers do not wait for commits.
	reads, err := store.ReaderOf(path)
	if err != nil {
		return nil, errors.Join(err, w.Close())
	}
	l := &Log{
		Reader:  reads,
		context: opt.Context,
		writer:  uuid.Must(uuid.NewV7()).String(),
		redact:  opt.Redact,

		committed: opt.Committed,

		queue:  newQueue(opt.Now, opt.Lazy),
		done:   make(chan struct{}),
		reopen: make(chan chan<- error),
		prune:  make(chan pruneJob),
		rest:   time.NewTimer(restAfter),

		unfinished: w.Unfinished,
		newest:     w.Newest,
	}
	l.rest.Stop()
	l.batch = &batchWriter{db: w.DB, path: path, files: w.Files, keys: opt.Keys, fail: opt.fail, book: intents.Open(path)}
	go l.runWriter()
	return l, nil
}

// Unfinished reports whether the log listed runs without an outcome at the time of Open. OpenRuns returns these runs.
func (l *Log) Unfinished() bool { return l.unfinished }

// Newest returns the newest event that this handle has seen in the log.
func (l *Log) Newest() store.Newest {
	l.commitMu.Lock()
	defer l.unlockCommit()
	if l.batch.tree.Size < l.newest.Seq {
		return l.newest
	}
	return store.Newest{Seq: l.batch.tree.Size, Leaf: l.batch.last, Context: l.context}
}

// Writer returns the value of Event.Writer for the events written through this Log.
func (l *Log) Writer() string { return l.writer }

// A LostIntentError says that the .intents file names an input as called, and that the log has no intent for it. The
// log lost the intent, and the prompt may have left.
type LostIntentError struct {
	Input event.InputID
	Path  string // the path of the .intents file
}

func (e *LostIntentError) Error() string {
	return fmt.Sprintf("the event log lost the intent of the input %s, which %s names as called", e.Input, e.Path)
}

// If the .intents file names an input and the log does not, another process may still be committing the event. Intent
// therefore looks up to intentLooks times and pauses for intentPause between the looks.
const (
	intentLooks = 40
	intentPause = 25 * time.Millisecond
)

// Intent returns the intent for an input. That is the event llm.requested, which is on disk before the prompt leaves.
// ok is false if no call was made for the input. The error is a *LostIntentError if the .intents file names the input
// and the log does not.
func (l *Log) Intent(ctx context.Context, id event.InputID) (e event.Event, ok bool, err error) {
	for look := 1; ; look++ {
		if e, ok, err = l.Reader.Intent(ctx, id); ok || err != nil {
			return e, ok, err
		}
		called, appended, err := intents.Names(l.Path(), string(id))
		switch {
		case err != nil || !called:
			return e, false, err
		case appended && look > 1 || look == intentLooks:
			return e, false, &LostIntentError{id, intents.Path(l.Path())}
		case appended: // The event may have been committed after the log was read. Read the log once more.
			continue
		}
		select {
		case <-time.After(intentPause):
		case <-ctx.Done():
			return e, false, context.Cause(ctx)
		}
	}
}

// TakeRepair returns the differences between the .intents file and the log that the first intent of this Log found and
// repaired. A later call returns the zero Repair.
func (l *Log) TakeRepair() (r intents.Repair) {
	l.commitMu.Lock()
	defer l.unlockCommit()
	r, l.batch.repair = l.batch.repair, r
	return r
}

// Kept returns a payload as the log would store it, after Options.Redact has masked its secrets.
func (l *Log) Kept(payload []byte) []byte {
	if l.redact == nil {
		return payload
	}
	return l.redact(payload)
}

// Append writes the events, all or none, one after the other, and returns the Seq of the last one.
// When it returns a nil error, these events and all events recorded before them survive a power
// failure.
//
// Two errors leave the log usable, and nothing was written: a *ConflictError, and the error of ctx if ctx ended
// before the events were queued. After Close the error is ErrClosed. Any other error is a *WriteError. It ends the
// log: every call returns this error until Reopen. Once the events are queued, Append ignores ctx, because the events
// have already happened.
func (l *Log) Append(ctx context.Context, events ...event.Event) (event.Seq, error) {
	return l.appendEntry(ctx, entry{events: events})
}

// AppendUnless appends the events, but not if the query "unless" selects an event of the log at the time of the commit.
// In that case nothing is written, and the error is a *ConflictError. If "unless" has no Types, AppendUnless is the
// same as Append.
func (l *Log) AppendUnless(ctx context.Context, unless event.Query, events ...event.Event) (event.Seq, error) {
	return l.appendEntry(ctx, entry{events: events, unless: unless})
}

// EndRun appends the events that end a run. The same commit makes a checkpoint. EndRun writes the anchor's line
// before it returns. Anchored returns the error of that line.
func (l *Log) EndRun(ctx context.Context, events ...event.Event) (event.Seq, error) {
	return l.appendEntry(ctx, entry{events: events, checkpoint: true})
}

// EndRunEarly is EndRun for a log that stays open. It returns before the checkpoint is made, so a person sees the
// answer earlier. The next commit makes the checkpoint. Anchored and Close wait for it. If the checkpoint's commit
// ends the log, Reopen makes the checkpoint. If other processes hold the lock for too long, Anchored returns ErrBusy.
// The checkpoint of the next run then covers both runs.
func (l *Log) EndRunEarly(ctx context.Context, events ...event.Event) (event.Seq, error) {
	return l.appendEntry(ctx, entry{events: events, checkpointNext: true})
}

func (l *Log) appendEntry(ctx context.Context, e entry) (event.Seq, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	r := l.awaitCommit(e)
	return r.last, r.err
}

// awaitCommit queues the entry and waits for its commit. If no other goroutine commits, awaitCommit does it itself.
func (l *Log) awaitCommit(e entry) result {
	e.wait = make(chan result, 1)
	if err := l.enqueue(e); err != nil {
		return result{err: err}
	}
	l.commitUntil(func() bool { return len(e.wait) > 0 })
	return <-e.wait
}

// commitUntil commits batches until the function "done" returns true. If another goroutine holds commitMu, commitUntil
// returns at once, because that goroutine also commits the urgent entries.
func (l *Log) commitUntil(done func() bool) {
	if !l.commitMu.TryLock() {
		return
	}
	for !done() && l.commitBatch() {
	}
	l.unlockCommit()
}

// unlockCommit unlocks commitMu. If urgent entries are left, it wakes the writer goroutine.
func (l *Log) unlockCommit() {
	l.commitMu.Unlock()
	if l.queue.isUrgent() {
		l.queue.wakeWriter()
	}
}

// Record queues the events after all earlier events and returns. Either all of them are written, or none. Record
// blocks only while the queue is full. The events are written with the next batch, at the latest after Options.Lazy.
// If that fails, every later call returns the error.
//
// The log keeps the payloads, so the caller must not change them afterwards.
func (l *Log) Record(events ...event.Event) error {
	return l.enqueue(entry{events: events})
}

// RecordUnless queues the events as Record does. If the query "unless" selects an event of the log at the time of the
// commit, nothing of the call is written. In that case no later call returns an error.
func (l *Log) RecordUnless(unless event.Query, events ...event.Event) error {
	return l.enqueue(entry{events: events, unless: unless})
}

// Sync waits until all events recorded before the call survive a power failure.
func (l *Log) Sync() error { return l.awaitCommit(entry{}).err }

// A Mark is a position in the sequence of calls that queued events through one Log.
type Mark uint64

// Mark returns the position after all events recorded so far.
func (l *Log) Mark() Mark {
	m, _ := l.queue.end()
	return m
}

// SyncTo waits until all events recorded before the mark m survive a power failure. It does not wait for later
// events.
func (l *Log) SyncTo(m Mark) error {
	for l.queue.makeUrgent(m) {
		l.commitUntil(func() bool { return l.queue.isCompleted(m) })
	}
	return l.queue.awaitCompletion(m)
}

// StartFlush starts to write the queued events and returns at once. It saves time for a caller that will wait for
// these events soon.
func (l *Log) StartFlush() { l.queue.startFlush() }

// Reopen opens the file again after a *WriteError ended the log. It checks that the file still has all acknowledged
// events. Then the log is usable again. The log may have the events of a failed call or not, and the caller must
// check that. The error wraps ErrCorrupt if acknowledged events are gone. Reopen does nothing to a usable log.
func (l *Log) Reopen(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	done := make(chan error, 1)
	select {
	case l.reopen <- done:
		return <-done
	case <-l.done:
		return disk.ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Err returns the error that ended the log, or nil.
func (l *Log) Err() error { return l.queue.finalErr() }

// enqueue completes the events and queues the entry. It redacts and hashes the payloads before the commit, because
// several callers can do that at the same time.
func (l *Log) enqueue(e entry) error {
	for i := range e.events {
		l.fillFields(&e.events[i])
	}
	return l.queue.enqueue(e)
}

// fillFields sets the fields of an event that do not depend on its Seq.
func (l *Log) fillFields(e *event.Event) {
	e.ID = uuid.Must(uuid.NewV7()).String()
	if l.redact != nil {
		e.Payload = l.redact(e.Payload)
	}
	e.PayloadLen = int64(len(e.Payload))
	e.PayloadSHA256 = sha256.Sum256(e.Payload)
	e.Writer, e.Context = l.writer, l.context
}

// Close writes the queued events, ends the writer goroutine and closes the file. If no other process has the log
// open, no write-ahead log remains. If an error ended the log, Close returns that error. Later calls return
// ErrClosed.
func (l *Log) Close() error {
	if !l.queue.startClose() {
		return disk.ErrClosed
	}
	<-l.done
	return errors.Join(l.Err(), l.closeErr)
}
