// Package queue has the inputs that wait for their session.
//
// The session's turn is running, or another process has opened the session. An input is on disk when Add returns. The
// queue follows from the log alone. An input stops waiting when it is called or withdrawn. The package makes no call.
// The process that has locked the session calls the inputs in their order, each at most once.
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

// Input is a waiting input.
type Input struct {
	ID      event.InputID
	Session event.SessionID
	fact.MessageQueued
}

// These are the errors of Add and Withdraw.
var (
	ErrCalled    = message.New("queue.called", "the input was called before")
	ErrQueued    = message.New("queue.queued", "an input with this id was queued before")
	ErrWithdrawn = message.New("queue.withdrawn", "the input is no longer waiting")
)

// ends are the types of events after which an input no longer waits.
var ends = []event.Type{event.MessageWithdrawn, event.Requested}

// Queued returns an event that puts an input into a session's queue. The caller appends the event together with its
// own events, and has made sure that the input's id is new. If the session is not known yet, it may be empty.
func Queued(session event.SessionID, id event.InputID, m fact.MessageQueued) event.Event {
	return event.NewFact(event.MessageQueued, "user", event.Refs{Session: session, Input: id}, m)
}

// Withdrawn returns an event that removes an input from the queue. The caller makes sure that nobody calls the input.
func Withdrawn(session event.SessionID, id event.InputID, m fact.MessageWithdrawn) event.Event {
	return event.NewFact(event.MessageWithdrawn, "user", event.Refs{Session: session, Input: id}, m)
}

// Add puts an input into a session's queue. It returns ErrCalled if an input with this id was called in any session. It
// returns ErrQueued if such an input is or was in this session's queue.
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

// Withdraw removes an input from a session's queue. It returns ErrWithdrawn if the input does not wait there. Only the
// process that calls the session's inputs may call Withdraw.
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

// unlessHas appends an event. If the log has an event that the query "unless" selects, it returns the error in the
// parameter "found" instead.
func unlessHas(ctx context.Context, log *eventlog.Log, unless event.Query, found error, e event.Event) error {
	_, err := log.AppendUnless(ctx, unless, e)
	var conflict *eventlog.ConflictError
	if errors.As(err, &conflict) {
		return fmt.Errorf("%w: %s", found, e.Input)
	}
	return err
}

// Find returns the input with this id if it is waiting in any session. It does not return an input with a pruned text.
func Find(ctx context.Context, log event.Reader, id event.InputID) (in Input, ok bool, err error) {
	e, ok, err := log.Last(ctx, event.Query{Input: id, Types: append([]event.Type{event.MessageQueued}, ends...)})
	if err != nil || !ok || e.Type != event.MessageQueued {
		return in, false, err
	}
	m, err := fact.Decode[fact.MessageQueued](e)
	return Input{id, e.Session, m}, err == nil, nil
}

// A Queue has the inputs of a session that were waiting at the last Read. Only one goroutine at a time may use it.
type Queue struct {
	Session event.SessionID // "" means all sessions
	Inputs  []Input         // in the order of their arrival

	read event.Seq // the number of the last event that was read
}

// Read reads the events since the last Read. It skips inputs with a pruned text.
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
