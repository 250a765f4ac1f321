package eventlog

import (
	"context"
	"database/sql/driver"
	"errors"
	"io"

	"modernc.org/sqlite"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/store"
)

// manyRows and fewRows are the numbers of frames that one statement inserts. A statement opens the table and its
// indexes only once, however many rows it inserts. fewRows is for small batches. BenchmarkStream shows the
// difference.
const (
	manyRows = 16
	fewRows  = 4
)

// These statements insert frames that differ in only seven columns. The values of the other columns are bound once.
const (
	insertFew      = `INSERT INTO entries (` + store.Columns + `) VALUES ` + alikeMarks + another + another + another
	insertTogether = insertFew + another4 + another4 + another4

	// alikeMarks has the placeholders of each row after the first one. The numbered placeholders repeat the values of
	// the first row.
	alikeMarks = `(?, ?, ?, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?, ?, ?, ?)`
	another    = `, ` + alikeMarks
	another4   = another + another + another + another
)

// alike reports whether one statement can insert the two events. It does not compare the writer and the context,
// because all events of a Log have the same ones.
func alike(a, b *event.Event) bool { return a.Type == b.Type && a.Actor == b.Actor && a.Refs == b.Refs }

// insertEvent inserts an event. A frame waits, so that one statement can insert it together with similar frames. A
// fact is inserted alone, after all earlier events. A conflict therefore belongs to that fact.
func (w *batchWriter) insertEvent(ctx context.Context, e *event.Event) error {
	if err := w.names.Add(e, func(name string) (int64, error) { return w.findName(ctx, name) }); err != nil {
		return err
	}
	if len(w.rows) > 0 && (e.Class != event.Frame || !alike(w.rows[0], e)) {
		if err := w.flushFrames(ctx); err != nil {
			return err
		}
	}
	if e.Class == event.Frame {
		if w.rows = append(w.rows, e); len(w.rows) < manyRows {
			return nil
		}
		err := w.insertRows(ctx, insertTogether, w.rows...)
		w.rows = w.rows[:0]
		return err
	}
	if err := w.insertRows(ctx, store.InsertOne, e); err != nil {
		return err
	}
	switch e.Type.Step() {
	case event.Opens:
		return w.execStatement(ctx, `INSERT INTO open_runs (run_id, seq) VALUES (?, ?)`, string(e.Run), int64(e.Seq))
	case event.Ends:
		return w.execStatement(ctx, `DELETE FROM open_runs WHERE run_id = ?`, string(e.Run))
	}
	return nil
}

// flushFrames inserts the waiting frames.
func (w *batchWriter) flushFrames(ctx context.Context) error {
	rows := w.rows
	w.rows = w.rows[:0]
	for len(rows) > 0 {
		n, text := 1, store.InsertOne
		if len(rows) >= fewRows {
			n, text = fewRows, insertFew
		}
		if err := w.insertRows(ctx, text, rows[:n]...); err != nil {
			return err
		}
		rows = rows[n:]
	}
	return nil
}

// insertRows inserts the events with the SQL statement in the parameter "text". The statement must have placeholders
// for exactly this number of rows.
func (w *batchWriter) insertRows(ctx context.Context, text string, rows ...*event.Event) error {
	w.args = w.names.AppendArgs(w.args[:0], rows[0])
	for _, e := range rows[1:] {
		w.args = append(w.args, int64(e.Seq), store.IDBytes(e.ID), e.Time.UnixNano(), e.PayloadLen, e.PayloadSHA256[:],
			e.LeafHash[:], store.Stored(e))
	}
	return w.execStatement(ctx, text, w.args...)
}

// execStatement executes a statement on the writer's connection. The first call prepares the statement. The arguments
// must already have types of the driver, such as int64 and string. database/sql could convert other types, but it
// copies each argument, which makes small batches slower.
func (w *batchWriter) execStatement(ctx context.Context, text string, args ...any) error {
	_, err := w.execResult(ctx, text, args...)
	return err
}

// execResult is execStatement with the driver's result.
func (w *batchWriter) execResult(ctx context.Context, text string, args ...any) (result driver.Result, err error) {
	err = w.withStatement(ctx, text, args, func(s statement) error {
		result, err = s.ExecContext(ctx, w.named)
		return err
	})
	return result, err
}

// firstRow returns the first row of a query. It returns nil if the query has no row. Its arguments are like those of
// execStatement.
func (w *batchWriter) firstRow(ctx context.Context, text string, args ...any) (row []driver.Value, err error) {
	err = w.withStatement(ctx, text, args, func(s statement) error {
		rows, err := s.QueryContext(ctx, w.named)
		if err != nil {
			return err
		}
		row = make([]driver.Value, len(rows.Columns()))
		if err = rows.Next(row); errors.Is(err, io.EOF) {
			row, err = nil, nil
		}
		return errors.Join(err, rows.Close())
	})
	return row, err
}

// withStatement calls f with the prepared statement of a text. Before that it puts the arguments into w.named.
func (w *batchWriter) withStatement(ctx context.Context, text string, args []any, f func(statement) error) error {
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
		return f(stmt)
	})
}

// findName returns the id of a name. It adds a missing name to the log.
func (w *batchWriter) findName(ctx context.Context, name string) (int64, error) {
	row, err := w.firstRow(ctx, store.FindName, name)
	if err != nil {
		return 0, err
	}
	if row != nil {
		return row[0].(int64), nil
	}
	result, err := w.execResult(ctx, store.AddName, name)
	if err != nil {
		return 0, err
	}
	return result.LastInsertId()
}

// A statement is a prepared statement of the driver.
type statement interface {
	driver.Stmt
	driver.StmtExecContext
	driver.StmtQueryContext
}

// dataVersion returns a number that changes with every transaction of this or another connection. The number is never
// 0. Asking the driver is much faster than querying the last event.
func (w *batchWriter) dataVersion() (int64, error) {
	var v uint32
	err := w.conn.Raw(func(conn any) (err error) {
		v, err = conn.(sqlite.FileControl).FileControlDataVersion("main")
		return err
	})
	return int64(v) + 1, err
}
