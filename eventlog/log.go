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

const (
	// A batch is one commit. It ends at the first of the two limits.
	batchEvents = 1024
	batchBytes  = 1 << 20

	// queueBytes is how much may wait in memory before Record blocks. A slow disk
	// thereby slows the caller that records.
	queueBytes = 2 << 20
)

// Options of Open.
type Options struct {
	Context string           // context_id of every event written
	Now     func() time.Time // the clock; nil means time.Now

	// Lazy is how long a recorded event may wait for company before it is written although
	// no one asked for it. Zero means 20 ms.
	Lazy time.Duration

	// Keys sign the checkpoint that is made with the end of every run; see
	// [evidence.UseKeys]. Nil signs nothing.
	Keys *evidence.Keys

	// Redact is applied to every payload before it is hashed, so that what it takes out was
	// never on the log. Nil changes nothing, and only then the log holds the bytes of the
	// wire. It must keep JSON valid. It is called by several goroutines.
	Redact func(payload []byte) []byte

	fail func(point string) error // of tests: the batchWriter's
}

// Log is an event log open for appending. Its methods may be called from several
// goroutines. The zero value is not usable; call Open.
type Log struct {
	store.Reader // reads what is committed

	context string
	writer  string
	now     func() time.Time
	lazy    time.Duration
	ended   error             // of the last Close; read behind done
	done    chan struct{}     // closed when the writer goroutine has ended
	wake    chan struct{}     // capacity 1: there is something to look at
	reopen  chan chan<- error // asks the writer to open the file again
	prune   chan pruneJob     // asks the writer to remove payloads
	redact  func([]byte) []byte
	due     *time.Timer // fires when what is queued has waited for long enough
	rest    *time.Timer // fires when the log has been at rest for a while

	unfinished bool         // when it was opened
	newest     store.Newest // when it was opened

	turn  sync.Mutex   // held by the goroutine that commits: the writer, or one that waits for it
	batch *batchWriter // whose turn it is; tests reach for it before the first append

	mu        sync.Mutex // guards what follows; never held during I/O
	room      sync.Cond  // signalled when the queue shrinks or the log dies
	known     sync.Cond  // signalled when completed grows
	queue     []entry
	bytes     int  // weight of queue
	urgent    bool // somebody waits for the queue's end
	armed     bool // due will fire
	closing   bool
	queued    Mark  // all that was ever queued
	completed Mark  // up to here each entry is committed or refused
	lost      Mark  // up to here, from kept on, it failed, if anything ever did
	kept      Mark  // up to here it had not
	loss      error // why
	err       error // why nothing can be written any more
	anchor    error // why the last checkpoint is not anchored, or not signed
	behind    bool  // the checkpoint that was to follow an answer was lost when the log died
}

// Open opens the log at path for appending and creates it if it does not exist. The
// folder must exist. It fails with ErrReadOnly, ErrFull, ErrBusy, ErrCorrupt,
// ErrForeign or ErrNewer where one of them is the reason.
//
// Several processes may have one log open. The caller must Close it.
func Open(ctx context.Context, path string, opt Options) (*Log, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	w, err := store.OpenWritable(ctx, path)
	if err != nil {
		return nil, fmt.Errorf("eventlog: open %s: %w", path, store.ExplainDisk(path, err))
	}
	if opt.Now == nil {
		opt.Now = time.Now
	}
	if opt.Lazy <= 0 {
		opt.Lazy = 20 * time.Millisecond
	}
	// What is read while the writer works is read through connections of its own, which are
	// opened with the first query.
	reads, err := store.ReaderOf(path)
	if err != nil {
		return nil, errors.Join(err, w.Close())
	}
	l := &Log{
		Reader:  reads,
		context: opt.Context,
		writer:  uuid.Must(uuid.NewV7()).String(),
		now:     opt.Now,
		lazy:    opt.Lazy,
		done:    make(chan struct{}),
		wake:    make(chan struct{}, 1),
		reopen:  make(chan chan<- error),
		prune:   make(chan pruneJob),
		redact:  opt.Redact,
		due:     time.NewTimer(opt.Lazy),
		rest:    time.NewTimer(restAfter),

		unfinished: w.Unfinished,
		newest:     w.Newest,
	}
	l.room.L, l.known.L = &l.mu, &l.mu
	l.batch = &batchWriter{db: w.DB, path: path, files: w.Files, keys: opt.Keys, fail: opt.fail, book: intents.Open(path)}
	l.due.Stop()
	l.rest.Stop()
	go l.write()
	return l, nil
}

// Unfinished reports whether the log, when it was opened, listed runs without an outcome, as
// OpenRuns returns them.
func (l *Log) Unfinished() bool { return l.unfinished }

// Newest returns the newest event that this handle has seen in the log.
func (l *Log) Newest() store.Newest {
	l.turn.Lock()
	defer l.releaseTurn()
	if l.batch.tree.Size < l.newest.Seq {
		return l.newest
	}
	return store.Newest{Seq: l.batch.tree.Size, Leaf: l.batch.last, Context: l.context}
}

// Writer returns the id that marks the events written through this handle.
func (l *Log) Writer() string { return l.writer }

// A LostIntentError says that the second place of the intents names an input that the log does not hold.
// The log lost the intent, and the prompt may have left.
type LostIntentError struct {
	Input event.InputID
	Path  string // of the second place
}

func (e *LostIntentError) Error() string {
	return fmt.Sprintf("the event log lost the intent of the input %s, which %s names as called", e.Input, e.Path)
}

// An intent whose event is not in the log may be one that another process is committing. It is looked for
// again as often and as long as that may take.
const (
	intentLooks = 40
	intentPause = 25 * time.Millisecond
)

// Intent returns the intent of the call that was made for an input. ok is false if no call was made. The
// error is a *LostIntentError if the second place of the intents alone names the input.
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
		case appended: // the event may have come between the two looks
			continue
		}
		select {
		case <-time.After(intentPause):
		case <-ctx.Done():
			return e, false, context.Cause(ctx)
		}
	}
}

// TakeRepair returns what was found, and repaired, when the first intent was written to the second
// place. It returns that once.
func (l *Log) TakeRepair() (r intents.Repair) {
	l.turn.Lock()
	defer l.releaseTurn()
	r, l.batch.repair = l.batch.repair, r
	return r
}

// Kept returns a payload as the log keeps it: masked, if the log masks what it takes.
func (l *Log) Kept(payload []byte) []byte {
	if l.redact == nil {
		return payload
	}
	return l.redact(payload)
}

// Append writes the events, all or none, one after the other, and returns the Seq of
// the last one. When it returns a nil error the events, and all that were recorded
// before them, survive a power failure.
//
// The end of a run has a checkpoint: it is part of the same commit, and its line of the anchor is
// written before Append returns. Why it could not be is what Anchored returns.
//
// A ConflictError means that nothing was written and the log lives on. Any other
// error is a WriteError and final. Append does not give up when ctx is cancelled once
// the events are queued: what happened must be recorded.
func (l *Log) Append(ctx context.Context, events ...event.Event) (event.Seq, error) {
	return l.append(ctx, entry{events: events})
}

// AppendUnless is Append of facts that hold only as long as the log has no event that unless
// selects: if it has one when they are committed, nothing is written and the error is a
// ConflictError. A Query without Types is no condition.
func (l *Log) AppendUnless(ctx context.Context, unless event.Query, events ...event.Event) (event.Seq, error) {
	return l.append(ctx, entry{events: events, unless: unless})
}

// AppendAhead is Append for the end of a run whose answer somebody waits for while the log stays
// open: the checkpoint follows in a commit of its own, for which Anchored and Close wait. A warm turn
// takes 0.85 times as long by it. If the log
// dies of it, it follows when Reopen has returned; where others hold the lock for too long, Anchored
// says so, and the next run's checkpoint covers both.
func (l *Log) AppendAhead(ctx context.Context, events ...event.Event) (event.Seq, error) {
	return l.append(ctx, entry{events: events, ahead: true})
}

func (l *Log) append(ctx context.Context, e entry) (event.Seq, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	r := l.await(e)
	return r.last, r.err
}

// await queues the entry and waits for the batch that holds it.
func (l *Log) await(e entry) result {
	e.wait = make(chan result, 1)
	if err := l.enqueue(e); err != nil {
		return result{err: err}
	}
	l.writeWhileWaiting(func() bool { return len(e.wait) > 0 })
	return <-e.wait
}

// writeWhileWaiting writes what is queued until done, if no other goroutine is writing; the one that
// writes looks for urgent entries itself. To wake the writer and be woken would cost as much as the
// insert: 107 µs of processor time for one event instead of 55.
func (l *Log) writeWhileWaiting(done func() bool) {
	if !l.turn.TryLock() {
		return
	}
	for !done() && l.step(false) {
	}
	l.releaseTurn()
}

// releaseTurn gives up the turn, and has the writer look at what somebody waits for.
func (l *Log) releaseTurn() {
	l.turn.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.urgent {
		l.poke()
	}
}

// Record queues the events, all or none, behind everything queued before, and returns
// at once unless much is queued already. They are written with the next batch, at the
// latest after Options.Lazy. If they cannot be, every later call says so.
//
// The log keeps the payloads; the caller must not change them afterwards.
func (l *Log) Record(events ...event.Event) error {
	return l.enqueue(entry{events: events})
}

// Sync waits until everything recorded before the call survives a power failure.
func (l *Log) Sync() error { return l.await(entry{}).err }

// A Mark is a place in what was recorded through one Log.
type Mark uint64

// Mark returns the place behind everything recorded so far.
func (l *Log) Mark() Mark {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.queued
}

// SyncTo is Sync for what was recorded before the mark: it does not wait for what came later.
func (l *Log) SyncTo(m Mark) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.completed < m {
		if !l.urgent && len(l.queue) > 0 {
			l.urgent = true
			l.mu.Unlock()
			l.writeWhileWaiting(func() bool { return l.isCompleted(m) })
			l.mu.Lock()
			continue
		}
		l.known.Wait()
	}
	if l.kept < m && m <= l.lost {
		return l.loss
	}
	return nil
}

func (l *Log) isCompleted(m Mark) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.completed >= m
}

// Reopen opens the file of a log again that a WriteError ended, and checks that all that was
// acknowledged is still in it; then the log lives on. What failed stays failed: it may be on
// the log or not, and who knows by looking. It fails with an error that wraps ErrCorrupt if
// acknowledged events are gone, and does nothing to a log that lives.
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

// Hurry has what is queued written now, without waiting for it: somebody is about to wait.
func (l *Log) Hurry() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.queue) > 0 && !l.urgent && !l.closing {
		l.urgent = true
		l.poke()
	}
}

// Err returns why the log cannot be written any more, or nil.
func (l *Log) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

// enqueue puts the entry into the queue. The writer is told if it is full enough for a batch.
func (l *Log) enqueue(e entry) error {
	events, size := e.events, 0
	for i := range events {
		l.complete(&events[i]) // here, not in the writer: callers are many, it is one
		size += weight(&events[i])
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.bytes > queueBytes && l.err == nil && !l.closing {
		l.room.Wait()
	}
	if l.err != nil {
		return l.err
	}
	if l.closing {
		return disk.ErrClosed
	}
	now := l.now()
	for i := range events {
		events[i].Time = now
	}
	l.queue = append(l.queue, e)
	l.queued++
	l.bytes += size
	if full := l.bytes > batchBytes || len(l.queue) >= batchEvents; full && !l.urgent {
		l.urgent = true
		l.poke()
	}
	if e.wait != nil {
		l.urgent = true
	} else {
		l.arm()
	}
	return nil
}

// arm has the writer look at the queue after a while. The caller holds mu.
func (l *Log) arm() {
	if !l.armed {
		l.armed = true
		l.due.Reset(l.lazy)
	}
}

// complete fills in what the log knows about an event before its place is known.
func (l *Log) complete(e *event.Event) {
	e.ID = uuid.Must(uuid.NewV7()).String()
	if l.redact != nil {
		e.Payload = l.redact(e.Payload)
	}
	e.PayloadLen = int64(len(e.Payload))
	e.PayloadSHA256 = sha256.Sum256(e.Payload)
	e.Writer, e.Context = l.writer, l.context
}

// Close writes what is queued, ends the writer and closes the file; where this is the
// last process to have the log open, no write-ahead log is left beside it. It returns
// the error that killed the log, if one did. Later calls return ErrClosed.
func (l *Log) Close() error {
	l.mu.Lock()
	if l.closing {
		l.mu.Unlock()
		return disk.ErrClosed
	}
	l.closing = true
	l.room.Broadcast()
	l.mu.Unlock()
	l.poke()
	<-l.done
	return errors.Join(l.Err(), l.ended)
}
