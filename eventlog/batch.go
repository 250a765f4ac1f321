package eventlog

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jmoiron/sqlx"
	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"github.com/perlica/perlica/eventlog/anchor"
	"github.com/perlica/perlica/eventlog/disk"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/evidence"
	"github.com/perlica/perlica/eventlog/intents"
	"github.com/perlica/perlica/eventlog/store"
	"github.com/perlica/perlica/eventlog/tree"
)

// batchWriter turns batches into commits. Only the writer goroutine uses it.
type batchWriter struct {
	path string
	keys *evidence.Keys           // nil: nothing is signed
	fail func(point string) error // of tests; nil otherwise
	wait time.Duration            // of tests; zero is busyTimeout
	most int                      // of tests; zero is movePages

	book   *intents.Book  // the second place of the intents
	repair intents.Repair // what was found when the book was first written to

	db     *sqlx.DB
	files  *store.Files
	looked time.Time  // when they lay in their places last
	conn   *sqlx.Conn // the one connection of db, taken with the first commit
	pages  int        // about how many were written since they were last moved into the database

	stmts map[string]statement // of conn, by their text

	// What is committed, as far as this writer has seen.
	tree   tree.Range
	last   tlog.Hash // the last leaf
	origin string
	seen   int64 // the version of the file that is; 0: not known

	// What this transaction makes of it.
	next     tree.Range
	nextLast tlog.Hash
	newest   evidence.Checkpoint // to be anchored; its size is zero if there is none
	unsigned error               // why it is not signed

	rows  []*event.Event // frames that wait to be inserted together
	args  []any          // scratch
	named []driver.NamedValue
}

// commit writes the batch in one transaction. An entry that conflicts with the log is
// left out, and the Seq of its events stays zero; any error is final.
func (w *batchWriter) commit(batch []entry) error {
	w.newest = evidence.Checkpoint{}
	for !empty(batch) {
		conflict, err := w.try(batch)
		if conflict < 0 {
			return err
		}
		// Rare: the transaction was rolled back. Write it again without the entry.
		for _, e := range batch {
			for i := range e.events {
				e.events[i].Seq = 0
			}
		}
		batch = slices.Delete(slices.Clone(batch), conflict, conflict+1)
	}
	return nil
}

func empty(batch []entry) bool {
	return !slices.ContainsFunc(batch, func(e entry) bool { return len(e.events) > 0 || e.checkpoint || e.store != nil })
}

// try writes the batch. If it fails because one entry conflicts with what the log
// holds, conflict is that entry's index, else -1.
func (w *batchWriter) try(batch []entry) (conflict int, err error) {
	ctx := context.Background() // a commit is never abandoned half-way
	alone := w.single(batch)
	if alone == nil || time.Since(w.looked) >= placeEvery {
		if err := w.inPlace(); err != nil {
			return -1, &WriteError{Op: "begin", Err: err}
		}
	}
	if err := w.patiently(ctx, func() error { return w.connect(ctx) }); err != nil {
		return -1, &WriteError{Op: "connect", Err: disk.Explain(err)}
	}
	if alone != nil {
		if done, err := w.trySingle(ctx, alone); done || err != nil {
			return -1, err
		}
	}
	if err := w.failpoint("begin"); err != nil {
		return -1, &WriteError{Op: "begin", Err: disk.Explain(err)}
	}
	if err := w.patiently(ctx, func() error { return w.exec(ctx, `BEGIN IMMEDIATE`) }); err != nil {
		return -1, &WriteError{Op: "begin", Err: disk.Explain(err)}
	}
	conflict, err = w.fill(ctx, batch)
	var lines *intents.Entry
	if err == nil {
		lines, conflict, err = w.note(ctx, batch)
	}
	if err == nil {
		err = w.failpoint("commit")
	}
	if err != nil {
		_ = w.exec(ctx, `ROLLBACK`) // SQLite rolls back what is not committed in any case
		lines.End(intents.Undone)
		return conflict, &WriteError{Op: "insert", Err: disk.Explain(err)}
	}
	if err := w.commitBoth(ctx, lines); err != nil {
		lines.End(intents.Undone) // the caller is told, and sends nothing
		return -1, err
	}
	lines.End(intents.Appended)
	w.tree, w.last = w.next, w.nextLast
	w.tree.Nodes = nil
	if w.seen, err = w.version(); err != nil {
		w.seen = 0
	}
	return -1, w.took(weigh(batch))
}

// note writes the intents of the batch to their second place. Where that names one of them already,
// conflict is its entry's index, otherwise -1.
func (w *batchWriter) note(ctx context.Context, batch []entry) (lines *intents.Entry, conflict int, err error) {
	var calls []intents.Call
	var owners []int
	for i := range batch {
		for _, e := range batch[i].events {
			if e.Type.Step() == event.Opens {
				calls, owners = append(calls, intents.Call{Seq: int64(e.Seq), Input: string(e.Input)}), append(owners, i)
			}
		}
	}
	if len(calls) == 0 {
		return nil, -1, nil
	}
	lines, err = w.book.Begin(intents.Log{Name: w.origin, After: func(seq int64) ([]intents.Call, error) {
		return w.committedIntents(ctx, seq)
	}}, calls)
	var taken *intents.TakenError
	if errors.As(err, &taken) {
		return nil, owners[taken.Index], err
	}
	if err != nil {
		return nil, -1, fmt.Errorf("the second place of the intents: %w", err)
	}
	if lines.Repair != (intents.Repair{}) {
		w.repair = lines.Repair
	}
	return lines, -1, nil
}

// committedIntents returns the intents after an event that the transaction found in the log.
func (w *batchWriter) committedIntents(ctx context.Context, seq int64) (calls []intents.Call, err error) {
	err = w.conn.SelectContext(ctx, &calls, `
		SELECT seq, input_id AS input
		FROM events
		WHERE class = 'fact' AND type = 'llm.requested' AND seq > ? AND seq <= ?
		ORDER BY seq`, seq, w.tree.Size)
	return calls, err
}

// commitBoth commits the transaction and syncs the lines of its intents at the same time.
func (w *batchWriter) commitBoth(ctx context.Context, lines *intents.Entry) error {
	synced := make(chan error, 1)
	if lines == nil {
		synced <- nil
	} else {
		go func() { synced <- lines.Sync() }() // ends with this call
	}
	err := w.exec(ctx, `COMMIT`)
	serr := <-synced
	switch {
	case err != nil:
		return w.commitError(err)
	case serr == nil:
		serr = w.failpoint("committed")
	default:
		serr = fmt.Errorf("the second place of the intents: %w", serr)
	}
	if serr != nil {
		return &WriteError{Op: "commit", Unknown: true, Err: serr}
	}
	return nil
}

// weigh returns how many events a batch has, and how many bytes they take.
func weigh(batch []entry) (events, bytes int) {
	for i := range batch {
		for j := range batch[i].events {
			events, bytes = events+1, bytes+weight(&batch[i].events[j])
		}
	}
	return events, bytes
}

// commitError is the error of a commit that SQLite refused. It took back what mayCommit did not
// want.
func (w *batchWriter) commitError(err error) error {
	if touched := w.files.Touched; touched != nil {
		return &WriteError{Op: "commit", Err: touched}
	}
	err = disk.Explain(err)
	return &WriteError{Op: "commit", Unknown: !errors.Is(err, disk.ErrBusy), Err: err}
}

// errUnless says that the log holds what an entry must not follow.
var errUnless = errors.New("the log holds what the events must not follow")

// precluded returns errUnless if the log, and what the transaction has added to it, holds an
// event that q selects.
func (w *batchWriter) precluded(ctx context.Context, q event.Query) error {
	if len(q.Types) == 0 {
		return nil
	}
	condition, args := store.Conditions(q)
	if err := w.flush(ctx); err != nil {
		return err
	}
	var n int
	if err := w.conn.GetContext(ctx, &n, `SELECT count(*) FROM events `+condition, args...); err != nil {
		return err
	}
	if n > 0 {
		return errUnless
	}
	return nil
}

func (w *batchWriter) failpoint(point string) error {
	if w.fail == nil {
		return nil
	}
	return w.fail(point)
}

// placeEvery is how often the writer looks whether the file is in its place, at most, where it adds
// one event to many: that takes a hundredth of a commit, and a tenth of its processor time. Who deletes the file deletes what was
// acknowledged just before, too. An intent is never alone: no prompt leaves behind a lost one.
const placeEvery = time.Millisecond

// inPlace returns an error if the file no longer lies where it was opened. SQLite would go
// on writing to one that was deleted, and what it acknowledged would be gone.
func (w *batchWriter) inPlace() error {
	now := time.Now() // before they are looked at: then one may be moved
	if err := w.files.InPlace(); err != nil {
		return err
	}
	w.looked = now
	return nil
}

// movePages is how many pages are written before they are moved into the database.
const movePages = 1000

// took takes in that n events were committed. Anyone who has touched a file in the meantime may have
// kept them from being found again.
func (w *batchWriter) took(n, bytes int) error {
	if err := w.inPlace(); err != nil {
		return &WriteError{Op: "commit", Unknown: true, Err: err}
	}
	if w.pages += 4 + n/4 + bytes/4096; w.pages < w.limit() {
		return nil
	}
	// What somebody reads is not moved now; the next commit begins a write-ahead log anew that was.
	w.pages = 0
	if err := store.CheckpointWAL(context.Background(), w.conn, pollTimeout, w.files, `PRAGMA wal_checkpoint(PASSIVE)`); err != nil {
		return &WriteError{Op: "commit", Unknown: true, Err: err}
	}
	return nil
}

func (w *batchWriter) limit() int {
	if w.most > 0 {
		return w.most
	}
	return movePages
}

// fill does the work of one transaction, but for its ends.
func (w *batchWriter) fill(ctx context.Context, batch []entry) (conflict int, err error) {
	if err := w.catchUp(ctx); err != nil {
		return -1, err
	}
	w.rows = w.rows[:0]
	for i, e := range batch {
		err := w.add(ctx, e)
		if errors.Is(err, errUnless) || disk.IsConstraint(err) {
			return i, err
		}
		if err != nil {
			return -1, err
		}
	}
	if err := w.flush(ctx); err != nil {
		return -1, err
	}
	for _, n := range w.next.Nodes {
		if err := w.exec(ctx, putNode, int64(n.Level), n.N, n.Hash[:]); err != nil {
			return -1, err
		}
	}
	for _, e := range batch {
		if e.store == nil {
			continue
		}
		if err := w.exec(ctx, putNote, e.store.Size, e.store.Note); err != nil {
			return -1, err
		}
	}
	if slices.ContainsFunc(batch, entry.makesCheckpoint) {
		if err := w.checkpoint(ctx); err != nil {
			return -1, err
		}
	}
	return -1, w.failpoint("insert")
}

// add gives the events of an entry their places and inserts them.
func (w *batchWriter) add(ctx context.Context, e entry) error {
	if err := w.precluded(ctx, e.unless); err != nil {
		return err
	}
	for i := range e.events {
		e := &e.events[i]
		e.Seq = event.Seq(w.next.Size + 1)
		e.LeafHash = e.Leaf()
		w.next.Add(e.LeafHash)
		w.nextLast = e.LeafHash
		if err := w.put(ctx, e); err != nil {
			return err
		}
		if e.Seq == 1 {
			w.origin = store.OriginOf(e.ID)
		}
	}
	return nil
}

// near is how many events of other processes are added to the tree one by one; of more, what is
// stored of the tree is read, which makes an append 2.5 times as long where two processes take turns.
const near = 512

// catchUp brings tree up to what is in the log, to which other processes may have appended,
// and starts next from there.
func (w *batchWriter) catchUp(ctx context.Context) error {
	version, err := w.version()
	if err != nil {
		return err
	}
	if version != w.seen {
		if err := w.look(ctx); err != nil {
			return err
		}
	}
	w.next, w.nextLast = w.tree.Clone(), w.last
	return nil
}

// look reads what others may have appended.
func (w *batchWriter) look(ctx context.Context) error {
	var size int64
	var leaf []byte
	err := w.conn.QueryRowContext(ctx, `SELECT seq, leaf FROM events ORDER BY seq DESC LIMIT 1`).Scan(&size, &leaf)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	if w.tree.Size == 0 {
		// Nothing was seen of it yet. What a log forgot it would let happen once more.
		if n := anchor.Above(size, w.path, w.isForged); n > size {
			return fmt.Errorf("%w: it ends at event %d, and its anchor covers %d", disk.ErrCorrupt, size, n)
		}
	}
	if size == w.tree.Size && (size == 0 || string(leaf) == string(w.last[:])) {
		return nil
	}
	if err := w.reload(store.Hashes{Ctx: ctx, DB: w.conn}, size); err != nil {
		return err
	}
	var first string
	if err := w.conn.GetContext(ctx, &first, `SELECT event_id FROM events WHERE seq = 1`); err != nil {
		return err
	}
	w.origin = store.OriginOf(first)
	return nil
}

// isForged reports whether a known key's signature under a line of the anchor does not hold: then the
// line was damaged, and says nothing about the log. Verify finds it.
func (w *batchWriter) isForged(c evidence.Checkpoint) bool {
	if w.keys == nil || c.Note == "" {
		return false
	}
	_, err := note.Open([]byte(c.Note), note.VerifierList(w.keys.Verifiers(c.Origin)...))
	var invalid *note.InvalidSignatureError
	return errors.As(err, &invalid)
}

// putNode takes the place of a row that somebody else put there: it follows from the events.
const putNode = `INSERT OR REPLACE INTO nodes (level, n, hash) VALUES (?, ?, ?)`

// reload reads the tree of size events, in which what this writer saw must still be.
func (w *batchWriter) reload(h store.Hashes, size int64) error {
	if err := w.holds(h); err != nil {
		return err
	}
	if more := size - w.tree.Size; w.tree.Size > 0 && more <= near {
		list, err := h.Stored(0, w.tree.Size, more)
		if err != nil {
			return err
		}
		for _, leaf := range list {
			w.tree.Add(leaf)
			w.last = leaf
		}
		w.tree.Nodes = nil // they are stored
		return nil
	}
	tree, err := h.Frontier(size)
	if err != nil {
		return err
	}
	list, err := h.Stored(0, size-1, 1)
	if err != nil {
		return err
	}
	w.tree, w.last = tree, list[0]
	return nil
}

// holds returns an error unless the last event that this writer saw committed is still there.
func (w *batchWriter) holds(h store.Hashes) error {
	if w.tree.Size == 0 {
		return nil
	}
	list, err := h.Stored(0, w.tree.Size-1, 1)
	if err == nil && list[0] != w.last {
		err = fmt.Errorf("%w: event %d is another one than was written", disk.ErrCorrupt, w.tree.Size)
	}
	return err
}
