package verify

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/mod/sumdb/tlog"
	"zombiezen.com/go/sqlite"

	"github.com/perlica/perlica/eventlog/btree"
	"github.com/perlica/perlica/eventlog/disk"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/evidence"
	"github.com/perlica/perlica/eventlog/store"
	"github.com/perlica/perlica/eventlog/tree"
)

// Headers checks the headers of the events after a number, without their payloads. No event may be missing, each
// header must match its leaf, and the root of the leaves must match the newest checkpoint. A changed column may take
// an event out of a selection, and this check finds the change. If there is damage, the error wraps disk.ErrCorrupt
// and the event.DamagedError of the first damaged event. Headers uses one core; BenchmarkHeaders measures it.
func Headers(ctx context.Context, r *store.Reader, after event.Seq) (err error) {
	// Read the checkpoint before the events. Then the log has all events that the checkpoint covers.
	newest, _, err := r.LastCheckpoint(ctx, 0)
	if err != nil {
		return err
	}
	h := headers{newest: newest}
	if h.tree, err = r.Hashes(ctx).Frontier(int64(after)); err != nil {
		return err
	}
	if h.conn, err = connect(r); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, disk.Explain(h.conn.Close())) }()
	h.conn.SetInterrupt(ctx.Done())
	if err = h.prepareNames(); err != nil {
		return err
	}
	defer func() { _ = h.names.Finalize() }() // eachRow returned its error
	err = h.scan(r, int64(after))
	if ctx.Err() != nil && !errors.Is(err, disk.ErrCorrupt) {
		return context.Cause(ctx) // the end of ctx interrupted the scan
	}
	return err
}

// headers is the state of one call of Headers. It uses a scanner for its connection and its absent subtrees.
type headers struct {
	scanner
	newest evidence.Checkpoint
	tree   tree.Range // the tree of the events so far
	data   []byte     // the blobs of the current row
}

func (h *headers) scan(r *store.Reader, after int64) error {
	err := query(h.conn, `SELECT seq, level, hash FROM absent WHERE seq > ? ORDER BY seq`, func(stmt *sqlite.Stmt) error {
		a := tree.Subtree{Seq: stmt.ColumnInt64(0), Level: stmt.ColumnInt(1)}
		stmt.ColumnBytes(2, a.Hash[:])
		h.absent = append(h.absent, a)
		return nil
	}, after)
	if err != nil {
		return err
	}
	err = query(h.conn, `SELECT `+store.HeaderColumns+` FROM entries WHERE seq > ? ORDER BY seq`,
		func(stmt *sqlite.Stmt) error {
			h.readColumns(stmt)
			e := event.Event{Seq: event.Seq(h.columns[0].Int)}
			if err := h.header(&e); err != nil {
				return err
			}
			if err := h.skip(int64(e.Seq)); err != nil {
				return err
			}
			if h.flaw != sound || e.Leaf() != e.LeafHash {
				return damage(&event.DamagedError{Seq: e.Seq, Header: true})
			}
			return h.add(0, e.LeafHash)
		}, after)
	if err != nil {
		return err
	}
	end := max(h.tree.Size, h.newest.Size)
	if n := len(h.absent); n > 0 {
		end = max(end, h.absent[n-1].Last())
	}
	return h.skip(end + 1)
}

// readColumns copies the columns of the current row of stmt.
func (h *headers) readColumns(stmt *sqlite.Stmt) {
	h.columns, h.data = h.columns[:0], h.data[:0]
	for i := range stmt.ColumnCount() {
		var v btree.Value
		switch stmt.ColumnType(i) {
		case sqlite.TypeInteger:
			v = btree.Value{Kind: btree.Integer, Int: stmt.ColumnInt64(i)}
		case sqlite.TypeBlob:
			at, n := len(h.data), stmt.ColumnLen(i)
			h.data = slices.Grow(h.data, n)[:at+n]
			stmt.ColumnBytes(i, h.data[at:])
			v = btree.Value{Kind: btree.Blob, Data: h.data[at:]}
		}
		h.columns = append(h.columns, v)
	}
}

// skip adds the absent subtrees before the event seq. It returns an error if an event between them and seq is
// missing.
func (h *headers) skip(seq int64) error {
	for ; len(h.absent) > 0 && h.absent[0].Seq < seq && h.absent[0].Seq == h.tree.Size+1 &&
		wellFormed(h.absent[0]); h.absent = h.absent[1:] {
		if err := h.add(h.absent[0].Level, h.absent[0].Hash); err != nil {
			return err
		}
	}
	if seq != h.tree.Size+1 {
		return damage(&event.DamagedError{Seq: event.Seq(h.tree.Size + 1), Missing: true})
	}
	return nil
}

// add adds a subtree of this level, or a leaf if the level is 0. Then it compares the root with the newest
// checkpoint.
func (h *headers) add(level int, hash tlog.Hash) error {
	h.tree.AddSubtree(level, hash)
	h.tree.Nodes = h.tree.Nodes[:0]
	if h.tree.Size == h.newest.Size && h.tree.Root() != h.newest.Root {
		return damage(&event.DamagedError{Seq: event.Seq(h.newest.Size), Root: true})
	}
	return nil
}

func damage(e *event.DamagedError) error { return fmt.Errorf("%w: %w", disk.ErrCorrupt, e) }
