package verify

import (
	"context"
	"io"
	"math/bits"
	"runtime"
	"slices"
	"sort"
	"sync"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/store"
	"github.com/perlica/perlica/eventlog/tree"
)

// blockEvents is the number of events that a worker reads at a time. A block fits into a processor's cache.
const blockEvents = 4 << tree.NodeHeight

// verification is the state of one call of Check. Workers read blocks of events and check the events of each block
// separately. The caller's goroutine puts the blocks in order and does the other checks.
type verification struct {
	// The next fields are set before the workers start.
	source    Source
	file      *file // the source, if it is a log's file
	opt       Options
	verifiers note.Verifiers
	head      Head
	nodes     map[place]tlog.Hash // the stored hashes of the tree
	hasNodes  bool                // every stored hash could be read, and no subtree is absent
	// seals are the checkpoints that no block contains and that are not compared yet. They are ordered by size.
	seals []seal

	unknown strangers

	// Only the caller's goroutine uses the next fields.
	rep          Report
	events       int64
	absentEvents int64
	clock        clock
	bad          []row // the bad events that are not yet classified
	moreBad      int
	// unread is the reason why a row could not be read. It is set until the next readable row shows which events are
	// concerned.
	unread error
	// gaps are the ranges of missing events.
	gaps []span
	// gap means that the previous event is missing or damaged, and that the auditor was already told.
	gap        bool
	runs       openRuns
	gone       gone
	signatures signatures

	// size is the number of events of the log, once all blocks were read.
	size int64
	// covered is the size of the largest checkpoint that was reported because it has more events than the log.
	covered int64
	tree    tree.Range
	// start is the tree at the start of the current group of leaves; see tree.NodeHeight.
	start tree.Range
	// damaged means that some leaf of the current group is unknown.
	damaged bool
	// lost means that the tree cannot be computed from the events any longer.
	lost bool
	// broken means that the root of the log is unknown.
	broken bool
	// stored are the checkpoints of blocks that cover more events than the tree has so far.
	stored []seal
	// same are the stored checkpoints of the last compared size.
	same []seal
	// good is the size of the largest valid checkpoint so far.
	good int64
	// wrong are the checkpoints above good that did not match.
	wrong []seal
	// skipped is the size of the last checkpoint that could not be checked.
	skipped int64
	// skippedAnchor is the size of the last line of the anchor that could not be checked.
	skippedAnchor int64
	moreWrong     int
	// stray are stored hashes above good that do not follow from the events.
	stray []tree.Node
	// last is the finding that the End of the source returned, or nil.
	last *Finding
}

// place is the position of a stored hash in the tree.
type place struct {
	level int
	n     int64
}

// span is a range of event numbers, both included.
type span struct{ first, last int64 }

// verifySource verifies the whole source.
func (v *verification) verifySource(ctx context.Context) (err error) {
	v.verifiers = note.VerifierList(v.opt.Keys...)
	if v.head, err = v.source.Head(ctx); err != nil {
		return err
	}
	if err := v.addHeads(ctx); err != nil {
		return err
	}
	return v.readBlocks(ctx)
}

// readBlocks reads and verifies all blocks.
func (v *verification) readBlocks(whole context.Context) error {
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
		v.addBlock(b)
		if v.opt.Progress != nil {
			v.opt.Progress(v.events)
		}
		free <- b
	}
	if whole.Err() != nil {
		return context.Cause(whole)
	}
	return v.finishEvents(whole)
}

// addBlock checks the events of a block together with all earlier events.
func (v *verification) addBlock(b *Block) {
	v.stored = append(v.stored, b.seals...)
	sort.SliceStable(v.stored, func(i, j int) bool { return v.stored[i].size < v.stored[j].size })
	for i := range b.rows {
		r := &b.rows[i]
		seq := int64(r.Seq)
		switch {
		case r.flaw == unreadable:
			v.markGap()
			if v.unread == nil {
				v.unread = b.why
			}
			continue
		case seq > tree.MaxSeq:
			v.find(event.Seq(v.tree.Size+1), Inserted, impossibleNumber.With(seq))
			v.markGap()
			continue
		case r.flaw == absent && !wellFormed(tree.Subtree{Seq: int64(r.Seq), Level: r.level}):
			v.find(event.Seq(v.tree.Size+1), Inserted, notSubtree.With(seq))
			v.markGap()
			continue
		}
		if r.flaw != absent {
			v.events++
		}
		if seq <= v.tree.Size {
			v.reportTwice(r)
			continue
		}
		v.skipTo(seq - 1)
		v.addRow(r)
		v.compareSeals()
	}
	if b.last > 0 {
		v.skipTo(b.last)
	}
}

// reportTwice reports an event or subtree with a number that is not above the numbers of all earlier ones. In an
// export, an event may come after later events.
func (v *verification) reportTwice(r *row) {
	v.markGap()
	if !slices.ContainsFunc(v.gaps, func(g span) bool { return int64(r.Seq) >= g.first && int64(r.Seq) <= g.last }) {
		v.find(r.Seq, Inserted, eventTwice.With(r.Seq))
		return
	}
	f := NewFinding(r.Seq, Reordered, eventLate.With(r.Seq, v.tree.Size))
	if i := slices.IndexFunc(v.rep.Findings, func(f Finding) bool { return f.Seq == r.Seq && f.Kind == Deleted }); i >= 0 {
		v.rep.Findings[i] = f // replace the finding that this event is missing
		return
	}
	v.report(f)
}

// addRow adds an event or an absent subtree to the tree. It passes an intact event to the auditor.
func (v *verification) addRow(r *row) {
	switch {
	case r.flaw == absent:
		v.absentEvents += 1 << r.level
		v.markGap()
	case r.flaw != sound && r.flaw != payloadGone:
		if v.markGap(); len(v.bad) < maxBad {
			v.bad = append(v.bad, *r)
		} else {
			v.moreBad++
		}
		v.damaged = v.damaged || r.flaw == headerEdited || r.flaw == badColumn
	default:
		v.addSound(r)
	}
	if r.Type == event.LogPruned && r.Class == event.Fact && r.Payload != nil {
		v.applyPruning(&r.Event)
	}
	v.tree.AddSubtree(r.level, r.LeafHash)
	v.compareNodes()
}

// addSound does the checks of an event with an intact header.
func (v *verification) addSound(r *row) {
	if r.flaw == payloadGone {
		v.gone.addEvent(&r.Event)
	}
	if r.Seq == 1 && v.head.Origin != "" && v.head.Origin != store.OriginOf(r.ID) {
		v.find(r.Seq, Edited, notFirst.With(v.head.Origin))
	}
	v.clock.addTime(&r.Event)
	v.runs.countEvent(&r.Event)
	v.gap = false
	if v.opt.Audit != nil {
		for _, broken := range v.opt.Audit.Event(&r.Event) {
			v.find(r.Seq, Rule, broken)
		}
	}
}

// markGap tells the auditor that an event is missing or damaged.
func (v *verification) markGap() {
	v.runs.unsure = true
	if v.opt.Audit != nil && !v.gap {
		v.opt.Audit.Gap()
	}
	v.gap = true
}

// maxBad is the maximum number of bad events for which the original number is searched.
const maxBad = 512

// skipTo extends the tree to size events. If events are missing, it reports them.
func (v *verification) skipTo(size int64) {
	switch {
	case v.tree.Size < size:
		v.addMissing(size)
		v.compareSeals()
	case v.unread != nil && v.tree.Size == size:
		v.find(0, Unreadable, restUnreadable.With(size, v.unread))
		v.unread = nil
	}
}

// addMissing reports that the events up to "last" are missing. It extends the tree with the stored hashes of groups if
// possible, otherwise with arbitrary hashes.
func (v *verification) addMissing(last int64) {
	first := v.tree.Size + 1
	if v.unread != nil {
		v.find(event.Seq(first), Unreadable, rangeOf(event.Seq(first), event.Seq(last), eventUnreadable, eventsUnreadable,
			v.unread))
		v.unread = nil
	} else {
		v.find(event.Seq(first), Deleted, rangeOf(event.Seq(first), event.Seq(last), eventMissing, eventsMissing))
	}
	if len(v.gaps) < maxFindings {
		v.gaps = append(v.gaps, span{first, last})
	}
	v.markGap()
	if last-first > 2*blockEvents {
		v.lost, v.damaged = true, true
		v.tree = tree.Range{Size: last, Roots: make([]tlog.Hash, bits.OnesCount64(uint64(last)))}
		v.beginGroup()
		return
	}
	for v.tree.Size < last {
		v.damaged = true
		v.tree.Add(tlog.Hash{})
		v.compareNodes()
	}
}

// compareNodes compares the nodes that the last leaf completed with the stored hashes.
func (v *verification) compareNodes() {
	for i := 0; i < len(v.tree.Nodes); i++ {
		n := v.tree.Nodes[i]
		damaged := v.damaged && n.Level == tree.NodeHeight // stays true when the stored hash replaces the group
		switch stored, ok := v.nodes[place{n.Level, n.N}]; {
		case n.Level > tree.NodeHeight && v.lost, ok && stored == n.Hash:
		case !damaged && (ok || v.hasNodes):
			v.stray = append(v.stray, n)
		case !damaged:
		case !ok:
			if v.lost = true; v.hasNodes {
				first, last := below(n)
				v.find(0, Tree, nodeMissing.With(first, last))
			}
		case !v.lost:
			// Some leaves of this group are unknown, so continue with the stored hash of the whole group.
			v.tree.Size, v.tree.Roots, v.tree.Nodes = v.start.Size, append(v.tree.Roots[:0], v.start.Roots...), v.tree.Nodes[:0]
			v.tree.AddSubtree(tree.NodeHeight, stored)
			i = -1
		}
	}
	v.tree.Nodes = v.tree.Nodes[:0]
	if v.tree.Size&(1<<tree.NodeHeight-1) == 0 {
		v.beginGroup()
		v.damaged = false
	}
}

// beginGroup stores the tree at the start of a group of leaves.
func (v *verification) beginGroup() {
	v.start.Size, v.start.Roots = v.tree.Size, append(v.start.Roots[:0], v.tree.Roots...)
}

// compareSeals compares the tree with the checkpoints of its size. Stored checkpoints come before other checkpoints
// of the same size.
func (v *verification) compareSeals() {
	for {
		var s seal
		switch {
		case len(v.stored) > 0 && v.stored[0].size <= v.tree.Size &&
			(len(v.seals) == 0 || v.stored[0].size <= v.seals[0].size):
			s, v.stored = v.stored[0], v.stored[1:]
			if len(v.same) > 0 && v.same[0].size != s.size {
				v.same = v.same[:0]
			}
			v.same = append(v.same, s)
		case len(v.seals) > 0 && v.seals[0].size <= v.tree.Size:
			s, v.seals = v.seals[0], v.seals[1:]
			if s.kind == Anchor {
				v.compareStored(&s)
			}
		default:
			return
		}
		v.judgeCheckpoint(&s)
	}
}
