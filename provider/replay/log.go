package replay

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/store"
)

// GoneError says that the record lacks a line.
type GoneError struct {
	Seq  event.Seq
	Type event.Type
	Why  string // as event.Event.Withheld has it
}

func (e *GoneError) Error() string {
	return fmt.Sprintf("replay: the line of event %d (%s) is not there: it was %s", e.Seq, e.Type, e.Why)
}

// fromClient are the events that are lines of the protocol, and whether the client said them.
var fromClient = map[event.Type]bool{
	event.RequestSent: true, event.NotificationSent: true, event.ResponseSent: true,
	event.NotificationReceived: false, event.ResponseReceived: false,
}

// FromLog yields the lines that it takes to repeat a run, or a session if run is empty: what was
// said in it, and what was said to the same processes of agents outside of all runs. A line that was
// pruned or masked is a *GoneError.
func FromLog(ctx context.Context, log *store.Reader, session event.SessionID, run event.RunID) iter.Seq2[Frame, error] {
	return fromEvents(func(yield func(event.Event, error) bool) {
		writers := map[string]bool{}
		var last event.Event
		var err error
		for last, err = range log.Events(ctx, event.Query{Session: session, Run: run, Class: event.Fact}) {
			if err != nil {
				yield(event.Event{}, err)
				return
			}
			writers[last.Writer] = true
		}
		session = last.Session // of the run
		q := event.Query{Types: slices.Sorted(maps.Keys(fromClient))}
		if last.Type == event.CallEnforced { // the end of the run
			q.Until = last.Seq
		}
		for e, err := range log.Events(ctx, q) {
			ours := writers[e.Writer] && (e.Session == session || e.Session == "") && (run == "" || e.Run == "" || e.Run == run)
			if (ours || err != nil) && !yield(e, err) {
				return
			}
		}
	})
}

// fromEvents yields the lines among events.
func fromEvents(events iter.Seq2[event.Event, error]) iter.Seq2[Frame, error] {
	return func(yield func(Frame, error) bool) {
		var first time.Time
		for e, err := range events {
			client, ok := fromClient[e.Type]
			if err == nil && !ok {
				continue
			}
			if err == nil && e.Payload == nil {
				err = &GoneError{e.Seq, e.Type, e.Withheld}
			}
			if first.IsZero() {
				first = e.Time
			}
			f := Frame{
				Seq: int64(e.Seq), Client: client, Line: e.Payload,
				Millis: e.Time.Sub(first).Milliseconds(), conn: e.Writer + " " + string(e.Session),
			}
			if !yield(f, err) || err != nil {
				return
			}
		}
	}
}
