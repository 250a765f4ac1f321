package record

import (
	"context"
	"iter"
	"time"

	"github.com/perlica/perlica/eventlog/event"
)

// Reading reads the events of all sessions of a log after a given event. Only one goroutine at a time may use
// it.
type Reading struct {
	Log   openLog
	Locks string // the folder of the locks of runs and conversations; Until does not need it

	// At is the event after which the reading begins. Later it is the newest event that led to an Entry, or
	// the end of the last Until.
	At event.Seq

	f *follower // the follower of Until, with the turns under way
}

// Follow yields the recorded events and then the new ones, under the conditions of the function Follow. A
// caller that stops and begins again at the Seq of the last Entry misses nothing and gets no event twice. Held
// and Freed are not on record. They are yielded for each session with a turn that is or was under way, as of
// now.
func (r *Reading) Follow(ctx context.Context) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		f := newFollower(ctx, r.Log, r.Locks, r.yields(yield))
		f.yieldError(func() error { return f.followLog(func() error { return f.resumeTurns(r.Log, r.At) }) })
	}
}

// Until yields the recorded events up to until, without Held and Freed. A caller that stops may ask for the
// next Entry, or for later events. The earlier events of a turn under way are read only once. After an error
// or the end of ctx, the Reading cannot be used.
func (r *Reading) Until(ctx context.Context, until event.Seq) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		begun := r.f != nil
		if !begun {
			r.f = newFollower(ctx, r.Log, r.Locks, nil)
		}
		f := r.f
		f.ctx, f.head, f.gone, f.yield = ctx, until, false, r.yields(yield)
		f.yieldError(func() (err error) {
			if begun {
				err = f.yieldEach(event.Query{After: r.At, Until: until})
			} else {
				err = f.resumeTurns(r.Log, r.At)
			}
			if err == nil && !f.gone {
				r.At = max(r.At, until)
			}
			return err
		})
	}
}

// yields returns a yield function that also sets At.
func (r *Reading) yields(yield func(Entry, error) bool) func(Entry, error) bool {
	return func(e Entry, err error) bool {
		if err == nil {
			r.At = e.Seq
		}
		return yield(e, err)
	}
}

// resumeTurns reads the turns that are under way, and yields the recorded events after after.
func (f *follower) resumeTurns(log openLog, after event.Seq) error {
	if after = min(after, f.head); after > 0 {
		runs, err := log.OpenRuns(f.ctx)
		if err != nil {
			return err
		}
		for _, run := range runs {
			if err := f.recallRun(run, after); err != nil {
				return err
			}
		}
	}
	return f.yieldEach(event.Query{After: after, Until: f.head})
}

// recallRun reads the recorded events of a run and yields nothing.
func (f *follower) recallRun(run event.RunID, until event.Seq) error {
	f.muted = true
	defer func() { f.muted = false }()
	return f.yieldEach(event.Query{Run: run, Until: until})
}

// yieldSome yields a limited number of the selected events, and reports whether more may follow.
func (f *follower) yieldSome(q event.Query) (more bool, err error) {
	q.Limit = readMost
	left, last := q.Limit, q.After
	for e, err := range f.log.Events(f.ctx, q) {
		if err != nil {
			return false, err
		}
		if err := f.yieldEvent(e); err != nil || f.gone {
			return false, err
		}
		left, last = left-1, e.Seq
	}
	if more = left == 0; more {
		f.head = last
	} else {
		f.head = q.Until
	}
	return more, nil
}

// A follower leaves the processors to the run. While events arrive, it reads readMost events at a time, and
// then rests restTimes as long as that took, and mostRest at most. In a flood of events it falls back. After
// the flood it reads the rest at once.
const (
	readMost  = 256
	restTimes = 9
	mostRest  = 500 * time.Millisecond
)

// restFor sleeps in proportion to the time that the work took.
func (f *follower) restFor(took time.Duration) error {
	timer := time.NewTimer(min(restTimes*took, mostRest))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-f.ctx.Done():
		return f.ctx.Err()
	}
}
