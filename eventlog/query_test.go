package eventlog

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/store"
	"github.com/perlica/perlica/eventlog/verify"
)

func TestVerifyNamesTheFirstBadEvent(t *testing.T) {
	for _, tc := range []struct {
		name, damage string
		bad          event.Seq
		words        string
	}{
		{"payload", `UPDATE events SET payload = x'7b7d' WHERE seq = 5`, 5, "payload was edited"},
		{"payload gone", `UPDATE events SET payload = NULL WHERE seq = 5`, 5, "payload is missing"},
		{"header", `UPDATE events SET actor = 'someone' WHERE seq = 3`, 3, "header was edited"},
		{"deleted", `DELETE FROM events WHERE seq = 4`, 4, "missing"},
		{"first", `DELETE FROM events WHERE seq = 1`, 1, "missing"},
		{"swapped",
			`UPDATE events SET seq = -1 WHERE seq = 2; UPDATE events SET seq = 2 WHERE seq = 3; UPDATE events SET seq = 3 WHERE seq = -1`, 2, "the event with number 2 was written as event 3"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "e.db")
			l, err := Open(t.Context(), path, Options{})
			if err != nil {
				t.Fatal(err)
			}
			for range 10 {
				if err := l.Record(fact(event.Truncated, event.Refs{})); err != nil {
					t.Fatal(err)
				}
			}
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
			drop := `DROP TRIGGER events_lose_nothing_but_payloads; DROP TRIGGER events_are_not_deleted; `
			if err := execFile(path, drop+tc.damage); err != nil {
				t.Fatal(err)
			}
			r, err := store.OpenReader(t.Context(), path)
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			rep, err := verify.Log(t.Context(), r, verify.Options{})
			if err != nil || rep.FirstBad != tc.bad || !strings.Contains(fmt.Sprint(rep.Findings), tc.words) {
				t.Errorf("report = %+v, %v; want %d, %q", rep, err, tc.bad, tc.words)
			}
		})
	}
}

func TestQueries(t *testing.T) {
	l := openTest(t)
	var events []event.Event
	for i := range 600 {
		run := event.RunID(fmt.Sprint("run", i/300))
		events = append(events, event.Event{Type: event.NotificationReceived, Class: event.Frame, Refs: event.Refs{Run: run},
			Payload: []byte("{}")})
		if i%300 == 0 || i%300 == 299 {
			events = append(events, fact(event.ToolBlocked, event.Refs{Run: run, Session: "s"}))
		}
	}
	if _, err := l.Append(t.Context(), events...); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		q    event.Query
		want int
	}{
		"all":           {event.Query{}, 604},
		"a run":         {event.Query{Run: "run0"}, 301}, // its first frame comes before its first fact
		"facts":         {event.Query{Class: event.Fact}, 4},
		"frames":        {event.Query{Class: event.Frame}, 600},
		"type":          {event.Query{Types: []event.Type{event.ToolBlocked}}, 4},
		"types":         {event.Query{Types: []event.Type{event.ToolBlocked, event.NotificationReceived}}, 604},
		"session":       {event.Query{Session: "s", Class: event.Fact}, 4},
		"quoted":        {event.Query{Types: []event.Type{"x' OR '1'='1"}}, 0},
		"limit":         {event.Query{Limit: 300}, 300},
		"newest":        {event.Query{Newest: true, Limit: 300}, 300},
		"after":         {event.Query{After: 600}, 4},
		"until, newest": {event.Query{Until: 10, Newest: true}, 10},
	} {
		got := collect(t, &l.Reader, tc.q)
		if len(got) != tc.want {
			t.Errorf("%s: %d events, want %d", name, len(got), tc.want)
		}
		for i := 1; i < len(got); i++ {
			if got[i].Seq > got[i-1].Seq == tc.q.Newest {
				t.Fatalf("%s: out of order at %d", name, i)
			}
		}
	}
}

// TestPageSize checks that the driver executes the pragma for the page size early enough.
func TestPageSize(t *testing.T) {
	l := openTest(t)
	var size int
	if err := dbOf(t, l.Path()).Get(&size, `PRAGMA page_size`); err != nil || size != 8192 {
		t.Errorf("%d, %v", size, err)
	}
}
