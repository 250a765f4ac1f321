package kernel

import (
	"context"
	"errors"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"time"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/store"
	"github.com/perlica/perlica/interaction"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/provider"
)

// The notices that only Follow yields: who runs turns knows these things.
type (
	// Received is an input that was accepted.
	Received struct {
		Run     event.RunID
		Session event.SessionID
		Input   Input
		At      time.Time
		Pruned  bool // all but the ids is no longer on record
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
	Held struct{ *BusyError }
	// Freed says that nobody holds the session. Where a turn was under way Run names it: its
	// process is gone, and the next start that may spend calls records its outcome.
	Freed struct{ Run event.RunID }
)

func (Received) notice() {}
func (Stopping) notice() {}
func (Finished) notice() {}
func (Held) notice()     {}
func (Freed) notice()    {}

// holderEvery is how often whoever follows a session looks who holds it, and holderRest how
// often when the system will tell of a lock that is given up.
const (
	holderEvery = time.Second
	holderRest  = 5 * time.Minute
)

// Follow yields what happens in a session, whatever process it happens in, until ctx ends or
// the log cannot be read: first the newest turns as far as they are on record, then, and as to
// who holds the session, what comes. A question is Answerable if nobody has answered it yet. It
// only reads: nothing is recovered, answered or kept from anybody, and while nothing happens it
// costs next to nothing. locks is the folder in which runs and conversations hold their locks.
func Follow(ctx context.Context, log *store.Reader, locks string, session event.SessionID, turns int) iter.Seq2[Notice, error] {
	return func(yield func(Notice, error) bool) {
		f := &follower{
			ctx: ctx, log: log, lock: sessionLockPath(locks, string(session)), session: session,
			yield: yield, questions: map[event.InteractionID]interaction.Question{},
		}
		if err := f.follow(turns); err != nil && ctx.Err() == nil && !f.gone {
			yield(nil, err)
		}
	}
}

// Follow yields what happens in a session of this context, as the function of this name does.
func (r *Runner) Follow(ctx context.Context, session event.SessionID, turns int) iter.Seq2[Notice, error] {
	return Follow(ctx, &r.log.Reader, r.opt.Paths.Locks, session, turns)
}

// follower turns the events of a session into notices.
type follower struct {
	ctx     context.Context // of the iteration, which is all of the follower's life
	log     *store.Reader
	lock    string
	session event.SessionID
	yield   func(Notice, error) bool
	gone    bool // nobody listens any more

	res       Result // of the turn under way; without a Run there is none
	prompted  bool   // what the agent says belongs to that turn
	at        time.Time
	questions map[event.InteractionID]interaction.Question
}

// follow returns nil when nobody listens any more.
func (f *follower) follow(turns int) error {
	changes, err := f.log.Changes(f.ctx, filepath.Dir(f.lock)) // before the head is read: nothing may lie between
	if err != nil {
		return err
	}
	defer func() { _ = changes.Close() }() // nothing was written
	holder, err := f.holder()
	if err != nil {
		return err
	}
	head, err := f.head()
	if err == nil {
		err = f.replay(turns, head)
	}
	if err != nil {
		return err
	}
	f.tellHolder(holder)
	for !f.gone {
		most := holderEvery
		if changes.Quiet() {
			most = holderRest
		}
		changed, err := changes.Wait(f.ctx, most)
		if err != nil {
			return err
		}
		// Whoever is gone now has written all it will ever write.
		now, err := f.holder()
		if err != nil {
			return err
		}
		if changed {
			to, err := f.head()
			if err == nil {
				err = f.tellAll(event.Query{Session: f.session, After: head, Until: to})
			}
			if err != nil {
				return err
			}
			head = to
		}
		if (now == nil) != (holder == nil) || now != nil && *now != *holder {
			f.tellHolder(now)
		}
		holder = now
	}
	return nil
}

func (f *follower) head() (event.Seq, error) {
	e, _, err := f.log.Last(f.ctx, event.Query{})
	return e.Seq, err
}

// replay tells the newest turns as far as they are on record at head.
func (f *follower) replay(turns int, head event.Seq) error {
	if turns <= 0 || head == 0 {
		return nil
	}
	var runs []event.RunID
	q := event.Query{Session: f.session, Until: head, Types: []event.Type{event.MessageReceived}, Newest: true, Limit: turns}
	for e, err := range f.log.Events(f.ctx, q) {
		if err != nil {
			return err
		}
		runs = append(runs, e.Run)
	}
	for i := len(runs) - 1; i >= 0 && !f.gone; i-- {
		if err := f.tellAll(event.Query{Run: runs[i], Until: head}); err != nil {
			return err
		}
	}
	return nil
}

// holder returns who holds the session, or nil.
func (f *follower) holder() (*BusyError, error) {
	if _, err := os.Stat(f.lock); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	held, err := isLocked(f.lock)
	if err != nil || !held {
		return nil, err
	}
	b := &BusyError{}
	_ = errors.As(busy(f.lock), &b)
	return b, nil
}

func (f *follower) tellHolder(b *BusyError) {
	if b == nil {
		f.put(Freed{Run: f.res.Run})
		return
	}
	f.put(Held{b})
}

func (f *follower) put(n Notice) { f.gone = f.gone || !f.yield(n, nil) }

func (f *follower) tellAll(q event.Query) error {
	for e, err := range f.log.Events(f.ctx, q) {
		if err != nil {
			return err
		}
		if err := f.tell(e); err != nil {
			return err
		}
		if f.gone {
			return nil
		}
	}
	return nil
}

// tell tells what one event means to somebody who watches.
func (f *follower) tell(e event.Event) error {
	if e.Run == "" || e.Class == event.Frame && e.Run != f.res.Run {
		return nil // set-up, and what an agent says between turns
	}
	if e.Class == event.Frame {
		if e.Type == event.NotificationReceived && f.prompted {
			if u, ok := provider.ParseUpdate(e.Payload); ok {
				f.put(Updated{u})
			}
		}
		return nil
	}
	if e.Type == event.MessageReceived {
		f.finish()
		f.res, f.prompted = Result{Run: e.Run}, false
	}
	if e.Run == f.res.Run {
		if err := f.res.Apply(e); err != nil {
			f.unreadable(e)
			return nil
		}
	}
	return f.fact(e)
}

// unreadable tells of a fact that cannot be decoded: a later version wrote it.
func (f *follower) unreadable(e event.Event) {
	f.put(Warned{Subtype: "unreadable", Detail: "an event that this version cannot read: " + string(e.Type)})
}

func (f *follower) fact(e event.Event) error {
	switch e.Type {
	case event.MessageReceived:
		told(f, e, func(m fact.MessageReceived) Notice {
			return Received{Run: e.Run, Session: e.Session, At: e.Time, Pruned: e.Payload == nil, Input: Input{
				ID: e.Input, Text: m.Text, Attachments: m.Attachments, Source: m.Source, Sender: m.Sender,
			}}
		})
	case event.Requested:
		f.prompted = true
		f.put(Started{Result: f.res})
	case event.InteractionRequested:
		return f.asked(e)
	case event.InteractionAnswered:
		told(f, e, func(a interaction.Answer) Notice { return Closed{Question: f.question(e), Answer: &a} })
	case event.InteractionLapsed:
		told(f, e, func(l interaction.Resolution) Notice { return Closed{Question: f.question(e), Reason: l.Reason} })
	case event.PolicyDecided:
		told(f, e, func(p fact.PolicyDecided) Notice {
			return Decided{Title: p.Title, Effect: p.Effect, By: p.By, Why: p.Why}
		})
	case event.ToolBlocked:
		told(f, e, func(b fact.ToolBlocked) Notice { return Blocked{Method: b.Method} })
	case event.CancelRequested:
		told(f, e, func(s Stop) Notice { return Stopping{Run: e.Run, Stop: s} })
	case event.Responded, event.ProviderError, event.OutcomeUnknown:
		f.prompted, f.at = false, e.Time
	case event.CallEnforced:
		f.finish()
	}
	return nil
}

// told tells what a fact says, if it can be read. Of a payload that was removed it tells the
// zero value: that something happened is known all the same.
func told[T any](f *follower, e event.Event, notice func(T) Notice) {
	var v T
	if e.Payload != nil {
		var err error
		if v, err = fact.Decode[T](e); err != nil {
			f.unreadable(e)
			return
		}
	}
	f.put(notice(v))
}

// asked tells of a question, and whether an answer would still count.
func (f *follower) asked(e event.Event) error {
	closed, err := interaction.Closed(f.ctx, f.log, e.Interaction)
	if err != nil {
		return err
	}
	told(f, e, func(q interaction.Question) Notice {
		q.ID, q.Refs, q.Asked, q.Writer = e.Interaction, e.Refs, e.Time, e.Writer
		f.questions[q.ID] = q
		return Asked{Question: q, Answerable: closed == nil && q.Expires.After(q.Asked)}
	})
	return nil
}

// question returns the question that an event closes, and forgets it.
func (f *follower) question(e event.Event) interaction.Question {
	q, ok := f.questions[e.Interaction]
	if !ok {
		q = interaction.Question{ID: e.Interaction, Refs: e.Refs}
	}
	delete(f.questions, e.Interaction)
	return q
}

// finish tells the outcome of the turn under way, once it has one and all that belongs to it.
func (f *follower) finish() {
	if f.res.Run != "" && f.res.Outcome != "" {
		f.put(Finished{Result: f.res, At: f.at})
		f.res = Result{}
	}
}
