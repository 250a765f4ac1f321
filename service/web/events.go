package web

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"mime"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/message"
	"github.com/perlica/perlica/kernel/record"
)

// chosen holds the filters of a stream.
type chosen struct {
	session event.SessionID
	run     event.RunID
	kinds   []string
}

func (c chosen) has(l line) bool {
	return (c.session == "" || l.session == c.session) && (c.run == "" || l.run == c.run) &&
		(len(c.kinds) == 0 || slices.Contains(c.kinds, l.kind))
}

// events serves a stream of events, or one page of recorded events.
func (s *Server) events(w http.ResponseWriter, r *request) error {
	if err := r.checkParameters("project", "context", "session", "run", "type", "after", "limit"); err != nil {
		return err
	}
	q := r.URL.Query()
	want := chosen{event.SessionID(q.Get("session")), event.RunID(q.Get("run")), q["type"]}
	after := cmp.Or(r.Header.Get("Last-Event-ID"), q.Get("after"))
	list, err := s.logs.list(r.Context(), r.where())
	if err != nil {
		return err
	}
	if asksForJSON(r.Header.Get("Accept")) {
		n, err := r.limit(500)
		if err != nil {
			return err
		}
		return s.eventsPage(w, r, list, after, want, n)
	}
	return s.stream(w, r, list, after, want)
}

// asksForJSON reports whether the client wants a page instead of a stream.
func asksForJSON(accept string) bool {
	for part := range strings.SplitSeq(accept, ",") {
		switch kind, _, _ := mime.ParseMediaType(part); kind {
		case "application/json":
			return true
		case "text/event-stream":
			return false
		}
	}
	return false
}

// span returns the first and last event of a log that belong to the run and the session. ok is false if the log has no
// such event. If the client named no run and no session, the result "last" is 0.
func (c chosen) span(ctx context.Context, log logReader) (first, last event.Seq, ok bool, err error) {
	q := event.Query{Run: c.run, Session: c.session}
	if q.Run == "" && q.Session == "" {
		return 0, 0, true, nil
	}
	newest, ok, err := log.Last(ctx, q)
	if err != nil || !ok {
		return 0, 0, false, err
	}
	q.Limit = 1
	for e, err := range log.Events(ctx, q) {
		return e.Seq, newest.Seq, true, err
	}
	// Last has found an event, but Events no longer has it.
	return 0, 0, false, nil
}

// marks returns the last event that a client has seen of each log. If the client sent no cursor, each mark is the end
// of its log.
func marks(ctx context.Context, list []*eventLog, after string) (cursor, map[*eventLog]mark, []unreadable, error) {
	c := cursor{}
	if after != "" {
		var err error
		if c, err = parseCursor(after); err != nil {
			return nil, nil, nil, err
		}
	}
	var replaced atomic.Pointer[problem]
	of, bad := together(ctx, list, func(ctx context.Context, l *eventLog, log logReader) (mark, error) {
		m, err := c.reach(ctx, l, log)
		var p *problem
		if errors.As(err, &p) {
			replaced.Store(p)
		}
		if err != nil || after != "" {
			return m, err
		}
		last, _, err := log.Last(ctx, event.Query{})
		m.seq = last.Seq
		return m, err
	})
	if p := replaced.Load(); p != nil {
		return nil, nil, nil, p
	}
	for l, m := range of {
		c[l.short()] = m
	}
	return c, of, bad, nil
}

// eventsPage writes one page of the recorded events after the cursor, log by log.
func (s *Server) eventsPage(w http.ResponseWriter, r *request, list []*eventLog, after string, want chosen,
	n int) error {
	c, of, bad, err := marks(r.Context(), list, cmp.Or(after, beginning))
	if err != nil {
		return err
	}
	answer := struct {
		Events     []json.RawMessage `json:"events"`
		Cursor     string            `json:"cursor"`
		More       bool              `json:"more"`
		Unreadable []unreadable      `json:"unreadable"`
	}{[]json.RawMessage{}, "", false, bad}
	say := say(r.Context())
	for _, l := range list {
		m, ok := of[l]
		if !ok || answer.More {
			continue
		}
		log, err := l.openReader(r.Context())
		var first, last event.Seq
		there := false
		if err == nil {
			first, last, there, err = want.span(r.Context(), log)
		}
		if err == nil && there {
			m.seq, err = l.recordedLines(r.Context(), log, max(m.seq, first-1), last, func(one line) bool {
				if answer.More = len(answer.Events) == n; answer.More {
					return false
				}
				if want.has(one) {
					answer.Events = append(answer.Events, localizedLine(say, one))
				}
				return true
			})
		}
		if err != nil {
			answer.Unreadable = append(answer.Unreadable, unreadable{l.place, say.Error(err), message.Of(err)})
			continue
		}
		c[l.short()] = m
	}
	answer.Cursor = c.String()
	return reply(w, http.StatusOK, answer)
}

// recordedLines yields the lines of the recorded events that follow the event with the number "after". upTo is the
// number of the last event. 0 means the newest event of the log. recordedLines returns the number of the last event
// that it has read. If the function "yield" refuses a line, the returned event is the one before this line.
func (l *eventLog) recordedLines(ctx context.Context, log logReader, after, upTo event.Seq,
	yield func(line) bool) (event.Seq, error) {
	if upTo == 0 {
		last, _, err := log.Last(ctx, event.Query{})
		if err != nil {
			return after, err
		}
		upTo = last.Seq
	}
	if upTo <= after {
		return after, nil
	}
	at := after
	for e, err := range (&record.Reading{Log: log, At: after}).Until(ctx, upTo) {
		if err != nil {
			return at, err
		}
		one, err := newLine(l.place, e)
		if err != nil {
			return at, err
		}
		if !yield(one) {
			return at, nil
		}
		at = one.seq
	}
	return upTo, ctx.Err()
}
