package eventlog

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"

	"golang.org/x/mod/sumdb/tlog"
)

// Report is what Verify found.
type Report struct {
	Events   int64     // events that were read
	Root     tlog.Hash // of the tree they form
	FirstBad Seq       // the first event that is wrong or missing; 0 if none is
	Damage   string    // what is wrong with it, in words; empty if nothing is
}

// OK reports whether the log is as it was written.
func (r Report) OK() bool { return r.Damage == "" }

// Verify recomputes every hash of the log from the events themselves and compares the
// result with what is stored. It reads the whole log. An error means that it could not
// be read; damage is in the report.
//
// It finds edits, deletions, insertions and reorderings by whoever did not recompute
// the tree. Against somebody who did, it takes a root hash kept elsewhere.
//
// If progress is not nil it is called now and then with the number of events read.
func (r *Reader) Verify(ctx context.Context, progress func(events int64)) (Report, error) {
	want, err := r.frontier(ctx)
	switch {
	case errors.Is(err, errFrontier):
		return Report{Damage: err.Error()}, nil
	case err != nil:
		return Report{}, err
	}
	var tree frontier
	for e, err := range r.Events(ctx, Query{Until: Seq(want.size)}) {
		if errors.Is(err, ErrCorrupt) {
			return Report{Events: tree.size, FirstBad: Seq(tree.size + 1), Damage: err.Error()}, nil
		}
		if err != nil {
			return Report{}, err
		}
		if int64(e.Seq) > want.size {
			break // an empty log that has grown since: Until 0 is no limit
		}
		if damage := check(&e, Seq(tree.size+1)); damage != "" {
			return Report{Events: tree.size, Root: tree.root(), FirstBad: Seq(tree.size + 1), Damage: damage}, nil
		}
		tree.add(e.LeafHash)
		if progress != nil && tree.size%10_000 == 0 {
			progress(tree.size)
		}
	}
	rep := Report{Events: tree.size, Root: tree.root()}
	switch {
	case tree.size < want.size:
		rep.FirstBad = Seq(tree.size + 1)
		rep.Damage = fmt.Sprintf("the tree has %d events, the log ends at %d: the end was deleted", want.size, tree.size)
	case tree.root() != want.root():
		rep.Damage = "the tree's root does not follow from the events: the log was rewritten"
	default:
		return rep, r.checkRest(ctx, want.size, &rep)
	}
	return rep, nil
}

// checkRest looks for events behind the tree's end. They may be new ones, but then
// the tree has grown too.
func (r *Reader) checkRest(ctx context.Context, size int64, rep *Report) error {
	e, ok, err := r.Last(ctx, Query{})
	if err != nil || !ok || int64(e.Seq) <= size {
		return err
	}
	now, err := r.frontier(ctx)
	if err == nil && now.size < int64(e.Seq) {
		rep.FirstBad = Seq(size + 1)
		rep.Damage = fmt.Sprintf("the tree has %d events, the log goes on to %d: events were inserted", now.size, e.Seq)
	}
	return err
}

// check returns what is wrong with an event that should be number want, or "".
func check(e *Event, want Seq) string {
	switch {
	case e.Seq > want:
		return fmt.Sprintf("missing: the next event is %d", e.Seq)
	case e.Seq < want:
		return fmt.Sprintf("an event with the impossible number %d", e.Seq)
	case e.Payload == nil:
		return "the payload is missing"
	case int64(len(e.Payload)) != e.PayloadLen || sha256.Sum256(e.Payload) != e.PayloadSHA256:
		return "the payload was edited"
	case e.Leaf() != e.LeafHash:
		return "the header was edited"
	}
	return ""
}
