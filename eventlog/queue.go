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
	// batchEvents and batchBytes limit a batch, which is one commit. It ends at the first limit.
	batchEvents = 1024
	batchBytes  = 1 << 20

	// queueBytes is the weight of the queue at which Record blocks. A slow disk thereby slows the
	// caller that records.
	queueBytes = 2 << 20
)

// A queue is the group commit of a Log. A commit syncs the disk, and one sync serves all entries of
// a batch. Callers enqueue entries, and the holder of Log.commitMu commits them in batches.
//
// The caller that waits usually commits itself. awaitCommit takes commitMu if it is free, and
// commits batches until its own entry has a result. Waking the writer goroutine and being woken by
// it would cost as much as the insert. If another goroutine holds commitMu, the caller only waits:
// the holder's next batch takes its entry. If the holder stops before that batch, unlockCommit
// wakes the writer goroutine, which commits the rest. The writer goroutine also commits the
// recorded entries for which no caller waits.
//
// A caller cannot abandon an entry once it is queued, because the event has already happened. If
// the process dies, SQLite keeps each batch as a whole or not at all, and no caller of the batch
// has a result yet. After an error every caller of the batch and of the queue gets it, and the Log
// stays dead until Reopen.
type queue struct {
	now  func() time.Time // the clock
	lazy time.Duration    // the delay of due
	due  *time.Timer      // fires when a recorded entry has waited for long enough
	wake chan struct{}    // capacity 1

	// mu guards the fields below. It is never held during I/O. A goroutine that holds it does not
	// lock commitMu.
	mu    sync.Mutex
	room  sync.Cond // signalled when the queue shrinks or the log dies
	known sync.Cond // signalled when completed grows

	entries []entry
	// bytes is the weight of entries.
	bytes int
	// urgent means that the entries must be committed now. It is false if the queue is empty.
	urgent bool
	// armed means that due will fire.
	armed   bool
	closing bool

	// queued counts all entries so far. completed counts those with a result.
	queued, completed Mark
	// kept is the last entry before the first failed one, and lost is the last failed one. SyncTo
	// returns loss, the latest failure, for every mark between them.
	lost, kept Mark
	loss       error
	// err is the error that ended the log. It is nil while the log can be written.
	err error
	// anchorErr says why the last checkpoint is not anchored or not signed.
	anchorErr error
	// checkpointOwed means that a checkpoint after an answer was lost when the log died.
	checkpointOwed bool
}

func newQueue(now func() time.Time, lazy time.Duration) *queue {
	q := &queue{now: now, lazy: lazy, due: time.NewTimer(lazy), wake: make(chan struct{}, 1)}
	q.due.Stop()
	q.room.L, q.known.L = &q.mu, &q.mu
	return q
}

// An entry holds the events of one call. All of them are written, or none.
type entry struct {
	events []event.Event
	// checkpoint asks for a checkpoint in the same commit.
	checkpoint bool
	// store is a checkpoint whose note is to be stored, or nil.
	store *evidence.Checkpoint
	// unless selects events that keep the entry from being written. The zero Query selects none.
	unless event.Query
	// checkpointNext asks for a checkpoint in the next commit.
	checkpointNext bool
	// wait receives the result. It has capacity 1, and is nil if no caller waits.
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

// weight returns about how many bytes an event takes in memory. Many short lines take memory, too.
func weight(e *event.Event) int { return len(e.Payload) + 512 }

// enqueue stamps the events with the time and appends the entry. It blocks while the queue is full.
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

// timerFired makes the entries urgent after due has fired. The next recorded entry sets due again.
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

// makeUrgent makes the entries up to m urgent. It returns true if the caller must try to commit
// them, and false if they are completed or another goroutine will commit them.
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

// awaitCompletion waits until all entries up to m have a result. It returns the error of a lost one.
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

// end returns the mark of the newest entry, and whether it has no result yet.
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

// finishBatch gives every caller of the batch its result. An error ends the log: then the entries
// in the queue fail with the same error.
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
		// Queue it before a caller gets its result. Then Anchored always waits for it.
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

// isPutOff reports whether a batch failed only because other processes held the lock, and held only
// late checkpoints. Nothing was written, and the next checkpoint covers the same events.
func isPutOff(batch []entry, err error) bool {
	var failed *WriteError
	return errors.As(err, &failed) && errors.Is(err, disk.ErrBusy) && !failed.Unknown &&
		!slices.ContainsFunc(batch, func(e entry) bool { return !e.isLateCheckpoint() })
}

// unique returns the first type among the events that the log may hold only once for a reference.
func unique(events []event.Event) event.Type {
	for _, e := range events {
		if e.Type.Once() != "" {
			return e.Type
		}
	}
	return events[0].Type
}

// enqueueCheckpoint queues a late checkpoint. The caller holds mu and commits or wakes the writer
// goroutine later.
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

// startClose makes the queue refuse new entries. It returns false if an earlier call did so.
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
