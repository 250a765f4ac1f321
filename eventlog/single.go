package eventlog

import (
	"context"
	"fmt"

	"github.com/perlica/perlica/eventlog/disk"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/store"
	"github.com/perlica/perlica/eventlog/tree"
)

// singleEvent returns the only event of a batch if one statement without a transaction can insert it, otherwise nil.
// Such an event completes no node, has no new name, and is no intent and no outcome.
func (w *batchWriter) singleEvent(batch []entry) *event.Event {
	var only *event.Event
	for i := range batch {
		events := batch[i].events
		if batch[i].store != nil || len(batch[i].unless.Types) > 0 || batch[i].checkpoint || len(events) > 1 ||
			len(events) == 1 && only != nil {
			return nil
		}
		if len(events) == 1 {
			only = &events[0]
		}
	}
	if only == nil {
		return nil
	}
	if step := only.Type.Step(); step == event.Opens || step == event.Ends {
		return nil
	}
	if w.tree.Size == 0 || !w.names.Has(only) || (w.tree.Size+1)%(1<<tree.NodeHeight) == 0 {
		return nil
	}
	return only
}

// trySingle inserts one event by a statement that commits itself. That needs one statement and not three;
// BenchmarkAppend shows the difference. If the event conflicts with the log, or if other processes appended events, the
// result "done" is false. The caller then uses a transaction. Any error is final.
func (w *batchWriter) trySingle(ctx context.Context, e *event.Event) (done bool, err error) {
	for _, point := range []string{"begin", "insert", "commit"} {
		if err := w.failpoint(point); err != nil {
			return false, &WriteError{Op: point, Err: disk.Explain(err)}
		}
	}
	e.Seq = event.Seq(w.tree.Size + 1)
	e.LeafHash = e.Leaf()
	// If another process has appended an event, this Seq exists already, and the insert fails.
	err = w.retryWhileBusy(ctx, func() error { return w.insertRows(ctx, store.InsertOne, e) })
	switch {
	case err == nil:
	case w.files.Touched != nil:
		return false, w.commitError(err)
	case disk.IsConstraint(err):
		e.Seq = 0
		return false, nil
	default:
		return false, w.commitError(err)
	}
	if err := w.failpoint("committed"); err != nil {
		return false, &WriteError{Op: "commit", Unknown: true, Err: err}
	}
	before := w.seen
	if w.seen, err = w.dataVersion(); err != nil {
		w.seen = 0
	}
	if w.seen != before+1 {
		// Another process changed the file without appending events. So check that the last event is unchanged.
		if err := w.checkLastLeaf(store.Hashes{Ctx: ctx, DB: w.conn}); err != nil {
			return false, &WriteError{Op: "commit", Unknown: true, Err: fmt.Errorf("another process changed the log: %w", err)}
		}
	}
	w.tree.Add(e.LeafHash)
	w.last = e.LeafHash
	return true, w.finishCommit(1, weight(e))
}
