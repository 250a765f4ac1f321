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

// batchWriter writes batches to the file. Log.commitMu guards it.
type batchWriter struct {
	path string
	keys *evidence.Keys           // nil signs nothing
	fail func(point string) error // set by tests
	wait time.Duration            // set by tests; zero means store.BusyTimeout
	most int                      // set by tests; zero means movePages

	book *intents.Book // the second place of the intents
	// repair describes the repair that the first write to book made.
	repair intents.Repair

	db    *sqlx.DB
	files *store.Files
	// checked is the time at which files were last found in their places.
	checked time.Time
	// conn is the one connection of db. The first commit takes it.
	conn *sqlx.Conn
	// pages is about the number of pages written since the last move into the database.
	pages int

	// stmts are the prepared statements of conn, by their text.
	stmts map[string]statement

	// The fields below describe the committed events that this writer has seen.
	tree   tree.Range
	last   tlog.Hash // the last leaf
	origin string
	// seen is the data version of the file at that time. 0 means unknown.
	seen int64

	// The fields below describe the state after the current transaction.
	next     tree.Range
	nextLast tlog.Hash
	// newest is the checkpoint to be anchored. Its Size is zero if there is no such checkpoint.
	newest evidence.Checkpoint
	// unsigned says why newest is not signed.
	unsigned error

	// rows are frames that wait for a common insert.
	rows  []*event.Event
	args  []any // scratch
	named []driver.NamedValue
}

// writeBatch writes the batch in one transaction. It leaves out an entry that conflicts with the
// log, and the Seq of that entry's events stays zero. Any error is final.
func (w *batchWriter) writeBatch(batch []entry) error {
	w.newest = evidence.Checkpoint{}
	for !empty(batch) {
		conflict, err := w.tryBatch(batch)
		if conflict < 0 {
			return err
		}
		// Rare: the transaction was rolled back. Write the batch again without the entry.
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

// tryBatch writes the batch. If an entry conflicts with the log, conflict is its index, otherwise
// -1.
func (w *batchWriter) tryBatch(batch []entry) (conflict int, err error) {
	ctx := context.Background() // a commit always runs to its end
	alone := w.singleEvent(batch)
	if alone == nil || time.Since(w.checked) >= placeEvery {
		if err := w.checkInPlace(); err != nil {
			return -1, &WriteError{Op: "begin", Err: err}
		}
	}
	if err := w.retryWhileBusy(ctx, func() error { return w.takeConn(ctx) }); err != nil {
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
	if err := w.retryWhileBusy(ctx, func() error { return w.execStatement(ctx, `BEGIN IMMEDIATE`) }); err != nil {
		return -1, &WriteError{Op: "begin", Err: disk.Explain(err)}
	}
	conflict, err = w.fillTransaction(ctx, batch)
	var lines *intents.Entry
	if err == nil {
		lines, conflict, err = w.noteIntents(ctx, batch)
	}
	if err == nil {
		err = w.failpoint("commit")
	}
	if err != nil {
		_ = w.execStatement(ctx, `ROLLBACK`) // SQLite rolls back uncommitted changes in any case
		lines.End(intents.Undone)
		return conflict, &WriteError{Op: "insert", Err: disk.Explain(err)}
	}
	if err := w.commitBoth(ctx, lines); err != nil {
		lines.End(intents.Undone) // the caller gets the error and sends nothing
		return -1, err
	}
	lines.End(intents.Appended)
	w.tree, w.last = w.next, w.nextLast
	w.tree.Nodes = nil
	if w.seen, err = w.dataVersion(); err != nil {
		w.seen = 0
	}
	return -1, w.finishCommit(weigh(batch))
}

// noteIntents writes the intents of the batch to their second place. If the second place already
// has one of them, conflict is the index of its entry, otherwise -1.
func (w *batchWriter) noteIntents(ctx context.Context, batch []entry) (lines *intents.Entry, conflict int, err error) {
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

// committedIntents returns the committed intents after seq. It leaves out those of this
// transaction.
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
	err := w.execStatement(ctx, `COMMIT`)
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

// commitError returns the error of a commit that SQLite refused. If mayCommit refused it, nothing
// was written.
func (w *batchWriter) commitError(err error) error {
	if touched := w.files.Touched; touched != nil {
		return &WriteError{Op: "commit", Err: touched}
	}
	err = disk.Explain(err)
	return &WriteError{Op: "commit", Unknown: !errors.Is(err, disk.ErrBusy), Err: err}
}

// errUnless says that the log has an event that the entry must not follow.
var errUnless = errors.New("the log holds what the events must not follow")

// checkUnless returns errUnless if the log or this transaction has an event that q selects.
func (w *batchWriter) checkUnless(ctx context.Context, q event.Query) error {
	if len(q.Types) == 0 {
		return nil
	}
	condition, args := store.Conditions(q)
	if err := w.flushFrames(ctx); err != nil {
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

// placeEvery limits the checks of the file's place while single events are appended. Each check
// costs processor time. Deleting the file also loses events acknowledged within the last
// millisecond. Commits with an intent always check, so no prompt leaves for a lost intent.
const placeEvery = time.Millisecond

// checkInPlace returns an error if the file no longer lies where it was opened. SQLite would
// continue to write to a deleted file, and the acknowledged events would be lost.
func (w *batchWriter) checkInPlace() error {
	now := time.Now() // Take the time before the check: the file may be moved after it.
	if err := w.files.InPlace(); err != nil {
		return err
	}
	w.checked = now
	return nil
}

// movePages is the number of written pages after which they are moved into the database.
const movePages = 1000

// finishCommit checks the files after a commit of n events. A change of a file since the last check
// may have lost the commit. It also moves pages into the database when enough were written.
func (w *batchWriter) finishCommit(n, bytes int) error {
	if err := w.checkInPlace(); err != nil {
		return &WriteError{Op: "commit", Unknown: true, Err: err}
	}
	if w.pages += 4 + n/4 + bytes/4096; w.pages < w.pageLimit() {
		return nil
	}
	// Pages that a reader still needs are not moved now. After all pages were moved, the next
	// commit starts the write-ahead log from its beginning.
	w.pages = 0
	if err := store.CheckpointWAL(context.Background(), w.conn, pollTimeout, w.files,
		`PRAGMA wal_checkpoint(PASSIVE)`); err != nil {
		return &WriteError{Op: "commit", Unknown: true, Err: err}
	}
	return nil
}

func (w *batchWriter) pageLimit() int {
	if w.most > 0 {
		return w.most
	}
	return movePages
}

// fillTransaction writes the entries, nodes and notes of one transaction. tryBatch begins and ends
// it.
func (w *batchWriter) fillTransaction(ctx context.Context, batch []entry) (conflict int, err error) {
	if err := w.catchUp(ctx); err != nil {
		return -1, err
	}
	w.rows = w.rows[:0]
	for i, e := range batch {
		err := w.addEntry(ctx, e)
		if errors.Is(err, errUnless) || disk.IsConstraint(err) {
			return i, err
		}
		if err != nil {
			return -1, err
		}
	}
	if err := w.flushFrames(ctx); err != nil {
		return -1, err
	}
	for _, n := range w.next.Nodes {
		if err := w.execStatement(ctx, putNode, int64(n.Level), n.N, n.Hash[:]); err != nil {
			return -1, err
		}
	}
	for _, e := range batch {
		if e.store == nil {
			continue
		}
		if err := w.execStatement(ctx, putNote, e.store.Size, e.store.Note); err != nil {
			return -1, err
		}
	}
	if slices.ContainsFunc(batch, func(e entry) bool { return e.checkpoint }) {
		if err := w.makeCheckpoint(ctx); err != nil {
			return -1, err
		}
	}
	return -1, w.failpoint("insert")
}

// addEntry gives the events of an entry their places and inserts them.
func (w *batchWriter) addEntry(ctx context.Context, e entry) error {
	if err := w.checkUnless(ctx, e.unless); err != nil {
		return err
	}
	for i := range e.events {
		e := &e.events[i]
		e.Seq = event.Seq(w.next.Size + 1)
		e.LeafHash = e.Leaf()
		w.next.Add(e.LeafHash)
		w.nextLast = e.LeafHash
		if err := w.insertEvent(ctx, e); err != nil {
			return err
		}
		if e.Seq == 1 {
			w.origin = store.OriginOf(e.ID)
		}
	}
	return nil
}

// maxCatchUp is the number of foreign events up to which their leaves are added one by one. For
// more events, reading the stored nodes is faster. For a few events it is slower, which two
// processes that append by turns would feel.
const maxCatchUp = 512

// catchUp updates tree with the events of other processes and starts next from it.
func (w *batchWriter) catchUp(ctx context.Context) error {
	version, err := w.dataVersion()
	if err != nil {
		return err
	}
	if version != w.seen {
		if err := w.readForeignEvents(ctx); err != nil {
			return err
		}
	}
	w.next, w.nextLast = w.tree.Clone(), w.last
	return nil
}

// readForeignEvents reads the events that other processes may have appended.
func (w *batchWriter) readForeignEvents(ctx context.Context) error {
	var size int64
	var leaf []byte
	err := w.conn.QueryRowContext(ctx, `SELECT seq, leaf FROM events ORDER BY seq DESC LIMIT 1`).Scan(&size, &leaf)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	if w.tree.Size == 0 {
		// This is the first look at the log. If the log lost its tail, it would permit the lost
		// calls again.
		if n := anchor.Above(size, w.path, w.isForged); n > size {
			return fmt.Errorf("%w: it ends at event %d, and its anchor covers %d", disk.ErrCorrupt, size, n)
		}
	}
	if size == w.tree.Size && (size == 0 || string(leaf) == string(w.last[:])) {
		return nil
	}
	if err := w.reloadTree(store.Hashes{Ctx: ctx, DB: w.conn}, size); err != nil {
		return err
	}
	var first string
	if err := w.conn.GetContext(ctx, &first, `SELECT event_id FROM events WHERE seq = 1`); err != nil {
		return err
	}
	w.origin = store.OriginOf(first)
	return nil
}

// isForged reports whether the signature of a known key under a line of the anchor is invalid. Such
// a line was damaged and says nothing about the log. Verify finds it.
func (w *batchWriter) isForged(c evidence.Checkpoint) bool {
	if w.keys == nil || c.Note == "" {
		return false
	}
	_, err := note.Open([]byte(c.Note), note.VerifierList(w.keys.Verifiers(c.Origin)...))
	var invalid *note.InvalidSignatureError
	return errors.As(err, &invalid)
}

// putNode replaces an existing row, which another program may have put there. The correct hash
// follows from the events.
const putNode = `INSERT OR REPLACE INTO nodes (level, n, hash) VALUES (?, ?, ?)`

// reloadTree reads the tree of size events and checks that it still has the last known event.
func (w *batchWriter) reloadTree(h store.Hashes, size int64) error {
	if err := w.checkLastLeaf(h); err != nil {
		return err
	}
	if more := size - w.tree.Size; w.tree.Size > 0 && more <= maxCatchUp {
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

// checkLastLeaf returns an error if the last event that this writer saw was changed or removed.
func (w *batchWriter) checkLastLeaf(h store.Hashes) error {
	if w.tree.Size == 0 {
		return nil
	}
	list, err := h.Stored(0, w.tree.Size-1, 1)
	if err == nil && list[0] != w.last {
		err = fmt.Errorf("%w: event %d is not the event that was written", disk.ErrCorrupt, w.tree.Size)
	}
	return err
}
