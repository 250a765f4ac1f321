package verify

import (
	"context"
	"errors"
	"slices"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/tree"
)

// judgeCheckpoint compares the tree with one checkpoint. If the roots differ, the checkpoint or the log may be wrong.
// If a later checkpoint is valid, the checkpoint was wrong.
func (v *verification) judgeCheckpoint(s *seal) {
	switch {
	case s.fault == nil && v.head.Origin != "" && s.Origin != v.head.Origin && (len(v.bad) == 0 || v.bad[0].Seq > 1):
		s.fault = ofOtherLog.With(s.Origin)
		fallthrough
	case s.fault != nil:
		v.find(0, s.kind, notHolding.With(s.where, s.fault))
	case s.size < v.tree.Size, s.size == 0 && !s.claim:
		v.countUnchecked(s)
	case v.tree.Root() == s.Root:
		if !s.claim {
			v.accept(s)
		}
	case v.damaged, v.lost:
		v.countUnchecked(s)
	case len(v.wrong) < maxFindings:
		v.wrong = append(v.wrong, *s)
	default:
		v.moreWrong++
	}
}

// countUnchecked counts a checkpoint that cannot be checked. It counts each size once, because a cosigned checkpoint
// is stored several times. The checkpoints come in the order of their sizes.
func (v *verification) countUnchecked(s *seal) {
	last, n := &v.skipped, &v.rep.Unchecked
	switch {
	case s.where == keptElsewhere, s.claim:
		v.warn(uncheckable.With(s.where, s.size))
		return
	case s.kind == Anchor:
		last, n = &v.skippedAnchor, &v.rep.UncheckedAnchors
	}
	if *n == 0 || *last != s.size {
		*n++
	}
	*last = s.size
}

// accept records a valid checkpoint. If an earlier checkpoint did not match, that checkpoint is wrong, and accept
// reports it.
func (v *verification) accept(s *seal) {
	for i := range v.wrong {
		v.find(0, v.wrong[i].kind, otherRoot.With(v.wrong[i].where, v.wrong[i].size, s.where))
	}
	v.good = s.size
	for _, n := range v.stray {
		v.reportNode(n)
	}
	v.wrong, v.moreWrong, v.stray = v.wrong[:0], 0, v.stray[:0]
	v.signatures.countSeal(s)
	switch {
	case s.kind == Anchor:
		v.rep.Anchors++
	case s.where != keptElsewhere:
		v.rep.Checkpoints++
	}
	if s.known && (s.wanted || !v.opt.RequireSignature) {
		v.rep.Signed = s.size
	}
	for _, w := range s.others {
		v.rep.Cosigned = slices.DeleteFunc(v.rep.Cosigned, func(c Cosignature) bool { return c.Name == w.Name })
		v.rep.Cosigned = append(v.rep.Cosigned, Cosignature{w.Name, s.size, w.Time})
	}
}

// below returns the first and the last event that the node n covers.
func below(n tree.Node) (first, last int64) { return n.N<<n.Level + 1, (n.N + 1) << n.Level }

// finishEvents does the remaining checks after all events.
func (v *verification) finishEvents(ctx context.Context) error {
	v.compareSeals() // for checkpoints of an empty log
	v.size, v.broken = v.tree.Size, v.damaged || v.lost
	if v.unread != nil {
		v.find(event.Seq(v.size+1), Unreadable, eventUnreadable.With(v.size+1, v.unread))
	}
	v.reportRewritten()
	v.reportShortened()
	err := v.source.End(ctx)
	if f, ok := errors.AsType[Finding](err); ok {
		v.last, err = &f, nil
	}
	return err
}

// reportRewritten reports the checkpoints and stored hashes that did not match, if no later checkpoint is valid. In
// that case somebody changed events together with their leaves.
func (v *verification) reportRewritten() {
	reported := map[Damage]bool{}
	for i := range v.wrong {
		s := &v.wrong[i]
		if reported[s.kind] {
			continue
		}
		reported[s.kind] = true
		more := 0
		for _, other := range v.wrong[i+1:] {
			if other.kind == s.kind {
				more++
			}
		}
		what := eventsChanged.With(s.where, v.good+1, s.size)
		if more += v.moreWrong; more > 0 {
			what = eventsChangedMore.With(s.where, more, v.good+1, s.size)
		}
		v.find(event.Seq(v.good+1), s.kind, what)
	}
	for _, n := range v.stray {
		v.reportNode(n)
	}
}

// reportShortened reports the checkpoints that cover more events than the log has.
func (v *verification) reportShortened() {
	for _, list := range [][]seal{v.seals, v.stored} {
		for i := len(list) - 1; i >= 0; i-- {
			switch s := &list[i]; {
			case s.size <= max(v.size, v.covered):
			case s.fault != nil:
				v.find(0, s.kind, notHolding.With(s.where, s.fault))
			default:
				where := s.where
				if v.file != nil && s.kind == Checkpoint && where != keptElsewhere {
					where = someCheckpoint
				}
				v.find(event.Seq(v.size+1), Truncated, shorter.With(v.size, where, s.size))
				v.covered = s.size
			}
		}
	}
}

// reportNode reports a stored hash that is missing or wrong. If a later checkpoint is valid, the hash itself is
// wrong. Otherwise the events may be wrong.
func (v *verification) reportNode(n tree.Node) {
	first, last := below(n)
	if last <= v.good {
		v.find(0, Tree, nodeWrong.With(first, last))
		return
	}
	bad := max(first, v.good+1)
	v.find(event.Seq(bad), Tree, nodeDiffers.With(first, last, bad))
}
