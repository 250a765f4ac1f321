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
	"github.com/jmoiron/sqlx"
)

const (
	// lazy is how long a recorded event may wait for company before it is written
	// although nobody asked for it.
	lazy = 20 * time.Millisecond

	// A batch is one commit. It ends at the first of the two limits.
	batchEvents = 1024
	batchBytes  = 4 << 20

	// queueBytes is how much may wait in memory before Record blocks. A slow disk
	// thereby slows whoever records.
	queueBytes = 8 << 20
)

// Options of Open.
type Options struct {
	Context string           // context_id of every event written
	Now     func() time.Time // the clock; nil means time.Now
}

// Log is an event log open for appending. Its methods may be called from several
// goroutines. The zero value is not usable; call Open.
type Log struct {
	Reader // reads what is committed

	path    string
	context string
	writer  string
	now     func() time.Time
	done    chan struct{} // closed when the writer goroutine has ended
	wake    chan struct{} // capacity 1: there is something to look at

	mu      sync.Mutex // guards what follows; never held during I/O
	room    sync.Cond  // signalled when the queue shrinks or the log dies
	queue   []entry
	bytes   int  // of payload in queue
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
	db, err := openWritable(ctx, path)
	if err != nil {
		return nil, fmt.Errorf("eventlog: open %s: %w", path, err)
	}
	if opt.Now == nil {
		opt.Now = time.Now
	}
	l := &Log{
		Reader:  Reader{db: db},
		path:    path,
		context: opt.Context,
		writer:  uuid.Must(uuid.NewV7()).String(),
		now:     opt.Now,
		done:    make(chan struct{}),
		wake:    make(chan struct{}, 1),
	}
	l.room.L = &l.mu
	go l.write(&batchWriter{db: db, writer: l.writer, context: l.context})
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
// latest after 20 ms. If they cannot be, every later call says so.
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

// Err returns why the log cannot be written any more, or nil.
func (l *Log) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

func (l *Log) enqueue(events []Event, wait chan result) error {
	size := 0
	for i := range events {
		size += len(events[i].Payload)
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
	timer := time.NewTimer(lazy)
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
			timer.Reset(lazy)
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
			bytes += len(l.queue[n].events[i].Payload)
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

// batchWriter turns batches into commits. Only the writer goroutine uses it.
type batchWriter struct {
	db      *sqlx.DB
	writer  string
	context string

	insert, readTree, saveTree, openRun, endRun *sqlx.Stmt
}

// commit writes the batch in one transaction. An entry that conflicts with the log is
// left out, and the Seq of its events stays zero; any error is final.
func (w *batchWriter) commit(batch []entry) error {
	if empty(batch) {
		return nil
	}
	for {
		conflict, err := w.try(batch)
		if err == nil {
			return nil
		}
		if conflict < 0 {
			return err
		}
		// Rare: the transaction was rolled back. Write it again without the entry.
		rest := make([]entry, 0, len(batch))
		for i, e := range batch {
			if i != conflict {
				rest = append(rest, e)
			}
		}
		for _, e := range batch {
			for i := range e.events {
				e.events[i].Seq = 0
			}
		}
		if batch = rest; empty(batch) {
			return nil
		}
	}
}

func empty(batch []entry) bool {
	for _, e := range batch {
		if len(e.events) > 0 {
			return false
		}
	}
	return true
}

// try writes the batch. If it fails because one entry conflicts with what the log
// holds, conflict is that entry's index, else -1.
func (w *batchWriter) try(batch []entry) (conflict int, err error) {
	ctx := context.Background() // a commit is never abandoned half-way
	if err := w.prepare(ctx); err != nil {
		return -1, &WriteError{Op: "prepare", Err: explain(err)}
	}
	tx, err := w.db.BeginTxx(ctx, nil)
	if err != nil {
		return -1, &WriteError{Op: "begin", Err: explain(err)}
	}
	conflict, err = w.fill(ctx, tx, batch)
	if err != nil {
		_ = tx.Rollback() // SQLite rolls back what is not committed in any case
		return conflict, &WriteError{Op: "insert", Err: explain(err)}
	}
	if err := tx.Commit(); err != nil {
		return -1, &WriteError{Op: "commit", Unknown: true, Err: explain(err)}
	}
	return -1, nil
}

func (w *batchWriter) prepare(ctx context.Context) (err error) {
	if w.insert != nil {
		return nil
	}
	for _, s := range []struct {
		stmt **sqlx.Stmt
		sql  string
	}{
		{&w.readTree, `SELECT size, frontier FROM tree WHERE id = 1`},
		{&w.saveTree, `UPDATE tree SET size = ?, frontier = ? WHERE id = 1`},
		{&w.openRun, `INSERT INTO open_runs (run_id, seq) VALUES (?, ?)`},
		{&w.endRun, `DELETE FROM open_runs WHERE run_id = ?`},
		{&w.insert, `
			INSERT INTO events (seq, event_id, ts, type, class, actor, writer, context_id,
				session_id, conversation_id, run_id, trace_id, interaction_id, input_id,
				payload_len, payload_sha256, leaf, payload)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`},
	} {
		if *s.stmt, err = w.db.PreparexContext(ctx, s.sql); err != nil {
			return err
		}
	}
	return nil
}

// fill does the work of one transaction. The tree is read inside it: another process
// may have appended since.
func (w *batchWriter) fill(ctx context.Context, tx *sqlx.Tx, batch []entry) (conflict int, err error) {
	var size int64
	var roots []byte
	if err := tx.StmtxContext(ctx, w.readTree).QueryRowxContext(ctx).Scan(&size, &roots); err != nil {
		return -1, err
	}
	tree, err := parseFrontier(size, roots)
	if err != nil {
		return -1, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	insert := tx.StmtxContext(ctx, w.insert)
	for i := range batch {
		for j := range batch[i].events {
			e := &batch[i].events[j]
			w.complete(e, Seq(tree.size+1))
			if err := w.put(ctx, tx, insert, e); err != nil {
				if isConstraint(err) {
					return i, err
				}
				return -1, err
			}
			tree.add(e.LeafHash)
		}
	}
	_, err = tx.StmtxContext(ctx, w.saveTree).ExecContext(ctx, tree.size, tree.bytes())
	return -1, err
}

// complete fills in what the log knows about an event.
func (w *batchWriter) complete(e *Event, seq Seq) {
	if e.ID == "" {
		e.ID = uuid.Must(uuid.NewV7()).String()
		e.PayloadLen = int64(len(e.Payload))
		e.PayloadSHA256 = sha256.Sum256(e.Payload)
		e.Writer, e.Context = w.writer, w.context
	}
	e.Seq = seq
	e.LeafHash = e.Leaf()
}

func (w *batchWriter) put(ctx context.Context, tx *sqlx.Tx, insert *sqlx.Stmt, e *Event) error {
	payload := e.Payload
	if payload == nil {
		payload = []byte{} // NULL would mean withheld
	}
	_, err := insert.ExecContext(ctx, int64(e.Seq), e.ID, e.Time.UnixNano(), string(e.Type), string(e.Class),
		e.Actor, e.Writer, e.Context,
		string(e.Session), string(e.Conversation), string(e.Run), string(e.Trace), string(e.Interaction), string(e.Input),
		e.PayloadLen, e.PayloadSHA256[:], e.LeafHash[:], payload)
	switch {
	case err != nil:
		return err
	case e.Type == Requested:
		_, err = tx.StmtxContext(ctx, w.openRun).ExecContext(ctx, string(e.Run), int64(e.Seq))
	case e.Type.Outcome():
		_, err = tx.StmtxContext(ctx, w.endRun).ExecContext(ctx, string(e.Run))
	}
	return err
}
