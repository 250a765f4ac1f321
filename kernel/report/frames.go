package report

import (
	"context"
	"iter"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/store"
)

// frameTypes are the lines of the protocol between Perlica and an agent.
var frameTypes = []event.Type{
	event.RequestSent, event.NotificationSent, event.ResponseSent, event.NotificationReceived, event.ResponseReceived,
}

// Frames yields the lines of the protocol that it takes to repeat a run, or a session if run is
// empty: what was said in it, and what was said to the same processes of agents outside of all runs.
func Frames(ctx context.Context, log *store.Reader, session event.SessionID, run event.RunID) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
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
		q := event.Query{Types: frameTypes}
		if last.Type == event.CallEnforced { // the end of the run
			q.Until = last.Seq
		}
		for e, err := range log.Events(ctx, q) {
			ours := writers[e.Writer] && (e.Session == session || e.Session == "") && (run == "" || e.Run == "" || e.Run == run)
			if (ours || err != nil) && !yield(e, err) {
				return
			}
		}
	}
}
