package kernel

import (
	"context"
	"time"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/kernel/worktree"
)

// treeLimit is the time limit for one observation of a work tree. Only tests change it.
var treeLimit = 2 * time.Second

// observeTree records the state of the git work tree before a turn. The returned function records it after the turn.
// Goroutines of the Runner do the work, so that the turn is not delayed. Close waits for them. Without a work tree,
// or after the time limit, nothing is recorded.
func (r *Runner) observeTree(run *run) (after func()) {
	if !r.opt.ObserveTree {
		return func() {}
	}
	turn := r.turns.Add(1)
	before := make(chan *worktree.Tree, 1)
	r.observing.Go(func() { before <- r.recordTree(run, nil, turn) })
	return func() {
		r.observing.Go(func() {
			if tree := <-before; tree != nil {
				r.recordTree(run, tree, turn)
			}
		})
	}
}

// recordTree observes the work tree of a run and records its state. The parameter "before" is the state before the
// turn. It is nil if the turn has not ended. The parameter "turn" is the number of the run's turn in this process.
func (r *Runner) recordTree(run *run, before *worktree.Tree, turn int64) *worktree.Tree {
	ctx, cancel := context.WithTimeout(context.Background(), treeLimit)
	defer cancel()
	tree, err := worktree.Observe(ctx, run.t.Dir)
	if err != nil {
		r.opt.Trail.Debug("work tree", "error", err.Error())
		return nil
	}
	f := fact.TreeObserved{When: "before", Root: tree.Root, Head: tree.Head, Dirty: tree.Dirty, More: tree.More}
	if before != nil {
		f.When, f.Late = "after", r.turns.Load() != turn
		if before.Root == tree.Root {
			changed, more := tree.Since(before)
			f.Changed, f.More = changed, f.More || more
		}
	}
	// If the log cannot be written, the agent's next line ends the run, or the run has ended.
	_ = r.log.Record(event.NewFact(event.TreeObserved, "perlica", run.refs, f))
	return tree
}
