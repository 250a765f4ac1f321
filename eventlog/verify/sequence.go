package verify

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"runtime"
	"sync"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
	"zombiezen.com/go/sqlite"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/evidence"
	"github.com/perlica/perlica/eventlog/fault"
	"github.com/perlica/perlica/eventlog/store"
	"github.com/perlica/perlica/eventlog/tree"
)

// verification is one call of Verify. Workers read blocks and verify what needs nothing but
// the block; one goroutine, the caller's, puts them in order and verifies the rest.
type verification struct {
	// Set before the workers start.
	reader    *store.Reader
	opt       Options
	verifiers note.Verifiers
	conn      *sqlite.Conn    // the dispatcher's while it runs, else the caller's
	size      int64           // how far the log goes, as it was at the start
	covered   int64           // the greatest size of a stored checkpoint then
	sizes     int64           // how many sizes they have
	numbered  int64           // the greatest number of one
	stored    int64           // how many there are
	anchors   int             // lines of the anchor
	lacks     map[string]bool // the tables that are not there
	origin    string
	absent    []tree.Subtree
	since     *evidence.Checkpoint
	seals     []seal // of the anchor, and the one kept elsewhere; by size

	unknown strangers
	pruned  prunings

	// The caller's.
	rep          Report
	events       int64
	absentEvents int64
	nextAbsent   int // of absent
	clock        clock
	bad          []row // to be classified
	moreBad      int
	gap          bool // the auditor knows of the last one
	runs         openRuns
	signatures   signatures

	tree          tree.Range
	start         tree.Range  // the tree at the start of this group of leaves, see nodeHeight
	damaged       bool        // a leaf of this group is not known
	lost          bool        // the tree does not follow from the events any more
	broken        bool        // its root is not known
	high          []tree.Node // of the second stored level and up, to be compared at the end
	good          int64       // the greatest size at which a checkpoint held
	wrong         []seal      // checkpoints behind it that did not
	skipped       int64       // the size of the last one that could not be checked
	skippedAnchor int64       // likewise, of the lines of the anchor
	moreWrong     int
	stray         []tree.Node // stored nodes behind it that do not follow from the events
}

// run verifies all blocks.
func (v *verification) run(whole context.Context) error {
	ctx, cancel := context.WithCancelCause(whole)
	defer cancel(nil)
	n := max(runtime.GOMAXPROCS(0), 1)
	work, order := make(chan *block), make(chan *block, 4*n)
	free := make(chan *block, cap(order)+2*n+2)
	for range cap(free) {
		free <- &block{done: make(chan struct{}, 1)}
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel(nil)
	for range n {
		wg.Go(func() {
			s, err := newScanner(v)
			if err != nil {
				cancel(err)
				return
			}
			for b := range work {
				s.fill(b)
				b.done <- struct{}{}
			}
			if err := s.close(); err != nil {
				cancel(fault.Explain(err))
			}
		})
	}
	wg.Go(func() {
		defer close(order)
		defer close(work)
		if err := v.dispatch(ctx, free, work, order); err != nil {
			cancel(err)
		}
	})
	for b := range order {
		select {
		case <-b.done:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if b.err != nil {
			return b.err
		}
		v.block(b)
		if v.opt.Progress != nil {
			v.opt.Progress(v.events)
		}
		free <- b
	}
	if whole.Err() != nil {
		return context.Cause(whole)
	}
	cancel(nil)
	wg.Wait()
	if err := context.Cause(ctx); err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	return v.end()
}

// dispatch hands out the blocks. A stretch without any row is one block, however long it is.
func (v *verification) dispatch(ctx context.Context, free <-chan *block, work, order chan<- *block) error {
	next, _, err := v.conn.PrepareTransient(`SELECT seq FROM events WHERE seq >= ? ORDER BY seq LIMIT 1`)
	if err != nil {
		return fault.Explain(err)
	}
	defer func() { _ = next.Finalize() }() // eachRow returned what went wrong
	for first := int64(1); first <= v.size; {
		last, hole := min((first-1)/blockEvents*blockEvents+blockEvents, v.size), false
		there := v.size + 1
		err := eachRow(next, func(stmt *sqlite.Stmt) error { there = stmt.ColumnInt64(0); return nil }, first)
		switch {
		case fault.IsBroken(err):
		case err != nil:
			return err
		case there > last:
			hole = true
			if last = v.size; there <= v.size {
				last = (there - 1) / blockEvents * blockEvents
			}
		}
		var b *block
		select {
		case b = <-free:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		b.reset(first, last, hole)
		for _, to := range []chan<- *block{order, work} {
			select {
			case to <- b:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		first = last + 1
	}
	return nil
}

func (v *verification) close() error {
	if v.conn == nil {
		return nil
	}
	return fault.Explain(v.conn.Close())
}

// block verifies what a block says about the log as a whole.
func (v *verification) block(b *block) {
	v.rep.Pruned += b.pruned
	v.rep.Withheld += b.withheld
	seals := b.seals
	for i := range b.rows {
		r := &b.rows[i]
		v.events++
		if int64(r.Seq) <= v.tree.Size {
			v.find(r.Seq, Inserted, "there is more than one event %d, or one where none may be", r.Seq)
			v.unseen()
			continue
		}
		seals = v.skip(b, seals, int64(r.Seq)-1)
		v.add(b, r)
		seals = v.hold(seals)
	}
	v.hold(v.skip(b, seals, b.last))
}

// add puts an event on the tree and before the auditor.
func (v *verification) add(b *block, r *row) {
	if r.flaw != sound {
		v.keepBad(r)
		v.unseen()
		v.damaged = v.damaged || r.flaw == headerEdited || r.flaw == badColumn
	} else {
		v.clock.tick(&r.Event)
		v.runs.count(&r.Event)
		v.gap = false
		if v.opt.Audit != nil {
			for _, broken := range v.opt.Audit.Event(&r.Event) {
				v.find(r.Seq, Rule, "%s", broken)
			}
		}
	}
	v.tree.Add(r.LeafHash)
	v.compareNodes(b)
}

// unseen reports to the auditor that something happened that it cannot see.
func (v *verification) unseen() {
	v.runs.unsure = true
	if v.opt.Audit != nil && !v.gap {
		v.opt.Audit.Gap()
	}
	v.gap = true
}

// maxBad is how many bad events are looked at more closely.
const maxBad = 512

func (v *verification) keepBad(r *row) {
	if len(v.bad) == maxBad {
		v.moreBad++
		return
	}
	bad := *r
	bad.Payload = nil
	v.bad = append(v.bad, bad)
}

// skip brings the tree up to size, over what is absent or missing. It returns the seals that
// lie behind size.
func (v *verification) skip(b *block, seals []seal, size int64) []seal {
	for v.tree.Size < size {
		to := size
		if v.nextAbsent < len(v.absent) {
			a := v.absent[v.nextAbsent]
			if int64(a.Seq) == v.tree.Size+1 {
				v.nextAbsent++
				v.absentEvents += 1 << a.Level
				v.tree.AddSubtree(a.Level, a.Hash)
				v.unseen()
				v.compareNodes(b)
				seals = v.hold(seals)
				continue
			}
			if int64(a.Seq) <= v.tree.Size { // an event lies where none may be
				v.nextAbsent++
				continue
			}
			to = min(to, int64(a.Seq)-1)
		}
		v.missing(b, to)
		seals = v.hold(seals)
	}
	return seals
}

// missing reports that the next events, up to last, are not there, and goes on with the tree
// as well as can be: with the stored hashes of groups, else with any.
func (v *verification) missing(b *block, last int64) {
	first := v.tree.Size + 1
	kind, what := Deleted, "is missing"
	if len(b.unread) > 0 && b.unread[0] <= first && b.unread[len(b.unread)-1] >= last {
		kind, what = Unreadable, fmt.Sprintf("cannot be read: %v", b.why)
	}
	if first == last {
		v.find(event.Seq(first), kind, "event %d %s", first, what)
	} else {
		if kind == Deleted {
			what = "are missing"
		}
		v.find(event.Seq(first), kind, "events %d to %d %s", first, last, what)
	}
	v.unseen()
	if b.hole {
		v.lost, v.damaged = true, true
		v.tree = tree.Range{Size: last, Roots: make([]tlog.Hash, bits.OnesCount64(uint64(last)))}
		v.begin()
		return
	}
	for v.tree.Size < last {
		v.damaged = true
		v.tree.Add(tlog.Hash{})
		v.compareNodes(b)
	}
}

// compareNodes compares what the last leaf has completed with what is stored.
func (v *verification) compareNodes(b *block) {
	for i := 0; i < len(v.tree.Nodes); i++ {
		n := v.tree.Nodes[i]
		if n.Level > tree.NodeHeight {
			if !v.lost {
				v.high = append(v.high, n)
			}
			continue
		}
		stored, ok := b.node(n.N)
		switch {
		case !ok && v.reader.Version >= 2 && len(v.absent) == 0 && !v.lacks["nodes"]:
			if v.damaged {
				v.find(0, Tree, "the hash over %s is missing", below(n))
			} else {
				v.stray = append(v.stray, n)
			}
			fallthrough
		case !ok:
			v.lost = v.lost || v.damaged
		case stored == n.Hash:
		case !v.damaged:
			v.stray = append(v.stray, n)
		case !v.lost:
			// What is stored stands for the leaves that are not known.
			v.tree.Size, v.tree.Roots, v.tree.Nodes = v.start.Size, append(v.tree.Roots[:0], v.start.Roots...), v.tree.Nodes[:0]
			v.tree.AddSubtree(tree.NodeHeight, stored)
			i = -1
		}
	}
	v.tree.Nodes = v.tree.Nodes[:0]
	if v.tree.Size&(1<<tree.NodeHeight-1) == 0 {
		v.begin()
		v.damaged = false
	}
}

// begin begins a group of leaves.
func (v *verification) begin() {
	v.start.Size, v.start.Roots = v.tree.Size, append(v.start.Roots[:0], v.tree.Roots...)
}

// node returns the stored node with this number, of the first stored level.
func (b *block) node(n int64) (tlog.Hash, bool) {
	for i := range b.nodes {
		if b.nodes[i].N == n {
			return b.nodes[i].Hash, true
		}
	}
	return tlog.Hash{}, false
}

// hold holds the tree against the checkpoints of its size and returns those that are greater.
func (v *verification) hold(seals []seal) []seal {
	for len(seals) > 0 && seals[0].size <= v.tree.Size {
		v.judge(&seals[0])
		seals = seals[1:]
	}
	return seals
}
