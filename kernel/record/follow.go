package record

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

// An Entry is a notice with its place in the log.
type Entry struct {
	Seq    event.Seq  // the number of the event; for Held and Freed, of the newest event
	Refs   event.Refs // the references of the event; for Held and Freed, only the session
	Notice Notice
}

// holderEvery is the interval at which a follower looks for the holder of a session. holderRest is the
// interval on systems that report a freed lock.
const (
	holderEvery = time.Second
	holderRest  = 5 * time.Minute
)

// copyEvery is the interval at which a follower reads a log of another machine.
const copyEvery = time.Second

// Follow yields the events of a session from all processes, until ctx ends or the log cannot be read. First it
// yields the newest turns as far as they are on record. Then it yields each new event and each change of the
// session's holder. A question is Answerable if it has no answer yet. Follow only reads, and costs almost
// nothing while nothing happens. locks is the folder of the locks of runs and conversations.
//
// A log of another machine, such as the copy of a worker's log on a team's hub, is read once a second. Its
// holder is unknown here, and its questions are answered elsewhere.
func Follow(ctx context.Context, log event.Reader, locks string, session event.SessionID,
	turns int) iter.Seq2[Notice, error] {
	return func(yield func(Notice, error) bool) {
		f := newFollower(ctx, log, locks, func(e Entry, err error) bool { return yield(e.Notice, err) })
		f.session = session
		f.yieldError(func() error { return f.followLog(func() error { return f.replayTurns(turns) }) })
	}
}

// openLog is a log with a list of its runs without an outcome.
type openLog interface {
	event.Reader
	OpenRuns(ctx context.Context) ([]event.RunID, error)
}

// follower turns the events of one session or of all sessions into notices.
type follower struct {
	ctx     context.Context // the context of the iteration, which lasts as long as the follower
	log     event.Reader
	locks   string
	own     *store.Reader   // the log if it is a file of this machine, otherwise nil
	session event.SessionID // empty means all sessions
	yield   func(Entry, error) bool
	gone    bool // the caller's loop has ended
	muted   bool // events are read and not yielded

	head    event.Seq // every event up to head was yielded
	known   event.Seq // the newest event at the last look
	turns   map[event.SessionID]*followed
	holders map[event.SessionID]*filelock.BusyError
}

// followed is the newest turn of a session.
type followed struct {
	*Record
	over bool // Finished was yielded
	lost bool // Freed was yielded: the turn's process is gone
}

func newFollower(ctx context.Context, log event.Reader, locks string, yield func(Entry, error) bool) *follower {
	own, _ := log.(*store.Reader)
	return &follower{
		ctx: ctx, log: log, own: own, locks: locks, yield: yield, turns: map[event.SessionID]*followed{},
		holders: map[event.SessionID]*filelock.BusyError{},
	}
}

// yieldError calls read and yields its error, unless the caller's loop or ctx ended.
func (f *follower) yieldError(read func() error) {
	if err := read(); err != nil && f.ctx.Err() == nil && !f.gone {
		f.yield(Entry{}, err)
	}
}

// followLog runs until the caller's loop or ctx ends. begin yields the recorded events up to the head.
func (f *follower) followLog(begin func() error) error {
	wait, done, err := f.news() // before the head is read, so that no event falls between
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
		behind, err := f.yieldRound(changed)
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

// news returns a function that waits for a possible change, and a function that ends the waiting.
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

// yieldRound yields the events since the last round, and then the holders of the sessions. behind means that more
// events are ready, and the caller must not wait.
func (f *follower) yieldRound(changed bool) (behind bool, err error) {
	began := time.Now()
	holders, err := f.lookAtHolders() // first: a process that is gone now has written its last event
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
			if behind, err = f.yieldSome(event.Query{Session: f.session, After: f.head, Until: f.known}); err != nil || f.gone {
				return false, err
			}
		}
		if more {
			err = f.restFor(time.Since(began))
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

// replayTurns yields the newest turns of the session as far as they are on record.
func (f *follower) replayTurns(turns int) error {
	if turns <= 0 || f.head == 0 {
		return nil
	}
	var runs []event.RunID
	q := event.Query{Session: f.session, Until: f.head, Types: []event.Type{event.MessageReceived}, Newest: true,
		Limit: turns}
	for e, err := range f.log.Events(f.ctx, q) {
		if err != nil {
			return err
		}
		runs = append(runs, e.Run)
	}
	for i := len(runs) - 1; i >= 0 && !f.gone; i-- {
		if err := f.yieldEach(event.Query{Run: runs[i], Until: f.head}); err != nil {
			return err
		}
	}
	return nil
}

// lookAtHolders returns the holder of each relevant session. nil means that no process holds it.
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

// putHolders yields the changes of the sessions' holders, and the turns that lost their process.
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
		f.putEntry(e)
	}
}

func (f *follower) putEntry(e Entry) {
	if !f.muted && !f.gone {
		f.gone = !f.yield(e, nil)
	}
}

func (f *follower) yieldEach(q event.Query) error {
	for e, err := range f.log.Events(f.ctx, q) {
		if err != nil {
			return err
		}
		if err := f.yieldEvent(e); err != nil || f.gone {
			return err
		}
	}
	return nil
}

// yieldEvent yields the notice of one event.
func (f *follower) yieldEvent(e event.Event) error {
	if e.Run == "" {
		return nil
	}
	t := f.turns[e.Session]
	if f.session == "" && !f.muted && e.Type != event.MessageReceived &&
		(t == nil || e.Type == event.Requested && t.Run != e.Run) {
		// The run was accepted before the first wanted event. It was not on the list of open runs, so it had
		// not begun or has ended since.
		if err := f.recallRun(e.Run, e.Seq-1); err != nil {
			return err
		}
		t = f.turns[e.Session]
	}
	if e.Type == event.MessageReceived {
		t = newFollowed(e.Run)
		f.turns[e.Session] = t
	}
	if t == nil || t.Run != e.Run || t.over { // an event of an earlier turn, or between turns
		t = newFollowed(e.Run)
	}
	n := t.Notice(e)
	t.Said.text.Reset() // the outcome has all of it; for a long answer each follower would keep another copy
	t.Said.Blocks = nil
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
		f.putEntry(Entry{Seq: e.Seq, Refs: e.Refs, Notice: n})
	}
	return nil
}

func newFollowed(run event.RunID) *followed {
	return &followed{Record: &Record{Result: Result{Run: run}}}
}
