// Package queue holds the inputs that wait in a session whose turn is running or that another process has open.
//
// An input is on disk when Add returns, and the log alone determines the queue. An input that was called or
// withdrawn no longer waits. The package makes no call. The process that holds the session takes the inputs in
// their order, and each input id is called at most once.
package queue

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/perlica/perlica/eventlog"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/message"
	"github.com/perlica/perlica/kernel/fact"
)

// Input is an input that waits.
type Input struct {
	ID      event.InputID
	Session event.SessionID
	fact.MessageQueued
}

// Add and Withdraw return these errors.
var (
	ErrCalled    = message.New("queue.called", "the input was called before")
	ErrQueued    = message.New("queue.queued", "an input with this id was queued before")
	ErrWithdrawn = message.New("queue.withdrawn", "the input no longer waits")
)

// ends are the events after which an input no longer waits.
var ends = []event.Type{event.MessageWithdrawn, event.Requested}

// Queued returns the event that an input waits in a session. It is for a caller that appends the event together
// with its own events, and that knows the input's id to be new. The session may be empty, if it is not known yet.
func Queued(session event.SessionID, id event.InputID, m fact.MessageQueued) event.Event {
	return event.NewFact(event.MessageQueued, "user", event.Refs{Session: session, Input: id}, m)
}

// Withdrawn returns the event that an input no longer waits. It is for a caller that has taken the input out of the
// queue.
func Withdrawn(session event.SessionID, id event.InputID, m fact.MessageWithdrawn) event.Event {
	return event.NewFact(event.MessageWithdrawn, "user", event.Refs{Session: session, Input: id}, m)
}

// Add appends an input to the queue of a session. It returns ErrCalled if any session called its id, and ErrQueued
// if the session's queue has or had it.
func Add(ctx context.Context, log *eventlog.Log, session event.SessionID, id event.InputID,
	m fact.MessageQueued) error {
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

// Withdraw removes an input from a session's queue. It returns ErrWithdrawn if the input no longer waits there.
// Only the process that calls the session's inputs may use it.
func Withdraw(
	ctx context.Context, log *eventlog.Log, session event.SessionID, id event.InputID, m fact.MessageWithdrawn,
) error {
	waits := event.Query{Session: session, Input: id, Types: []event.Type{event.MessageQueued}}
	queued, _, err := log.Last(ctx, waits)
	if err != nil {
		return err
	}
	unless := event.Query{Session: session, Input: id, Types: ends, After: queued.Seq}
	return unlessHas(ctx, log, unless, ErrWithdrawn, Withdrawn(session, id, m))
}

// unlessHas appends an event unless the log has an event that forbids it.
func unlessHas(ctx context.Context, log *eventlog.Log, unless event.Query, found error, e event.Event) error {
	_, err := log.AppendUnless(ctx, unless, e)
	var conflict *eventlog.ConflictError
	if errors.As(err, &conflict) {
		return fmt.Errorf("%w: %s", found, e.Input)
	}
	return err
}

// Find returns the input with this id if it waits in a session. It does not find an input whose text was pruned.
func Find(ctx context.Context, log event.Reader, id event.InputID) (in Input, ok bool, err error) {
	e, ok, err := log.Last(ctx, event.Query{Input: id, Types: append([]event.Type{event.MessageQueued}, ends...)})
	if err != nil || !ok || e.Type != event.MessageQueued {
		return in, false, err
	}
	m, err := fact.Decode[fact.MessageQueued](e)
	return Input{id, e.Session, m}, err == nil, nil
}

// A Queue holds the waiting inputs of a session, up to the last Read. It is for one goroutine at a time.
type Queue struct {
	Session event.SessionID // "" means all sessions
	Inputs  []Input         // in the order of their arrival

	read event.Seq // the last event that was read
}

// Read reads the events since the last Read. It skips an input whose text was pruned.
func (q *Queue) Read(ctx context.Context, log event.Reader) error {
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
			q.Inputs = append(q.Inputs, Input{e.Input, e.Session, m})
		}
	}
	return nil
}
