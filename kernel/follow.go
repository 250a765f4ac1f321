package kernel

import (
	"context"
	"errors"
	"io/fs"
	"iter"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/store"
	"github.com/perlica/perlica/interaction"
	"github.com/perlica/perlica/kernel/filelock"
)

// The notices that only Follow and Reading yield: the process that runs a turn knows these things.
type (
	// Received is an input that was accepted.
	Received struct {
		Run     event.RunID
		Session event.SessionID
		Input   Input
		At      time.Time
		Pruned  bool   // all but the ids is no longer on record
		Damage  string // the row that stands in the place of a damaged input
	}
	// Stopping says that a turn was asked to end, and by whom.
	Stopping struct {
		Run event.RunID
		Stop
	}
	// Finished says what became of an input.
	Finished struct {
		Result
		At time.Time
	}
	// Held says who holds the session: its agent, and the right to run turns in it.
	Held struct{ *filelock.BusyError }
	// Freed says that no process holds the session. Where a turn was under way Run names it: its
	// process is gone, and the next start that may make calls records its outcome.
	Freed struct{ Run event.RunID }
)

func (Received) notice() {}
func (Stopping) notice() {}
func (Finished) notice() {}
func (Held) notice()     {}
func (Freed) notice()    {}

// An Entry is a notice with its place in the log.
type Entry struct {
	Seq    event.Seq  // of the event that says so; for Held and Freed, of the newest event
	Refs   event.Refs // whose it is; for Held and Freed the session alone
	Notice Notice
}

// holderEvery is how often a follower looks who holds a session, and holderRest how often when the
// system reports a lock that is given up.
const (
	holderEvery = time.Second
	holderRest  = 5 * time.Minute
)

// copyEvery is how often a log elsewhere is looked at.
const copyEvery = time.Second

// Follow yields what happens in a session, whatever process it happens in, until ctx ends or
// the log cannot be read: first the newest turns as far as they are on record, then, and as to
// who holds the session, what comes. A question is Answerable if it has no answer yet. Follow
// only reads: it recovers, answers and locks nothing, and while nothing happens it costs next to
// nothing. locks is the folder in which runs and conversations hold their locks.
//
// A log that is no file of this machine's, such as the copy of a worker's on a team's hub, is looked at once a second:
// nobody knows here who holds the session, and its questions are answered elsewhere.
func Follow(ctx context.Context, log event.Reader, locks string, session event.SessionID, turns int) iter.Seq2[Notice, error] {
	return func(yield func(Notice, error) bool) {
		f := newFollower(ctx, log, locks, func(e Entry, err error) bool { return yield(e.Notice, err) })
		f.session = session
		f.run(func() error { return f.follow(func() error { return f.replay(turns) }) })
	}
}

// Follow yields what happens in a session of this context, as the function of this name does.
func (r *Runner) Follow(ctx context.Context, session event.SessionID, turns int) iter.Seq2[Notice, error] {
	return Follow(ctx, &r.log.Reader, r.opt.Paths.Locks, session, turns)
}

// FollowLog yields what happens in this context behind the event after, as Reading.Follow does.
func (r *Runner) FollowLog(ctx context.Context, after event.Seq) iter.Seq2[Entry, error] {
	return (&Reading{Log: &r.log.Reader, Locks: r.opt.Paths.Locks, At: after}).Follow(ctx)
}

// openLog is a log that knows which of its runs have no outcome.
type openLog interface {
	event.Reader
	OpenRuns(ctx context.Context) ([]event.RunID, error)
}

// follower turns the events of a session, or of all, into notices.
type follower struct {
	ctx     context.Context // of the iteration, which is all of the follower's life
	log     event.Reader
	locks   string
	own     *store.Reader   // the log, if it is one of this machine's
	session event.SessionID // empty: all
	yield   func(Entry, error) bool
	gone    bool // the caller's loop has ended
	muted   bool // events are read for what came before

	head    event.Seq // up to which all is yielded
	known   event.Seq // the newest event, when it was looked for last
	turns   map[event.SessionID]*followed
	holders map[event.SessionID]*filelock.BusyError
}

// followed is the newest turn of a session.
type followed struct {
	*Record
	over bool // Finished is yielded
	lost bool // Freed is yielded: its process is gone
}

func newFollower(ctx context.Context, log event.Reader, locks string, yield func(Entry, error) bool) *follower {
	own, _ := log.(*store.Reader)
	return &follower{
		ctx: ctx, log: log, own: own, locks: locks, yield: yield, turns: map[event.SessionID]*followed{},
		holders: map[event.SessionID]*filelock.BusyError{},
	}
}

// run reads, and yields the error by which that ended unless the caller's loop or ctx did.
func (f *follower) run(read func() error) {
	if err := read(); err != nil && f.ctx.Err() == nil && !f.gone {
		f.yield(Entry{}, err)
	}
}

// follow follows until the caller's loop or ctx ends; begin yields what is on record up to the head.
func (f *follower) follow(begin func() error) error {
	wait, done, err := f.news() // before the head is read: nothing may lie between
	if err != nil {
		return err
	}
	defer done()
	if f.head, err = f.newest(); err != nil {
		return err
	}
	f.known = f.head
	if err := begin(); err != nil {
		return err
	}
	for changed := true; !f.gone; {
		behind, err := f.round(changed)
		if err != nil || f.gone {
			return err
		}
		if changed = true; behind {
			continue
		}
		if changed, err = wait(); err != nil {
			return err
		}
	}
	return nil
}

// news returns what waits until something may have changed, and what ends that.
func (f *follower) news() (wait func() (bool, error), done func(), err error) {
	if f.own == nil {
		ticker := time.NewTicker(copyEvery)
		return func() (bool, error) {
			select {
			case <-f.ctx.Done():
				return false, f.ctx.Err()
			case <-ticker.C:
				return true, nil
			}
		}, ticker.Stop, nil
	}
	changes, err := f.own.Changes(f.ctx, f.locks)
	if err != nil {
		return nil, nil, err
	}
	return func() (bool, error) {
		most := holderEvery
		if changes.Quiet() {
			most = holderRest
		}
		return changes.Wait(f.ctx, most)
	}, func() { _ = changes.Close() }, nil // nothing was written
}

// round yields what was appended since the last one, then who holds the sessions. If it is behind, as there was
// more than is read at a time, nothing is to be waited for.
func (f *follower) round(changed bool) (behind bool, err error) {
	began := time.Now()
	holders, err := f.lookAtHolders() // first: a process that is gone by now has written all it will ever write
	if err != nil {
		return false, err
	}
	if changed {
		to, err := f.newest()
		if err != nil {
			return false, err
		}
		more := to > f.known
		if f.known = max(f.known, to); f.known > f.head {
			if behind, err = f.some(event.Query{Session: f.session, After: f.head, Until: f.known}); err != nil || f.gone {
				return false, err
			}
		}
		if more {
			err = f.rest(time.Since(began))
		}
		if behind || err != nil {
			return behind, err
		}
	}
	f.putHolders(holders)
	return false, nil
}

func (f *follower) newest() (event.Seq, error) {
	e, _, err := f.log.Last(f.ctx, event.Query{})
	return e.Seq, err
}

// replay yields the newest turns of the session as far as they are on record.
func (f *follower) replay(turns int) error {
	if turns <= 0 || f.head == 0 {
		return nil
	}
	var runs []event.RunID
	q := event.Query{Session: f.session, Until: f.head, Types: []event.Type{event.MessageReceived}, Newest: true, Limit: turns}
	for e, err := range f.log.Events(f.ctx, q) {
		if err != nil {
			return err
		}
		runs = append(runs, e.Run)
	}
	for i := len(runs) - 1; i >= 0 && !f.gone; i-- {
		if err := f.each(event.Query{Run: runs[i], Until: f.head}); err != nil {
			return err
		}
	}
	return nil
}

// lookAtHolders returns who holds each session whose holder matters, nil for none.
func (f *follower) lookAtHolders() (map[event.SessionID]*filelock.BusyError, error) {
	holders := map[event.SessionID]*filelock.BusyError{}
	if f.own == nil {
		return holders, nil
	}
	if f.session != "" {
		holders[f.session] = nil
	}
	for id, t := range f.turns {
		if f.session == "" && (!t.over && !t.lost || f.holders[id] != nil) {
			holders[id] = nil
		}
	}
	for id := range holders {
		lock := filelock.Session(f.locks, string(id))
		if _, err := os.Stat(lock); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		held, err := filelock.Held(lock)
		if err != nil {
			return nil, err
		}
		if held {
			holders[id] = filelock.Holder(lock)
		}
	}
	return holders, nil
}

// putHolders yields what is different of who holds the sessions, and whose turns are lost.
func (f *follower) putHolders(holders map[event.SessionID]*filelock.BusyError) {
	for _, id := range slices.Sorted(maps.Keys(holders)) {
		now, t := holders[id], f.turns[id]
		was, known := f.holders[id]
		under := t != nil && !t.over
		lost := now == nil && under && !t.lost
		same := known && (now == nil) == (was == nil) && (now == nil || *now == *was)
		f.holders[id] = now
		e := Entry{Seq: f.head, Refs: event.Refs{Session: id}}
		switch {
		case same && !lost:
			continue
		case now != nil:
			e.Notice = Held{now}
		case under:
			t.lost = true
			e.Notice = Freed{Run: t.Run}
		default:
			e.Notice = Freed{}
		}
		f.put(e)
	}
}

func (f *follower) put(e Entry) {
	if !f.muted && !f.gone {
		f.gone = !f.yield(e, nil)
	}
}

func (f *follower) each(q event.Query) error {
	for e, err := range f.log.Events(f.ctx, q) {
		if err != nil {
			return err
		}
		if err := f.event(e); err != nil || f.gone {
			return err
		}
	}
	return nil
}

// event yields what one event means to a person who watches.
func (f *follower) event(e event.Event) error {
	if e.Run == "" {
		return nil
	}
	t := f.turns[e.Session]
	if f.session == "" && !f.muted && e.Type != event.MessageReceived && (t == nil || e.Type == event.Requested && t.Run != e.Run) {
		// Accepted before the first event that was asked for. It was not on the list of open runs: then
		// it was not begun, or it has ended since.
		if err := f.recall(e.Run, e.Seq-1); err != nil {
			return err
		}
		t = f.turns[e.Session]
	}
	if e.Type == event.MessageReceived {
		t = newFollowed(e.Run)
		f.turns[e.Session] = t
	}
	if t == nil || t.Run != e.Run || t.over { // of an earlier turn, or what an agent says between turns
		t = newFollowed(e.Run)
	}
	n := t.Notice(e)
	t.Said.Reset() // all of it is in the outcome; of a long answer each who follows would keep another copy
	t.Blocks = nil
	switch asked := n.(type) {
	case Asked:
		closed, err := interaction.Closed(f.ctx, f.log, e.Interaction)
		if err != nil {
			return err
		}
		asked.Answerable = asked.Answerable && closed == nil
		n = asked
	case Finished:
		t.over = true
		t.Record = &Record{Result: Result{Run: e.Run}}
	}
	if n != nil {
		f.put(Entry{Seq: e.Seq, Refs: e.Refs, Notice: n})
	}
	return nil
}

func newFollowed(run event.RunID) *followed {
	return &followed{Record: &Record{Result: Result{Run: run}}}
}
