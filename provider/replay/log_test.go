package replay

import (
	"path/filepath"
	"testing"

	"github.com/perlica/perlica/eventlog"
	"github.com/perlica/perlica/eventlog/event"
)

// TestFromLog checks that FromLog yields the lines of a run and the lines between runs of the same agent process. It
// yields no line of other runs, sessions or processes.
func TestFromLog(t *testing.T) {
	path := filepath.Join(t.TempDir(), "eventlog.db")
	log := map[string]*eventlog.Log{}
	for _, process := range []string{"one", "two"} {
		l, err := eventlog.Open(t.Context(), path, eventlog.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		log[process] = l
	}
	for _, e := range []struct{ process, session, run, line string }{
		{"one", "", "", "initialize 1 "},
		{"one", "s", "", "new "},
		{"one", "s", "a", ""}, {"one", "s", "a", "A "}, {"one", "s", "a", "."},
		{"one", "t", "x", ""}, {"one", "t", "x", "X "},
		{"one", "s", "", "late "},
		{"two", "", "", "initialize 2 "},
		{"one", "s", "b", ""}, {"one", "s", "b", "B "}, {"one", "s", "b", ""},
		{"two", "s", "c", "C "}, {"two", "s", "c", ""},
		{"two", "u", "", "U "}, {"two", "", "", "end "},
	} {
		refs := event.Refs{Session: event.SessionID(e.session), Run: event.RunID(e.run)}
		added := event.Event{Type: event.RequestSent, Class: event.Frame, Actor: "perlica", Refs: refs,
			Payload: []byte(e.line)}
		switch e.line {
		case "":
			added = event.NewFact(event.MessageReceived, "user", refs, struct{}{})
		case ".":
			added = event.NewFact(event.CallEnforced, "perlica", refs, struct{}{})
		}
		if _, err := log[e.process].Append(t.Context(), added); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		session event.SessionID
		run     event.RunID
		want    string
	}{
		{"s", "", "initialize 1 new A late initialize 2 B C end "},
		{"", "a", "initialize 1 new A "},
		{"", "b", "initialize 1 new late B "}, // this run has not ended
		{"", "c", "initialize 2 C end "},
		{"", "x", "initialize 1 X "},
		{"", "none", ""},
	} {
		got := ""
		for f, err := range FromLog(t.Context(), &log["one"].Reader, tt.session, tt.run) {
			if err != nil {
				t.Fatal(err)
			}
			got += string(f.Line)
		}
		if got != tt.want {
			t.Errorf("session %q, run %q: %q, want %q", tt.session, tt.run, got, tt.want)
		}
	}
}

// TestConnections checks a record of two agents that ran at the same time and used the same ids.
func TestConnections(t *testing.T) {
	r, err := New(fromEvents(func(yield func(event.Event, error) bool) {
		for _, e := range []struct {
			session event.SessionID
			of      event.Type
			line    string
		}{
			{"s", event.RequestSent, `{"id":2,"method":"session/prompt","params":{}}`},
			{"t", event.RequestSent, `{"id":2,"method":"session/prompt","params":{}}`},
			{"s", event.ResponseReceived, `{"id":2,"result":{"stopReason":"s"}}`},
			{"t", event.ResponseReceived, `{"id":2,"result":{"stopReason":"t"}}`},
		} {
			if !yield(event.Event{Type: e.of, Refs: event.Refs{Session: e.session}, Payload: []byte(e.line)}, nil) {
				return
			}
		}
	}))
	if err != nil {
		t.Fatal(err)
	}
	if turns := r.Turns(); turns[0].End() != "s" || turns[1].End() != "t" {
		t.Errorf("the turns end with %q and %q", turns[0].End(), turns[1].End())
	}
}
