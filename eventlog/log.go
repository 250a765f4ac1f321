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
)

const (
	// A batch is one commit. It ends at the first of the two limits.
	batchEvents = 1024
	batchBytes  = 1 << 20

	// queueBytes is how much may wait in memory before Record blocks. A slow disk
	// thereby slows whoever records.
	queueBytes = 2 << 20
)

// Options of Open.
type Options struct {
	Context string           // context_id of every event written
	Now     func() time.Time // the clock; nil means time.Now

	// Lazy is how long a recorded event may wait for company before it is written although
	// nobody asked for it. Zero means 20 ms.
	Lazy time.Duration
}

// Log is an event log open for appending. Its methods may be called from several
// goroutines. The zero value is not usable; call Open.
type Log struct {
	Reader // reads what is committed

	path    string
	context string
	writer  string
	now     func() time.Time
	lazy    time.Duration
	done    chan struct{} // closed when the writer goroutine has ended
	wake    chan struct{} // capacity 1: there is something to look at

	mu      sync.Mutex // guards what follows; never held during I/O
	room    sync.Cond  // signalled when the queue shrinks or the log dies
	queue   []entry
	bytes   int  // weight of queue
	urgent  bool // somebody waits for the queue's end
	closing bool
	err     error // set once: why nothing can be written any more
}

// An entry is what one call wants written, all or none of it.
type entry struct {
	events []Event
	wait   chan result // nil if nobody waits; capacity 1
}

type result struct {
	last Seq
	err  error
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
	db, file, err := openWritable(ctx, path)
	if err != nil {
		return nil, fmt.Errorf("eventlog: open %s: %w", path, err)
	}
	if opt.Now == nil {
		opt.Now = time.Now
	}
	if opt.Lazy <= 0 {
		opt.Lazy = 20 * time.Millisecond
	}
	l := &Log{
		Reader:  Reader{db: db},
		path:    path,
		context: opt.Context,
		writer:  uuid.Must(uuid.NewV7()).String(),
		now:     opt.Now,
		lazy:    opt.Lazy,
		done:    make(chan struct{}),
		wake:    make(chan struct{}, 1),
	}
	l.room.L = &l.mu
	go l.write(&batchWriter{db: db, path: path, file: file})
	return l, nil
}

// Path returns the absolute name of the log's file.
func (l *Log) Path() string { return l.path }

// Writer returns the id that marks the events written through this handle.
func (l *Log) Writer() string { return l.writer }

// Append writes the events, all or none, one after the other, and returns the Seq of
// the last one. When it returns a nil error the events, and all that were recorded
// before them, survive a power failure.
//
// A ConflictError means that nothing was written and the log lives on. Any other
// error is a WriteError and final. Append does not give up when ctx is cancelled once
// the events are queued: what happened must be recorded.
func (l *Log) Append(ctx context.Context, events ...Event) (Seq, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	wait := make(chan result, 1)
	if err := l.enqueue(events, wait); err != nil {
		return 0, err
	}
	r := <-wait
	return r.last, r.err
}

// Record queues the events, all or none, behind everything queued before, and returns
// at once unless much is queued already. They are written with the next batch, at the
// latest after Options.Lazy. If they cannot be, every later call says so.
//
// The log keeps the payloads; the caller must not change them afterwards.
func (l *Log) Record(events ...Event) error { return l.enqueue(events, nil) }

// Sync waits until everything recorded before the call survives a power failure.
func (l *Log) Sync() error {
	wait := make(chan result, 1)
	if err := l.enqueue(nil, wait); err != nil {
		return err
	}
	return (<-wait).err
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

func (l *Log) enqueue(events []Event, wait chan result) error {
	size := 0
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
		return ErrClosed
	}
	now := l.now()
	for i := range events {
		events[i].Time = now
	}
	l.queue = append(l.queue, entry{events, wait})
	l.bytes += size
	first := len(l.queue) == 1
	urgent := wait != nil || l.bytes > batchBytes || len(l.queue) >= batchEvents
	if first || urgent && !l.urgent {
		l.urgent = l.urgent || urgent
		l.poke()
	}
	return nil
}

// complete fills in what the log knows about an event before its place is known.
func (l *Log) complete(e *Event) {
	e.ID = uuid.Must(uuid.NewV7()).String()
	e.PayloadLen = int64(len(e.Payload))
	e.PayloadSHA256 = sha256.Sum256(e.Payload)
	e.Writer, e.Context = l.writer, l.context
}

// weight is what an event takes in memory, about: a flood of short lines is one, too.
func weight(e *Event) int { return len(e.Payload) + 512 }

// poke makes the writer look at the queue.
func (l *Log) poke() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// write is the writer goroutine.
func (l *Log) write(w *batchWriter) {
	defer close(l.done)
	timer := time.NewTimer(l.lazy)
	timer.Stop()
	for {
		due := false
		select {
		case <-l.wake:
		case <-timer.C:
			due = true
		}
		for {
			batch, closing := l.take(due)
			if batch == nil {
				if closing {
					return
				}
				break
			}
			l.finish(batch, w.commit(batch))
		}
		if l.waiting() {
			timer.Reset(l.lazy)
		}
	}
}

func (l *Log) waiting() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.queue) > 0
}

// take removes the next batch from the queue, or returns nil if nothing is due.
func (l *Log) take(due bool) (batch []entry, closing bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.queue) == 0 || !(due || l.urgent || l.closing) {
		return nil, l.closing && len(l.queue) == 0
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
	return batch, false
}

// finish tells everybody in the batch what became of it. After a fault the log is
// dead: what is still queued fails with the same error.
func (l *Log) finish(batch []entry, err error) {
	if err != nil {
		l.mu.Lock()
		l.err = err
		batch = append(batch, l.queue...)
		l.queue, l.bytes, l.urgent = nil, 0, false
		l.room.Broadcast()
		l.mu.Unlock()
	}
	for _, e := range batch {
		if e.wait == nil {
			continue
		}
		r := result{err: err}
		if n := len(e.events); n > 0 && err == nil {
			r.last = e.events[n-1].Seq
			if r.last == 0 {
				r.err = &ConflictError{Type: unique(e.events)}
			}
		}
		e.wait <- r
	}
}

// unique returns the type among events that a log may hold only once per reference.
func unique(events []Event) Type {
	for _, e := range events {
		if e.Type == Requested || e.Type.Outcome() || e.Type == InteractionAnswered ||
			e.Type == InteractionLapsed || e.Type == InteractionResolved {
			return e.Type
		}
	}
	return events[0].Type
}

// Close writes what is queued, ends the writer and closes the file; where this is the
// last process to have the log open, no write-ahead log is left beside it. It returns
// the error that killed the log, if one did. Later calls return ErrClosed.
func (l *Log) Close() error {
	l.mu.Lock()
	if l.closing {
		l.mu.Unlock()
		return ErrClosed
	}
	l.closing = true
	l.room.Broadcast()
	l.mu.Unlock()
	l.poke()
	<-l.done
	return errors.Join(l.Err(), l.db.Close())
}
