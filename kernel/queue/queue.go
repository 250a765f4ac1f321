// Package queue is the inputs that wait for their turn in a session that is open elsewhere, or whose
// turn is under way.
//
// It promises that an input is on disk when Add returns, that all of a queue follows from the log, and
// that an input which was called or withdrawn waits no more. It makes no call: the process that
// holds the session takes the inputs in their order, and one input id is called at most once.
package queue

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/perlica/perlica/eventlog"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/store"
	"github.com/perlica/perlica/kernel/fact"
)

// Input is an input that waits.
type Input struct {
	ID event.InputID
	fact.MessageQueued
}

// Why an input is not added, or not withdrawn.
var (
	ErrCalled    = errors.New("the input was called before")
	ErrQueued    = errors.New("an input with this id was queued before")
	ErrWithdrawn = errors.New("the input does not wait any more")
)

// ends are the events after which an input waits no more.
var ends = []event.Type{event.MessageWithdrawn, event.Requested}

// Queued is the event that an input waits in a session, and Withdrawn that it does so no more, for who appends
// them together with events of its own, and knows that the input's id is new, or that it has taken the input out
// of its line. The session may be empty: it is not known yet in which one it will be called.
func Queued(session event.SessionID, id event.InputID, m fact.MessageQueued) event.Event {
	return event.NewFact(event.MessageQueued, "user", event.Refs{Session: session, Input: id}, m)
}

// Withdrawn: see Queued.
func Withdrawn(session event.SessionID, id event.InputID, m fact.MessageWithdrawn) event.Event {
	return event.NewFact(event.MessageWithdrawn, "user", event.Refs{Session: session, Input: id}, m)
}

// Add puts an input behind those that wait in a session. It fails with ErrCalled if its id was
// called, in whatever session, and with ErrQueued if the session's queue has or had it.
func Add(ctx context.Context, log *eventlog.Log, session event.SessionID, id event.InputID, m fact.MessageQueued) error {
	intent, called, err := log.Intent(ctx, id)
	if err != nil {
		return err
	}
	if called {
		return fmt.Errorf("%w: run %s", ErrCalled, intent.Run)
	}
	unless := event.Query{Session: session, Input: id, Types: []event.Type{event.MessageQueued}}
	return unlessHas(ctx, log, unless, ErrQueued, Queued(session, id, m))
}

// Withdraw takes an input out of a session's queue. It fails with ErrWithdrawn if it does not wait
// there any more. Only who takes inputs out of the queue to have them called may use it.
func Withdraw(ctx context.Context, log *eventlog.Log, session event.SessionID, id event.InputID, m fact.MessageWithdrawn) error {
	unless := event.Query{Session: session, Input: id, Types: ends}
	return unlessHas(ctx, log, unless, ErrWithdrawn, Withdrawn(session, id, m))
}

// unlessHas appends an event unless the log has one that it must not follow.
func unlessHas(ctx context.Context, log *eventlog.Log, unless event.Query, found error, e event.Event) error {
	_, err := log.AppendUnless(ctx, unless, e)
	var conflict *eventlog.ConflictError
	if errors.As(err, &conflict) {
		return fmt.Errorf("%w: %s", found, e.Input)
	}
	return err
}

// A Queue is what waits in a session, as far as its log was read. It is for one goroutine at a time.
type Queue struct {
	Session event.SessionID
	Inputs  []Input // in the order in which they came

	read event.Seq // up to this event
}

// Read reads what has come since the last Read. An input whose text was pruned is passed over.
func (q *Queue) Read(ctx context.Context, log *store.Reader) error {
	query := event.Query{Session: q.Session, After: q.read, Types: append([]event.Type{event.MessageQueued}, ends...)}
	for e, err := range log.Events(ctx, query) {
		if err != nil {
			return err
		}
		q.read = e.Seq
		if e.Type != event.MessageQueued {
			q.Inputs = slices.DeleteFunc(q.Inputs, func(in Input) bool { return in.ID == e.Input })
			continue
		}
		if m, err := fact.Decode[fact.MessageQueued](e); err == nil {
			q.Inputs = append(q.Inputs, Input{e.Input, m})
		}
	}
	return nil
}
