package replay

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/store"
)

// GoneError means that the log no longer has a line that the replay needs.
type GoneError struct {
	Seq  event.Seq
	Type event.Type
	Why  string // pruned or masked, from event.Event.Withheld
}

func (e *GoneError) Error() string {
	return fmt.Sprintf("replay: the line of event %d (%s) is not there: it was %s", e.Seq, e.Type, e.Why)
}

// fromClient has the types of events with a line of the protocol. The value is true if the client sent the line.
var fromClient = map[event.Type]bool{
	event.RequestSent: true, event.NotificationSent: true, event.ResponseSent: true,
	event.NotificationReceived: false, event.ResponseReceived: false,
}

// FromLog yields the lines that a replay of a run needs, or of a whole session if run is empty. These are the lines of
// the run, and the lines between runs that the same agent processes sent or received. If a line was pruned or masked,
// the error is a *GoneError. FromLog adds the exchange of initialize if the log does not have it.
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
		session = last.Session // the session of the run
		q := event.Query{Types: append(slices.Sorted(maps.Keys(fromClient)), event.SessionStarted)}
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

// fromEvents yields the lines in the events. In the log of an editor's session, the exchange of initialize is missing,
// because it belongs to the editor's connection. fromEvents then builds this exchange from the first event
// session.started, which has the agent's name and capabilities. It yields the exchange last. The place does not matter,
// because a replay finds a request by its method.
func fromEvents(events iter.Seq2[event.Event, error]) iter.Seq2[Frame, error] {
	return func(yield func(Frame, error) bool) {
		var first time.Time
		var started []byte
		var last Frame
		introduced := false
		for e, err := range events {
			client, ok := fromClient[e.Type]
			if err == nil && e.Type == event.SessionStarted && started == nil {
				started = e.Payload
			}
			if err == nil && !ok {
				continue
			}
			if err == nil && e.Payload == nil {
				err = &GoneError{e.Seq, e.Type, e.Withheld}
			}
			if first.IsZero() {
				first = e.Time
			}
			last = Frame{
				Seq: int64(e.Seq), Client: client, Line: e.Payload,
				Millis: e.Time.Sub(first).Milliseconds(), conn: e.Writer + " " + string(e.Session),
			}
			introduced = introduced || client && methodOf(e.Payload) == methodInitialize
			if !yield(last, err) || err != nil {
				return
			}
		}
		if introduced || started == nil {
			return
		}
		for i, line := range introduction(started) {
			if !yield(Frame{Seq: last.Seq, Client: i == 0, Line: line, Millis: last.Millis}, nil) {
				return
			}
		}
	}
}

const methodInitialize = "initialize"

// methodOf returns the JSON-RPC method of a line.
func methodOf(line []byte) string {
	m, _ := parse(line) // a malformed line has no method
	return m.method
}

// introduction builds the request and the response of initialize from the payload of an event session.started. It
// returns nil if the payload has another form.
func introduction(fact []byte) [][]byte {
	var started struct {
		Agent        json.RawMessage `json:"agent"`
		Capabilities json.RawMessage `json:"capabilities"`
	}
	if json.Unmarshal(fact, &started) != nil {
		return nil
	}
	result := map[string]any{"protocolVersion": 1, "authMethods": []any{}}
	if started.Agent != nil {
		result["agentInfo"] = started.Agent
	}
	if started.Capabilities != nil {
		result["agentCapabilities"] = started.Capabilities
	}
	answer, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": "perlica-initialize", "result": result})
	if err != nil {
		return nil
	}
	return [][]byte{[]byte(
		`{"jsonrpc":"2.0","id":"perlica-initialize","method":"initialize","params":{"protocolVersion":1}}`), answer}
}
