package kernel

import (
	"context"
	"iter"
	"time"

	"github.com/perlica/perlica/eventlog/event"
)

// Reading reads what happens in all sessions of a log, behind an event. It is for one goroutine at a time.
type Reading struct {
	Log   openLog
	Locks string // the folder in which runs and conversations hold their locks; Until needs none

	// At is the event behind which it begins, and later up to where it is: the newest event that led to an Entry,
	// or all that Until was asked for.
	At event.Seq

	f *follower // of Until, once it has begun: what came before in the turns under way
}

// Follow yields what happens, under the same conditions as the function of this name: first what is on record,
// then what comes. A caller that stops and begins again at the Seq of the last Entry misses nothing and gets no
// event twice. Held and Freed are not on record: they are yielded for each session in which a turn is or was under
// way, as of now.
func (r *Reading) Follow(ctx context.Context) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		f := newFollower(ctx, r.Log, r.Locks, r.yields(yield))
		f.run(func() error { return f.follow(func() error { return f.resume(r.Log, r.At) }) })
	}
}

// Until yields what is on record up to the event until, and neither Held nor Freed. A caller that stops may ask for
// the next Entry, and for more behind it: what of a turn under way came before is read once. After an error, and
// when ctx has ended, nothing more may be asked for.
func (r *Reading) Until(ctx context.Context, until event.Seq) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		begun := r.f != nil
		if !begun {
			r.f = newFollower(ctx, r.Log, r.Locks, nil)
		}
		f := r.f
		f.ctx, f.head, f.gone, f.yield = ctx, until, false, r.yields(yield)
		f.run(func() (err error) {
			if begun {
				err = f.each(event.Query{After: r.At, Until: until})
			} else {
				err = f.resume(r.Log, r.At)
			}
			if err == nil && !f.gone {
				r.At = max(r.At, until)
			}
			return err
		})
	}
}

// yields is yield, and keeps where it is.
func (r *Reading) yields(yield func(Entry, error) bool) func(Entry, error) bool {
	return func(e Entry, err error) bool {
		if err == nil {
			r.At = e.Seq
		}
		return yield(e, err)
	}
}

// resume reads the turns that are under way, and yields what is on record since after.
func (f *follower) resume(log openLog, after event.Seq) error {
	if after = min(after, f.head); after > 0 {
		runs, err := log.OpenRuns(f.ctx)
		if err != nil {
			return err
		}
		for _, run := range runs {
			if err := f.recall(run, after); err != nil {
				return err
			}
		}
	}
	return f.each(event.Query{After: after, Until: f.head})
}

// recall reads what is on record of a run, and yields nothing.
func (f *follower) recall(run event.RunID, until event.Seq) error {
	f.muted = true
	defer func() { f.muted = false }()
	return f.each(event.Query{Run: run, Until: until})
}

// some yields what the query selects, or the first of it, and reports whether there may be more.
func (f *follower) some(q event.Query) (more bool, err error) {
	q.Limit = readMost
	left, last := q.Limit, q.After
	for e, err := range f.log.Events(f.ctx, q) {
		if err != nil {
			return false, err
		}
		if err := f.event(e); err != nil || f.gone {
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

// What is followed goes first: while more comes, a follower reads so many events at a time, and rests so many times as
// long as that took, but no longer than mostRest. In a flood it comes behind, and the run has the processors. What has
// come when the flood is over is read at once.
const (
	readMost  = 256
	restTimes = 9
	mostRest  = 500 * time.Millisecond
)

// rest leaves the processors to others after something that took so long.
func (f *follower) rest(took time.Duration) error {
	timer := time.NewTimer(min(restTimes*took, mostRest))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-f.ctx.Done():
		return f.ctx.Err()
	}
}
