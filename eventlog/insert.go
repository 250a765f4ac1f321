package eventlog

import (
	"context"
	"database/sql/driver"

	"modernc.org/sqlite"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/store"
)

// together and few are how many frames are inserted by one statement. It pays for opening the table
// and its indexes once, not once a row: by one row a statement a batch of 100 takes 1.5 times the
// processor time, and without few a batch of 10 takes 1.12 times that.
const (
	together = 16
	few      = 4
)

// Frames that differ in seven columns only are inserted by these. The others are given once:
// to hand a text to SQLite costs as much as what SQLite does with it.
const (
	insertFew      = `INSERT INTO events (` + store.Columns + `) VALUES ` + alikeMarks + another + another + another
	insertTogether = insertFew + another4 + another4 + another4

	// By rows with all values a batch of 100 takes 1.5 times the processor time, one of 10 1.23 times.
	alikeMarks = `(?, ?, ?, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?, ?, ?, ?)`
	another    = `, ` + alikeMarks
	another4   = another + another + another + another
)

// alike reports whether one statement can insert the two. Writer and context are the log's.
func alike(a, b *event.Event) bool { return a.Type == b.Type && a.Actor == b.Actor && a.Refs == b.Refs }

// put inserts an event. Frames wait for others that are alike; a fact is inserted alone,
// behind all that came before it, so that a conflict is its own.
func (w *batchWriter) put(ctx context.Context, e *event.Event) error {
	if len(w.rows) > 0 && (e.Class != event.Frame || !alike(w.rows[0], e)) {
		if err := w.flush(ctx); err != nil {
			return err
		}
	}
	if e.Class == event.Frame {
		if w.rows = append(w.rows, e); len(w.rows) < together {
			return nil
		}
		err := w.insert(ctx, insertTogether, w.rows...)
		w.rows = w.rows[:0]
		return err
	}
	if err := w.insert(ctx, store.InsertOne, e); err != nil {
		return err
	}
	switch e.Type.Step() {
	case event.Opens:
		return w.exec(ctx, `INSERT INTO open_runs (run_id, seq) VALUES (?, ?)`, string(e.Run), int64(e.Seq))
	case event.Ends:
		return w.exec(ctx, `DELETE FROM open_runs WHERE run_id = ?`, string(e.Run))
	}
	return nil
}

// flush inserts the frames that wait.
func (w *batchWriter) flush(ctx context.Context) error {
	rows := w.rows
	w.rows = w.rows[:0]
	for len(rows) > 0 {
		n, text := 1, store.InsertOne
		if len(rows) >= few {
			n, text = few, insertFew
		}
		if err := w.insert(ctx, text, rows[:n]...); err != nil {
			return err
		}
		rows = rows[n:]
	}
	return nil
}

// insert inserts as many events as the statement has rows.
func (w *batchWriter) insert(ctx context.Context, text string, rows ...*event.Event) error {
	w.args = store.AppendArgs(w.args[:0], rows[0])
	for _, e := range rows[1:] {
		w.args = append(w.args, int64(e.Seq), e.ID, e.Time.UnixNano(), e.PayloadLen, e.PayloadSHA256[:], e.LeafHash[:], store.Stored(e))
	}
	return w.exec(ctx, text, w.args...)
}

// exec runs a statement, which is prepared the first time, on the writer's connection. The
// arguments must be of the driver's types: it goes past database/sql, which would convert and
// copy each of them once more and make a batch of 10 take a fifth more processor time.
func (w *batchWriter) exec(ctx context.Context, text string, args ...any) error {
	w.named = w.named[:0]
	for i, a := range args {
		w.named = append(w.named, driver.NamedValue{Ordinal: i + 1, Value: a})
	}
	return w.conn.Raw(func(conn any) error {
		stmt, ok := w.stmts[text]
		if !ok {
			s, err := conn.(driver.ConnPrepareContext).PrepareContext(ctx, text)
			if err != nil {
				return err
			}
			stmt = s.(statement)
			w.stmts[text] = stmt
		}
		_, err := stmt.ExecContext(ctx, w.named)
		return err
	})
}

// A statement is one that the driver prepared.
type statement interface {
	driver.Stmt
	driver.StmtExecContext
}

// version returns a number that changes with every transaction of anybody that changes the
// file, as far as the connection has seen them. It is never 0. Asking the driver for it is
// a tenth of what asking the database for its last event is, which a batch of 10 takes a fifth of its
// processor time for.
func (w *batchWriter) version() (int64, error) {
	var v uint32
	err := w.conn.Raw(func(conn any) (err error) {
		v, err = conn.(sqlite.FileControl).FileControlDataVersion("main")
		return err
	})
	return int64(v) + 1, err
}
