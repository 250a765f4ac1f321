package eventlog

import (
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/perlica/perlica/eventlog/disk"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/evidence"
)

const (
	// batchEvents and batchBytes limit a batch, which is one commit. A batch ends at the first limit that it reaches.
	batchEvents = 1024
	batchBytes  = 1 << 20

	// queueBytes is the weight of the queue, in bytes, above which Record blocks. A slow disk thereby slows the
	// caller of Record.
	queueBytes = 2 << 20
)

// A queue implements the group commit of a Log. A commit syncs the disk, and one sync serves all entries of a batch.
// Callers add entries to the queue, and the goroutine that holds Log.commitMu commits them in batches.
//
// A caller that waits for its entry usually commits the entry itself. awaitCommit locks commitMu if it is free. Then
// it commits batches until its own entry has a result. Switching to the writer goroutine and back would take as long
// as the insert. If another goroutine holds commitMu, the caller only waits. The next batch of that goroutine
// contains the caller's entry. If that goroutine stops before, unlockCommit wakes the writer goroutine, which commits
// the rest. The writer goroutine also commits recorded entries without a waiting caller.
//
// A caller cannot withdraw a queued entry, because the event has already happened. If the process dies, SQLite keeps
// each batch as a whole or not at all. No caller of the batch has a result by then. An error is returned to every
// caller of the batch and of the queue. The Log then refuses all calls until Reopen.
type queue struct {
	now  func() time.Time // the clock
	lazy time.Duration    // how long a recorded entry may wait
	due  *time.Timer      // fires when a recorded entry has waited for lazy
	wake chan struct{}    // capacity 1

	// mu guards the fields below. No goroutine does I/O or locks commitMu while it holds mu.
	mu    sync.Mutex
	room  sync.Cond // signalled when the queue shrinks or the log fails
	known sync.Cond // signalled when completed grows

	entries []entry
	// bytes is the weight of all queued entries.
	bytes int
	// urgent means that the queued entries must be committed now. It is false if the queue is empty.
	urgent bool
	// armed means that the timer "due" is running.
	armed   bool
	closing bool

	// queued counts all entries so far. completed counts the entries that have a result.
	queued, completed Mark
	// The next fields describe the entries that were lost when the log failed. kept is the mark before the first lost
	// entry, and lost is the mark of the last one. For each mark above kept and up to lost, SyncTo returns loss. That
	// is the latest error that ended the log.
	lost, kept Mark
	loss       error
	// err is the error that ended the log. It is nil while the log can be written.
	err error
	// anchorErr is the reason why the last checkpoint is not in the anchor or has no signature.
	anchorErr error
	// checkpointOwed means that the checkpoint of an EndRunEarly was lost when the log failed. Reopen queues it again.
	checkpointOwed bool
}

func newQueue(now func() time.Time, lazy time.Duration) *queue {
	q := &queue{now: now, lazy: lazy, due: time.NewTimer(lazy), wake: make(chan struct{}, 1)}
	q.due.Stop()
	q.room.L, q.known.L = &q.mu, &q.mu
	return q
}

// An entry has the events of one call. Either all of them are written, or none.
type entry struct {
	events []event.Event
	// checkpoint requests a checkpoint in the same commit.
	checkpoint bool
	// store is a checkpoint, or nil. The writer stores its note.
	store *evidence.Checkpoint
	// unless selects the events that prevent the entry. If unless has no Types, no event prevents it.
	unless event.Query
	// checkpointNext requests a checkpoint in the next commit.
	checkpointNext bool
	// wait receives the result. Its capacity is 1. It is nil if no caller waits.
	wait chan result
}

// isLateCheckpoint reports whether the entry is a checkpoint for which no caller waits.
func (e entry) isLateCheckpoint() bool { return e.checkpoint && e.wait == nil }

type result struct {
	last       event.Seq
	checkpoint evidence.Checkpoint
	err        error
}

// weigh returns the number of events in a batch and their weight in bytes.
func weigh(batch []entry) (events, bytes int) {
	for i := range batch {
		for j := range batch[i].events {
			events, bytes = events+1, bytes+weight(&batch[i].events[j])
		}
	}
	return events, bytes
}

// weight returns the approximate memory of an event in bytes. Even an event with a short payload needs some memory.
func weight(e *event.Event) int { return len(e.Payload) + 512 }

// enqueue sets the time of the events and appends the entry. It blocks while the queue is full.
func (q *queue) enqueue(e entry) error {
	_, size := weigh([]entry{e})
	q.mu.Lock()
	defer q.mu.Unlock()
	for q.bytes > queueBytes && q.err == nil && !q.closing {
		q.room.Wait()
	}
	if q.err != nil {
		return q.err
	}
	if q.closing {
		return disk.ErrClosed
	}
	now := q.now()
	for i := range e.events {
		e.events[i].Time = now
	}
	q.entries = append(q.entries, e)
	q.queued++
	q.bytes += size
	if full := q.bytes > batchBytes || len(q.entries) >= batchEvents; full && !q.urgent {
		q.urgent = true
		q.wakeWriter()
	}
	switch {
	case e.wait != nil:
		q.urgent = true
	case !q.armed:
		q.armed = true
		q.due.Reset(q.lazy)
	}
	return nil
}

// wakeWriter makes the writer goroutine look at the queue.
func (q *queue) wakeWriter() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// timerFired makes the queued entries urgent. The writer goroutine calls it when the timer "due" has fired. The next
// recorded entry starts the timer again.
func (q *queue) timerFired() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.armed, q.urgent = false, len(q.entries) > 0
}

// startFlush makes the writer goroutine commit the entries now.
func (q *queue) startFlush() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.entries) > 0 && !q.urgent && !q.closing {
		q.urgent = true
		q.wakeWriter()
	}
}

// makeUrgent makes the entries up to the mark m urgent. It returns true if the caller must try to commit them. It
// returns false if they have a result, or if another goroutine will commit them.
func (q *queue) makeUrgent(m Mark) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.completed >= m || q.urgent || len(q.entries) == 0 {
		return false
	}
	q.urgent = true
	return true
}

func (q *queue) isUrgent() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.urgent
}

func (q *queue) isCompleted(m Mark) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.completed >= m
}

// awaitCompletion waits until all entries up to the mark m have a result. If one of them failed, it returns the
// error.
func (q *queue) awaitCompletion(m Mark) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	for q.completed < m {
		q.known.Wait()
	}
	if q.kept < m && m <= q.lost {
		return q.loss
	}
	return nil
}

// end returns the mark of the newest entry. The result "pending" says that at least one entry has no result yet.
func (q *queue) end() (m Mark, pending bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.queued, q.completed < q.queued
}

// takeBatch removes the next batch from the queue. It returns nil if no entry must be committed now.
func (q *queue) takeBatch() (batch []entry) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.entries) == 0 || !(q.urgent || q.closing) {
		return nil
	}
	n, events, bytes := 0, 0, 0
	for n < len(q.entries) && (n == 0 || events < batchEvents && bytes < batchBytes) {
		count, size := weigh(q.entries[n : n+1])
		n, events, bytes = n+1, events+count, bytes+size
	}
	batch = q.entries[:n:n]
	q.entries = q.entries[n:]
	q.bytes -= bytes
	if len(q.entries) == 0 {
		q.entries, q.urgent = nil, false
	}
	q.room.Broadcast()
	return batch
}

// finishBatch gives every caller of the batch its result. An error ends the log, and the entries that are still
// queued fail with the same error.
func (q *queue) finishBatch(batch []entry, newest evidence.Checkpoint, err error) {
	q.mu.Lock()
	if isPutOff(batch, err) {
		q.anchorErr, err = err, nil
	}
	if err != nil {
		q.err = err
		batch = append(batch, q.entries...)
		q.entries, q.bytes, q.urgent = nil, 0, false
		q.room.Broadcast()
		if q.loss == nil {
			q.kept = q.completed
		}
		q.lost, q.loss = q.completed+Mark(len(batch)), err
		q.checkpointOwed = q.checkpointOwed || slices.ContainsFunc(batch, entry.isLateCheckpoint)
	}
	q.completed += Mark(len(batch))
	q.known.Broadcast()
	if err == nil && newest.Size == 0 && slices.ContainsFunc(batch, func(e entry) bool { return e.checkpointNext }) {
		// Queue the checkpoint before a caller gets its result. Then Anchored always waits for the checkpoint.
		q.enqueueCheckpoint()
	}
	q.mu.Unlock()
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

// isPutOff reports whether a batch of late checkpoints failed only because other processes held the lock. Nothing was
// written, and the next checkpoint covers the same events.
func isPutOff(batch []entry, err error) bool {
	var failed *WriteError
	return errors.As(err, &failed) && errors.Is(err, disk.ErrBusy) && !failed.Unknown &&
		!slices.ContainsFunc(batch, func(e entry) bool { return !e.isLateCheckpoint() })
}

// unique returns the type for a ConflictError about these events. It is the first type for which the log has a unique
// index. If there is no such type, it is the type of the first event.
func unique(events []event.Event) event.Type {
	for _, e := range events {
		if e.Type.Once() != "" {
			return e.Type
		}
	}
	return events[0].Type
}

// enqueueCheckpoint queues a late checkpoint. The caller holds mu. Afterwards the caller commits or wakes the writer
// goroutine.
func (q *queue) enqueueCheckpoint() {
	q.entries = append(q.entries, entry{checkpoint: true})
	q.queued++
	q.urgent, q.checkpointOwed = true, false
}

// resume makes the queue accept entries again after Reopen.
func (q *queue) resume() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.err = nil
	if q.checkpointOwed {
		q.enqueueCheckpoint()
	}
}

// finalErr returns the error that ended the log, or nil.
func (q *queue) finalErr() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.err
}

func (q *queue) setAnchorErr(err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.anchorErr = err
}

func (q *queue) lastAnchorErr() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.anchorErr
}

// startClose makes the queue refuse new entries. It returns false if it was called before.
func (q *queue) startClose() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closing {
		return false
	}
	q.closing = true
	q.room.Broadcast()
	q.wakeWriter()
	return true
}

// isDrained reports whether the queue is closing and empty.
func (q *queue) isDrained() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.closing && len(q.entries) == 0
}
