package eventlog

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/jmoiron/sqlx"
)

// batchWriter turns batches into commits. Only the writer goroutine uses it.
type batchWriter struct {
	db   *sqlx.DB
	path string
	file os.FileInfo // what lay at path when it was opened

	// Prepared when first needed.
	insert, insertMany, readTree, saveTree, openRun, endRun *sqlx.Stmt

	rows []*Event // frames that wait to be inserted together
	args []any    // scratch
}

// together is how many frames are inserted by one statement. It pays for opening the
// table and its indexes once, not once a row.
const together = 16

// columns are the columns of events, in the order of appendArgs.
const columns = `seq, event_id, ts, type, class, actor, writer, context_id,
	session_id, conversation_id, run_id, trace_id, interaction_id, input_id,
	payload_len, payload_sha256, leaf, payload`

const rowMarks = `(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`

// commit writes the batch in one transaction. An entry that conflicts with the log is
// left out, and the Seq of its events stays zero; any error is final.
func (w *batchWriter) commit(batch []entry) error {
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
	return !slices.ContainsFunc(batch, func(e entry) bool { return len(e.events) > 0 })
}

// try writes the batch. If it fails because one entry conflicts with what the log
// holds, conflict is that entry's index, else -1.
func (w *batchWriter) try(batch []entry) (conflict int, err error) {
	ctx := context.Background() // a commit is never abandoned half-way
	if err := w.inPlace(); err != nil {
		return -1, &WriteError{Op: "begin", Err: err}
	}
	if err := w.prepare(ctx, batch); err != nil {
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

// inPlace returns an error if the file no longer lies where it was opened. SQLite would go
// on writing to one that was deleted, and what it acknowledged would be gone.
func (w *batchWriter) inPlace() error {
	there, err := os.Stat(w.path)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrMoved, err)
	}
	if !os.SameFile(there, w.file) {
		return fmt.Errorf("%w: another file lies at %s", ErrMoved, w.path)
	}
	return nil
}

// prepare prepares the statements: those of every batch at once, insertMany when there are
// enough frames for it.
func (w *batchWriter) prepare(ctx context.Context, batch []entry) error {
	const insert = `INSERT INTO events (` + columns + `) VALUES `
	statements := []struct {
		stmt **sqlx.Stmt
		sql  string
	}{
		{&w.readTree, `SELECT size, frontier FROM tree WHERE id = 1`},
		{&w.saveTree, `UPDATE tree SET size = ?, frontier = ? WHERE id = 1`},
		{&w.openRun, `INSERT INTO open_runs (run_id, seq) VALUES (?, ?)`},
		{&w.endRun, `DELETE FROM open_runs WHERE run_id = ?`},
		{&w.insert, insert + rowMarks},
	}
	if len(batch) >= together {
		statements = append(statements, struct {
			stmt **sqlx.Stmt
			sql  string
		}{&w.insertMany, insert + strings.Repeat(rowMarks+", ", together-1) + rowMarks})
	}
	for _, s := range statements {
		if *s.stmt != nil {
			continue
		}
		stmt, err := w.db.PreparexContext(ctx, s.sql)
		if err != nil {
			return err
		}
		*s.stmt = stmt
	}
	return nil
}

// fill does the work of one transaction. The tree is read inside it: another process
// may have appended since.
func (w *batchWriter) fill(ctx context.Context, tx *sqlx.Tx, batch []entry) (conflict int, err error) {
	tree, err := w.tree(ctx, tx)
	if err != nil {
		return -1, err
	}
	w.rows = w.rows[:0]
	for i := range batch {
		for j := range batch[i].events {
			e := &batch[i].events[j]
			e.Seq = Seq(tree.size + 1)
			e.LeafHash = e.Leaf()
			tree.add(e.LeafHash)
			if err := w.put(ctx, tx, e); err != nil {
				if isConstraint(err) {
					return i, err
				}
				return -1, err
			}
		}
	}
	if err := w.flush(ctx, tx); err != nil {
		return -1, err
	}
	_, err = tx.StmtxContext(ctx, w.saveTree).ExecContext(ctx, tree.size, tree.bytes())
	return -1, err
}

func (w *batchWriter) tree(ctx context.Context, tx *sqlx.Tx) (frontier, error) {
	var size int64
	var roots []byte
	if err := tx.StmtxContext(ctx, w.readTree).QueryRowxContext(ctx).Scan(&size, &roots); err != nil {
		return frontier{}, err
	}
	tree, err := parseFrontier(size, roots)
	if err != nil {
		return frontier{}, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	return tree, nil
}

// put inserts an event. Frames wait for company; a fact is inserted alone, behind all
// that came before it, so that a conflict is its own.
func (w *batchWriter) put(ctx context.Context, tx *sqlx.Tx, e *Event) error {
	if e.Class == Frame && w.insertMany != nil {
		if w.rows = append(w.rows, e); len(w.rows) < together {
			return nil
		}
		err := w.insertRows(ctx, tx, w.insertMany, w.rows)
		w.rows = w.rows[:0]
		return err
	}
	if err := w.flush(ctx, tx); err != nil {
		return err
	}
	if err := w.insertRows(ctx, tx, w.insert, []*Event{e}); err != nil {
		return err
	}
	var err error
	switch {
	case e.Type == Requested:
		_, err = tx.StmtxContext(ctx, w.openRun).ExecContext(ctx, string(e.Run), int64(e.Seq))
	case e.Type.Outcome():
		_, err = tx.StmtxContext(ctx, w.endRun).ExecContext(ctx, string(e.Run))
	}
	return err
}

// flush inserts the frames that wait.
func (w *batchWriter) flush(ctx context.Context, tx *sqlx.Tx) error {
	for _, e := range w.rows {
		if err := w.insertRows(ctx, tx, w.insert, []*Event{e}); err != nil {
			return err
		}
	}
	w.rows = w.rows[:0]
	return nil
}

func (w *batchWriter) insertRows(ctx context.Context, tx *sqlx.Tx, stmt *sqlx.Stmt, rows []*Event) error {
	w.args = w.args[:0]
	for _, e := range rows {
		w.args = appendArgs(w.args, e)
	}
	_, err := tx.StmtxContext(ctx, stmt).ExecContext(ctx, w.args...)
	return err
}

func appendArgs(args []any, e *Event) []any {
	payload := e.Payload
	if payload == nil {
		payload = []byte{} // NULL would mean withheld
	}
	return append(args, int64(e.Seq), e.ID, e.Time.UnixNano(), string(e.Type), string(e.Class),
		e.Actor, e.Writer, e.Context,
		string(e.Session), string(e.Conversation), string(e.Run), string(e.Trace), string(e.Interaction), string(e.Input),
		e.PayloadLen, e.PayloadSHA256[:], e.LeafHash[:], payload)
}
