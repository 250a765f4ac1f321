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

// An Entry is a notice together with its position in the log.
type Entry struct {
	Seq    event.Seq  // the number of the event; for Held and Freed, of the newest event
	Refs   event.Refs // the references of the event; for Held and Freed, only the session
	Notice Notice
}

// holderEvery is the interval at which a follower checks for the process that holds a session's lock. holderRest is the
// interval on systems that report when a lock becomes free.
const (
	holderEvery = time.Second
	holderRest  = 5 * time.Minute
)

// copyEvery is the interval at which a follower reads the copy of another machine's log.
const copyEvery = time.Second

// Follow yields the events of a session from all processes, until ctx ends or the log cannot be read. It begins with
// the recorded part of the newest turns. Then it yields each new event, and each change of the session's holder, which
// is the process with the session's lock. A question is Answerable if it has no answer yet. Follow only reads. While
// nothing happens, it costs almost nothing. locks is the folder of the locks of runs and conversations.
//
// A log of another machine, such as the copy of a worker's log on a team's hub, is read once a second. Its holder is
// unknown here, and its questions are answered on the other machine.
func Follow(ctx context.Context, log event.Reader, locks string, session event.SessionID,
	turns int) iter.Seq2[Notice, error] {
	return func(yield func(Notice, error) bool) {
		f := newFollower(log, locks)
		f.session = session
		past := func(put putEntry) error { return f.putNewestTurns(ctx, turns, put) }
		for e, err := range entries(ctx, func(put putEntry) error { return f.followLog(ctx, past, put) }) {
			if !yield(e.Notice, err) {
				return
			}
		}
	}
}

// openLog is a log that also lists its runs without an outcome.
type openLog interface {
	event.Reader
	OpenRuns(ctx context.Context) ([]event.RunID, error)
}

// putEntry passes an entry to the caller's loop. It returns errLeft if the caller has left the loop.
type putEntry func(Entry) error

var errLeft = errors.New("the caller's loop has ended")

// entries calls the function "read", which passes each entry to its argument of type putEntry. entries yields these
// entries, and then the error of "read", unless the caller has left the loop or ctx has ended.
func entries(ctx context.Context, read func(putEntry) error) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		err := read(func(e Entry) error {
			if !yield(e, nil) {
				return errLeft
			}
			return nil
		})
		if err != nil && !errors.Is(err, errLeft) && ctx.Err() == nil {
			yield(Entry{}, err)
		}
	}
}

// follower converts the events of one session or of all sessions to notices.
type follower struct {
	log     event.Reader
	locks   string
	own     *store.Reader   // the log if it is a file of this machine; nil for a copy of another machine's log
	session event.SessionID // empty means all sessions

	head    event.Seq // all events up to head were read
	known   event.Seq // the newest event when the follower last asked the log
	turns   map[event.SessionID]*followed
	holders map[event.SessionID]*filelock.BusyError
}

// followed is the newest turn of a session.
type followed struct {
	*Record
	over bool // true after the notice Finished
	lost bool // true after the notice Freed, because the turn's process has ended
}

func newFollower(log event.Reader, locks string) *follower {
	own, _ := log.(*store.Reader)
	return &follower{log: log, own: own, locks: locks, turns: map[event.SessionID]*followed{},
		holders: map[event.SessionID]*filelock.BusyError{}}
}

// followLog calls the function "past", which passes the recorded entries to put. Then it passes each new entry to
// put, until ctx ends or the caller leaves the loop.
func (f *follower) followLog(ctx context.Context, past func(putEntry) error, put putEntry) error {
	wait, done, err := f.news(ctx) // before the head is read, so that no event is missed
	if err != nil {
		return err
	}
	defer done()
	if f.head, err = f.newest(ctx); err != nil {
		return err
	}
	f.known = f.head
	if err := past(put); err != nil {
		return err
	}
	for changed := true; ; {
		began := time.Now()
		// The holders are read before the events, because an ended process has already written its last event.
		holders, err := f.lookAtHolders()
		if err != nil {
			return err
		}
		if changed {
			came, err := f.putNews(ctx, put)
			if err == nil && came {
				err = restFor(ctx, time.Since(began))
			}
			if err != nil {
				return err
			}
			if f.head < f.known {
				continue
			}
		}
		if err := f.putHolders(holders, put); err != nil {
			return err
		}
		if changed, err = wait(); err != nil {
			return err
		}
	}
}

// news returns a function that waits until something may have changed, and a function that stops the waiting.
func (f *follower) news(ctx context.Context) (wait func() (bool, error), done func(), err error) {
	if f.own == nil {
		ticker := time.NewTicker(copyEvery)
		return func() (bool, error) {
			select {
			case <-ctx.Done():
				return false, ctx.Err()
			case <-ticker.C:
				return true, nil
			}
		}, ticker.Stop, nil
	}
	changes, err := f.own.Changes(ctx, f.locks)
	if err != nil {
		return nil, nil, err
	}
	return func() (bool, error) {
		most := holderEvery
		if changes.Quiet() {
			most = holderRest
		}
		return changes.Wait(ctx, most)
	}, func() { _ = changes.Close() }, nil // nothing was written, so the error does not matter
}

// A follower must not slow down the run. While events arrive, it reads at most readMost events at a time. Then it
// pauses for restTimes the time of reading, but at most mostRest. So the follower may lag during many events. After
// them it reads the rest without pauses.
const (
	readMost  = 256
	restTimes = 9
	mostRest  = 500 * time.Millisecond
)

// putNews passes the entries of at most readMost events after the head to the function put. The result "came" means
// that the log has new events since the last call.
func (f *follower) putNews(ctx context.Context, put putEntry) (came bool, err error) {
	newest, err := f.newest(ctx)
	if err != nil {
		return false, err
	}
	came, f.known = newest > f.known, max(f.known, newest)
	if f.head == f.known {
		return false, nil
	}
	left := readMost
	q := event.Query{Session: f.session, After: f.head, Until: f.known, Limit: readMost}
	for e, err := range f.log.Events(ctx, q) {
		if err == nil {
			err = f.putEvent(ctx, e, put)
		}
		if err != nil {
			return false, err
		}
		left, f.head = left-1, e.Seq
	}
	if left > 0 {
		f.head = f.known
	}
	return came, nil
}

// restFor pauses in proportion to the duration of the work.
func restFor(ctx context.Context, took time.Duration) error {
	timer := time.NewTimer(min(restTimes*took, mostRest))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (f *follower) newest(ctx context.Context) (event.Seq, error) {
	e, _, err := f.log.Last(ctx, event.Query{})
	return e.Seq, err
}

// putNewestTurns passes the recorded entries of the session's newest turns to the function put.
func (f *follower) putNewestTurns(ctx context.Context, turns int, put putEntry) error {
	if turns <= 0 || f.head == 0 {
		return nil
	}
	var runs []event.RunID
	q := event.Query{Session: f.session, Until: f.head, Types: []event.Type{event.MessageReceived}, Newest: true,
		Limit: turns}
	for e, err := range f.log.Events(ctx, q) {
		if err != nil {
			return err
		}
		runs = append(runs, e.Run)
	}
	for _, run := range slices.Backward(runs) {
		if err := f.putEvents(ctx, event.Query{Run: run, Until: f.head}, put); err != nil {
			return err
		}
	}
	return nil
}

// lookAtHolders returns the holders of the sessions with a turn, or of the one followed session. nil means that no
// process holds a session's lock.
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

// putHolders passes notices to the function put: Held for a session with a new holder, and Freed for a session
// without one. A turn also gets Freed after the end of its process.
func (f *follower) putHolders(holders map[event.SessionID]*filelock.BusyError, put putEntry) error {
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
		if err := put(e); err != nil {
			return err
		}
	}
	return nil
}

func (f *follower) putEvents(ctx context.Context, q event.Query, put putEntry) error {
	for e, err := range f.log.Events(ctx, q) {
		if err == nil {
			err = f.putEvent(ctx, e, put)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// putEvent passes the notice of one event to the function put.
func (f *follower) putEvent(ctx context.Context, e event.Event, put putEntry) error {
	if n := flowNotice(e); n != nil { // the event of a flow belongs to no turn
		return put(Entry{Seq: e.Seq, Refs: e.Refs, Notice: n})
	}
	t := f.turns[e.Session]
	if f.session == "" && e.Run != "" && e.Type != event.MessageReceived &&
		(t == nil || e.Type == event.Requested && t.Run != e.Run) {
		// The input of this run came before the first wanted event. The run was not in the list of open runs: either it
		// had not begun, or it has ended by now.
		if err := f.recallRun(ctx, e.Run, e.Seq-1); err != nil {
			return err
		}
	}
	n := f.noticeOf(e)
	if asked, ok := n.(Asked); ok {
		closed, err := interaction.Closed(ctx, f.log, e.Interaction)
		if err != nil {
			return err
		}
		asked.Answerable = asked.Answerable && closed == nil
		n = asked
	}
	if n == nil {
		return nil
	}
	return put(Entry{Seq: e.Seq, Refs: e.Refs, Notice: n})
}

// recallRun reads the events of a run, without putting any notice, so that the follower knows the turn.
func (f *follower) recallRun(ctx context.Context, run event.RunID, until event.Seq) error {
	for e, err := range f.log.Events(ctx, event.Query{Run: run, Until: until}) {
		if err != nil {
			return err
		}
		f.noticeOf(e)
	}
	return nil
}

// noticeOf applies an event to its turn, and returns the notice or nil.
func (f *follower) noticeOf(e event.Event) Notice {
	if e.Run == "" {
		return nil
	}
	t := f.turns[e.Session]
	if e.Type == event.MessageReceived {
		t = newFollowed(e.Run)
		f.turns[e.Session] = t
	}
	if t == nil || t.Run != e.Run || t.over { // an event of an earlier turn, or between two turns
		t = newFollowed(e.Run)
	}
	n := t.Notice(e)
	t.Said.text.Reset() // the outcome has the whole text, so the follower need not store another copy
	t.Said.Blocks = nil
	if _, ok := n.(Finished); ok {
		t.over = true
		t.Record = &Record{Result: Result{Run: e.Run}}
	}
	return n
}

func newFollowed(run event.RunID) *followed {
	return &followed{Record: &Record{Result: Result{Run: run}}}
}
