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

// batchWriter writes batches of entries to the log's file. Log.commitMu guards it.
type batchWriter struct {
	path string
	keys *evidence.Keys           // nil means that checkpoints are not signed
	fail func(point string) error // set by tests
	wait time.Duration            // set by tests; zero means store.BusyTimeout
	most int                      // most is set by tests to move pages earlier. Zero means movePages.

	book *intents.Book // the .intents file, which also names each called input
	// repair counts the differences between the .intents file and the log that the first write to book found.
	// TakeRepair returns it.
	repair intents.Repair

	db    *sqlx.DB
	files *store.Files
	// checked is the last time at which every file was still at its path.
	checked time.Time
	// conn is the one connection of db. The first commit takes it.
	conn *sqlx.Conn
	// pages is an estimate: the number of pages in the write-ahead log that were not yet moved into the database.
	pages int

	// stmts are the prepared statements of conn, by their text.
	stmts map[string]statement

	// The next fields describe the committed events that this writer has seen.
	tree   tree.Range
	last   tlog.Hash // the last leaf
	origin string
	// seen is the result of dataVersion after the last of these events. If the file has another version now, another
	// process has changed it. 0 means unknown.
	seen int64

	// The next fields describe the log after the current transaction.
	next     tree.Range
	nextLast tlog.Hash
	// newest is the checkpoint to append to the anchor. If there is no such checkpoint, its Size is zero.
	newest evidence.Checkpoint
	// unsigned is the reason why newest has no signature.
	unsigned error

	names store.Names
	// rows are frames that one statement will insert together.
	rows  []*event.Event
	args  []any // reused by insertRows
	named []driver.NamedValue
}

// writeBatch writes the batch in one transaction. If an entry conflicts with the log, writeBatch leaves that entry
// out, and the Seq of the entry's events is zero. Any error is final.
func (w *batchWriter) writeBatch(batch []entry) error {
	w.newest = evidence.Checkpoint{}
	for !empty(batch) {
		conflict, err := w.tryBatch(batch)
		if conflict < 0 {
			return err
		}
		// This happens rarely. The transaction was rolled back, so write the batch again without the conflicting
		// entry.
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

// tryBatch writes the batch. conflict is the index of an entry that conflicts with the log, or -1.
func (w *batchWriter) tryBatch(batch []entry) (conflict int, err error) {
	ctx := context.Background() // A commit always runs to its end.
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
		_ = w.execStatement(ctx, `ROLLBACK`) // an error does not matter: SQLite rolls back anyway
		w.names.End(false)
		lines.End(intents.Undone)
		return conflict, &WriteError{Op: "insert", Err: disk.Explain(err)}
	}
	if err := w.commitBoth(ctx, lines); err != nil {
		w.names.End(false)
		lines.End(intents.Undone) // The caller gets the error, so it sends no prompt.
		return -1, err
	}
	w.names.End(true)
	lines.End(intents.Appended)
	w.tree, w.last = w.next, w.nextLast
	w.tree.Nodes = nil
	if w.seen, err = w.dataVersion(); err != nil {
		w.seen = 0
	}
	return -1, w.finishCommit(weigh(batch))
}

// noteIntents writes a line for each intent of the batch, an event llm.requested, to the .intents file. If that file
// already names an input of the batch, conflict is the index of the input's entry. Otherwise conflict is -1.
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
		return nil, -1, fmt.Errorf("the .intents file: %w", err)
	}
	if lines.Repair != (intents.Repair{}) {
		w.repair = lines.Repair
	}
	return lines, -1, nil
}

// committedIntents returns the committed intents with a number above seq. It does not return the intents of the
// current transaction.
func (w *batchWriter) committedIntents(ctx context.Context, seq int64) (calls []intents.Call, err error) {
	err = w.conn.SelectContext(ctx, &calls, `
		SELECT seq, `+store.NameOf("input_id")+` AS input
		FROM entries
		WHERE `+store.IsIntent+` AND seq > ? AND seq <= ?
		ORDER BY seq`, seq, w.tree.Size)
	return calls, err
}

// commitBoth commits the transaction. At the same time it syncs the lines that noteIntents wrote to the .intents file.
func (w *batchWriter) commitBoth(ctx context.Context, lines *intents.Entry) error {
	synced := make(chan error, 1)
	if lines == nil {
		synced <- nil
	} else {
		go func() { synced <- lines.Sync() }() // commitBoth waits for the result
	}
	err := w.execStatement(ctx, `COMMIT`)
	serr := <-synced
	switch {
	case err != nil:
		return w.commitError(err)
	case serr == nil:
		serr = w.failpoint("committed")
	default:
		serr = fmt.Errorf("the .intents file: %w", serr)
	}
	if serr != nil {
		return &WriteError{Op: "commit", Unknown: true, Err: serr}
	}
	return nil
}

// commitError returns the error of a failed commit. If the hook mayCommit refused the commit, nothing was written.
func (w *batchWriter) commitError(err error) error {
	if touched := w.files.Touched; touched != nil {
		return &WriteError{Op: "commit", Err: touched}
	}
	err = disk.Explain(err)
	return &WriteError{Op: "commit", Unknown: !errors.Is(err, disk.ErrBusy), Err: err}
}

// errUnless says that the log already has an event that the query of AppendUnless selects.
var errUnless = errors.New("the log holds what the events must not follow")

// checkUnless returns errUnless if q selects an event of the log or of the current transaction.
func (w *batchWriter) checkUnless(ctx context.Context, q event.Query) error {
	if len(q.Types) == 0 {
		return nil
	}
	condition, args := store.Conditions(q)
	if err := w.flushFrames(ctx); err != nil {
		return err
	}
	row, err := w.firstRow(ctx, `SELECT 1 FROM entries `+condition+` LIMIT 1`, args...)
	if err == nil && row != nil {
		err = errUnless
	}
	return err
}

func (w *batchWriter) failpoint(point string) error {
	if w.fail == nil {
		return nil
	}
	return w.fail(point)
}

// placeEvery is the minimum time between two checks that the file is still at its path. Each check costs processor
// time, so not every append of a single event makes one. If the file is deleted, events acknowledged within this time
// are lost. A commit with an intent always checks, so no prompt leaves without its intent in the log.
const placeEvery = time.Millisecond

// checkInPlace returns an error if the file is no longer at the path at which it was opened. SQLite would continue to
// write to a deleted file, and the acknowledged events would be lost.
func (w *batchWriter) checkInPlace() error {
	now := time.Now() // Read the clock before the check, because the file may be moved after it.
	if err := w.files.InPlace(); err != nil {
		return err
	}
	w.checked = now
	return nil
}

// movePages is the number of pages in the write-ahead log after which finishCommit moves them into the database.
const movePages = 1000

// finishCommit checks the files after a commit of n events with the given bytes. If a file was changed since the last
// check, the commit may be lost. finishCommit also moves pages into the database when there are enough.
func (w *batchWriter) finishCommit(n, bytes int) error {
	if err := w.checkInPlace(); err != nil {
		return &WriteError{Op: "commit", Unknown: true, Err: err}
	}
	if w.pages += 4 + n/4 + bytes/4096; w.pages < w.pageLimit() {
		return nil
	}
	// Count from 0 again, although pages that a reader still needs are not moved now. The next move includes them. When
	// all pages have been moved, the next commit starts the write-ahead log from its beginning.
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

// fillTransaction writes the entries, nodes and notes of one transaction. tryBatch begins and ends the transaction.
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

// addEntry numbers the events of an entry and inserts them.
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

// maxCatchUp is the maximum number of new events of other processes that catchUp adds to the tree leaf by leaf. With
// more new events, reading the stored nodes is faster. With a few it is slower, and two processes that append in turns
// would become slow.
const maxCatchUp = 512

// catchUp adds the events of other processes to tree and copies tree to next.
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
	err := w.conn.QueryRowContext(ctx, `SELECT seq, leaf FROM entries ORDER BY seq DESC LIMIT 1`).Scan(&size, &leaf)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	if w.tree.Size == 0 {
		// The writer reads this log for the first time. The anchor shows whether the log has lost its last events.
		// Refuse such a log, because it would permit the lost calls a second time.
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
	var first []byte
	if err := w.conn.GetContext(ctx, &first, `SELECT event_id FROM entries WHERE seq = 1`); err != nil {
		return err
	}
	w.origin, err = store.OriginOfBytes(first)
	return err
}

// isForged reports whether an anchor line has an invalid signature in the name of a known key. Such a line is damaged
// and says nothing about the log. Verify reports the damage.
func (w *batchWriter) isForged(c evidence.Checkpoint) bool {
	if w.keys == nil || c.Note == "" {
		return false
	}
	_, err := note.Open([]byte(c.Note), note.VerifierList(w.keys.Verifiers(c.Origin)...))
	var invalid *note.InvalidSignatureError
	return errors.As(err, &invalid)
}

// putNode stores a node. It replaces an existing row, because another program may have written that row. The correct
// hash follows from the events.
const putNode = `INSERT OR REPLACE INTO nodes (level, n, hash) VALUES (?, ?, ?)`

// reloadTree reads the tree of the first size events and checks that the last known event is unchanged.
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
		w.tree.Nodes = nil // Do not store these nodes, because the log already has them.
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
