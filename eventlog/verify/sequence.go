package verify

import (
	"context"
	"fmt"
	"io"
	"math/bits"
	"runtime"
	"slices"
	"sync"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/store"
	"github.com/perlica/perlica/eventlog/tree"
)

// blockEvents is how many events of a log's file one worker takes at a time: whole groups of the
// tree's first stored level, and few enough to stay in a processor's cache.
const blockEvents = 4 << tree.NodeHeight

// verification is one call of Check. Workers read blocks and verify what needs nothing but
// the block; one goroutine, the caller's, puts them in order and verifies the rest.
type verification struct {
	// Set before the workers start.
	source    Source
	file      *file // the source, if it is a log's file
	opt       Options
	verifiers note.Verifiers
	head      Head
	nodes     map[place]tlog.Hash // the stored hashes of the tree
	hasNodes  bool                // all of them
	seals     []seal              // those that come in no block, by size: what is left of them

	unknown strangers

	// The caller's.
	rep          Report
	events       int64
	absentEvents int64
	clock        clock
	bad          []row // to be classified
	moreBad      int
	unread       error  // why a row before the next could not be read
	gaps         []span // where events were missing
	gap          bool   // the auditor knows of the last one
	runs         openRuns
	gone         gone
	signatures   signatures

	size          int64 // how far the log goes, at the end
	covered       int64 // how far it went, as a checkpoint says that is reported
	tree          tree.Range
	start         tree.Range // the tree at the start of this group of leaves, see nodeHeight
	damaged       bool       // a leaf of this group is not known
	lost          bool       // the tree does not follow from the events any more
	broken        bool       // its root is not known
	stored        []seal     // the checkpoints of the blocks that lie ahead
	same          []seal     // those of the last size that was looked at
	good          int64      // the greatest size at which a checkpoint held
	wrong         []seal     // checkpoints behind it that did not
	skipped       int64      // the size of the last one that could not be checked
	skippedAnchor int64      // likewise, of the lines of the anchor
	moreWrong     int
	stray         []tree.Node // stored nodes behind it that do not follow from the events
	last          *Finding    // what the source's end says
}

// place is where in the tree a hash is stored.
type place struct {
	level int
	n     int64
}

// span is a stretch of numbers.
type span struct{ first, last int64 }

// verify verifies all that the source has.
func (v *verification) verify(ctx context.Context) (err error) {
	v.verifiers = note.VerifierList(v.opt.Keys...)
	if v.head, err = v.source.Head(ctx); err != nil {
		return err
	}
	if err := v.remember(ctx); err != nil {
		return err
	}
	return v.run(ctx)
}

// run verifies all blocks.
func (v *verification) run(whole context.Context) error {
	ctx, cancel := context.WithCancelCause(whole)
	n := max(runtime.GOMAXPROCS(0), 1)
	free, order, reading := make(chan *Block, 6*n), make(chan *Block, 6*n), make(chan struct{}, n)
	for range cap(free) {
		free <- &Block{v: v, done: make(chan struct{}, 1)}
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel(nil)
	wg.Go(func() {
		defer close(order)
		for {
			read, err := v.source.Next(ctx)
			if err == io.EOF {
				return
			}
			var b *Block
			select {
			case b = <-free:
			case <-ctx.Done():
				return
			}
			b.reset(read)
			order <- b
			if b.err = err; err != nil {
				b.done <- struct{}{}
				return
			}
			reading <- struct{}{}
			wg.Go(func() {
				b.err = b.read(b)
				<-reading
				b.done <- struct{}{}
			})
		}
	})
	for b := range order {
		if <-b.done; b.err != nil {
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
	return v.end(whole)
}

// block verifies what a block says about the log as a whole.
func (v *verification) block(b *Block) {
	v.stored = append(v.stored, b.seals...)
	slices.SortStableFunc(v.stored, bySize)
	for i := range b.rows {
		r := &b.rows[i]
		seq := int64(r.Seq)
		switch {
		case r.flaw == unreadable:
			v.unseen()
			if v.unread == nil {
				v.unread = b.why
			}
			continue
		case seq > tree.MaxSeq:
			v.find(event.Seq(v.tree.Size+1), Inserted, "an event has the impossible number %d", seq)
			v.unseen()
			continue
		case r.flaw == absent && !wellFormed(tree.Subtree{Seq: int64(r.Seq), Level: r.level}):
			v.find(event.Seq(v.tree.Size+1), Inserted, "what is absent from event %d on is no part of a tree", seq)
			v.unseen()
			continue
		}
		if r.flaw != absent {
			v.events++
		}
		if seq <= v.tree.Size {
			v.twice(r)
			continue
		}
		v.skip(b, seq-1)
		v.add(r)
		v.hold()
	}
	if b.last > 0 {
		v.skip(b, b.last)
	}
}

// twice reports an event or a subtree where none may be. In a source that is no table it may stand
// behind those that it preceded.
func (v *verification) twice(r *row) {
	v.unseen()
	if !slices.ContainsFunc(v.gaps, func(g span) bool { return int64(r.Seq) >= g.first && int64(r.Seq) <= g.last }) {
		v.find(r.Seq, Inserted, "there is more than one event %d, or one where none may be", r.Seq)
		return
	}
	f := Finding{r.Seq, Reordered, fmt.Sprintf("event %d stands behind event %d", r.Seq, v.tree.Size)}
	if i := slices.IndexFunc(v.rep.Findings, func(f Finding) bool { return f.Seq == r.Seq && f.Kind == Deleted }); i >= 0 {
		v.rep.Findings[i] = f // it was taken for missing
		return
	}
	v.report(f)
}

// add puts an event on the tree and before the auditor, or a subtree in the place of its events.
func (v *verification) add(r *row) {
	switch {
	case r.flaw == absent:
		v.absentEvents += 1 << r.level
		v.unseen()
	case r.flaw != sound && r.flaw != payloadGone:
		if v.unseen(); len(v.bad) < maxBad {
			v.bad = append(v.bad, *r)
		} else {
			v.moreBad++
		}
		v.damaged = v.damaged || r.flaw == headerEdited || r.flaw == badColumn
	default:
		v.sound(r)
	}
	if r.Type == event.LogPruned && r.Class == event.Fact && r.Payload != nil {
		v.prune(&r.Event)
	}
	v.tree.AddSubtree(r.level, r.LeafHash)
	v.compareNodes()
}

// sound takes in an event whose header is as it was written.
func (v *verification) sound(r *row) {
	if r.flaw == payloadGone {
		v.gone.add(&r.Event)
	}
	if r.Seq == 1 && v.head.Origin != "" && v.head.Origin != store.OriginOf(r.ID) {
		v.find(r.Seq, Edited, "event 1 is not the first of %s", v.head.Origin)
	}
	v.clock.tick(&r.Event)
	v.runs.count(&r.Event)
	v.gap = false
	if v.opt.Audit != nil {
		for _, broken := range v.opt.Audit.Event(&r.Event) {
			v.find(r.Seq, Rule, "%s", broken)
		}
	}
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

// skip brings the tree up to size, over what is missing.
func (v *verification) skip(b *Block, size int64) {
	switch {
	case v.tree.Size < size:
		v.missing(b, size)
		v.hold()
	case v.unread != nil && v.tree.Size == size:
		v.find(0, Unreadable, "something behind event %d cannot be read: %v", size, v.unread)
		v.unread = nil
	}
}

// missing reports that the next events, up to last, are not there, and goes on with the tree
// as well as can be: with the stored hashes of groups, else with any.
func (v *verification) missing(b *Block, last int64) {
	first := v.tree.Size + 1
	if v.unread != nil {
		v.find(event.Seq(first), Unreadable, "%s: %v", numbered(event.Seq(first), event.Seq(last), "cannot be read", "cannot be read"), v.unread)
		v.unread = nil
	} else {
		v.find(event.Seq(first), Deleted, "%s missing", spanOf(event.Seq(first), event.Seq(last)))
	}
	if len(v.gaps) < maxFindings {
		v.gaps = append(v.gaps, span{first, last})
	}
	v.unseen()
	if b.hole || last-first > blockEvents {
		v.lost, v.damaged = true, true
		v.tree = tree.Range{Size: last, Roots: make([]tlog.Hash, bits.OnesCount64(uint64(last)))}
		v.begin()
		return
	}
	for v.tree.Size < last {
		v.damaged = true
		v.tree.Add(tlog.Hash{})
		v.compareNodes()
	}
}

// compareNodes compares what the last leaf has completed with what is stored.
func (v *verification) compareNodes() {
	for i := 0; i < len(v.tree.Nodes); i++ {
		n := v.tree.Nodes[i]
		damaged := v.damaged && n.Level == tree.NodeHeight // or that has been made good
		switch stored, ok := v.nodes[place{n.Level, n.N}]; {
		case n.Level > tree.NodeHeight && v.lost, ok && stored == n.Hash:
		case !damaged && (ok || v.hasNodes):
			v.stray = append(v.stray, n)
		case !damaged:
		case !ok:
			if v.lost = true; v.hasNodes {
				v.find(0, Tree, "the hash over %s is missing", below(n))
			}
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

// hold holds the tree against the checkpoints of its size, those of the source first.
func (v *verification) hold() {
	for {
		var s seal
		switch {
		case len(v.stored) > 0 && v.stored[0].size <= v.tree.Size && (len(v.seals) == 0 || v.stored[0].size <= v.seals[0].size):
			s, v.stored = v.stored[0], v.stored[1:]
			if len(v.same) > 0 && v.same[0].size != s.size {
				v.same = v.same[:0]
			}
			v.same = append(v.same, s)
		case len(v.seals) > 0 && v.seals[0].size <= v.tree.Size:
			s, v.seals = v.seals[0], v.seals[1:]
			if s.kind == Anchor {
				v.compare(&s)
			}
		default:
			return
		}
		v.judge(&s)
	}
}
