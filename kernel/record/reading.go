package record

import (
	"context"
	"iter"

	"github.com/perlica/perlica/eventlog/event"
)

// Reading reads the events of all sessions of a log, after a given event. Only one goroutine at a time may use it.
type Reading struct {
	Log   openLog
	Locks string // the folder of the locks of runs and conversations; only Follow needs it

	// At is the event after which the reading begins. While reading, At becomes the newest event with an Entry, or the
	// end of the last Until.
	At event.Seq

	f *follower // the follower that Until uses; it knows the running turns
}

// Follow yields the recorded events and then the new ones, as the function Follow does for one session. A caller may
// stop and begin again at the Seq of the last Entry. It then misses no event and gets no event twice. Held and Freed
// are not recorded. They describe the present state of each session that has or had a running turn.
func (r *Reading) Follow(ctx context.Context) iter.Seq2[Entry, error] {
	return entries(ctx, func(put putEntry) error {
		f := newFollower(r.Log, r.Locks)
		return f.followLog(ctx, func(put putEntry) error { return r.resumeTurns(ctx, f, put) }, r.moving(put))
	})
}

// Until yields the recorded events up to the event with this Seq, without Held and Freed. A caller that leaves the loop
// may call Until again for the next entries or for later events. After an error or the end of ctx, the Reading cannot
// be used.
func (r *Reading) Until(ctx context.Context, until event.Seq) iter.Seq2[Entry, error] {
	return entries(ctx, func(put putEntry) (err error) {
		if r.f == nil {
			r.f = newFollower(r.Log, r.Locks)
			r.f.head = until
			err = r.resumeTurns(ctx, r.f, r.moving(put))
		} else {
			r.f.head = until
			err = r.f.putEvents(ctx, event.Query{After: r.At, Until: until}, r.moving(put))
		}
		if err == nil {
			r.At = max(r.At, until)
		}
		return err
	})
}

// moving returns a putEntry that also sets At.
func (r *Reading) moving(put putEntry) putEntry {
	return func(e Entry) error {
		r.At = e.Seq
		return put(e)
	}
}

// resumeTurns reads the turns that were running at At. Then it passes the recorded entries from At to the head to
// the function put.
func (r *Reading) resumeTurns(ctx context.Context, f *follower, put putEntry) error {
	after := min(r.At, f.head)
	if after > 0 {
		runs, err := r.Log.OpenRuns(ctx)
		if err != nil {
			return err
		}
		for _, run := range runs {
			if err := f.recallRun(ctx, run, after); err != nil {
				return err
			}
		}
	}
	return f.putEvents(ctx, event.Query{After: after, Until: f.head}, put)
}
