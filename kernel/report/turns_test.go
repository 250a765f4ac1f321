package report

import (
	"path/filepath"
	"testing"

	"github.com/perlica/perlica/eventlog"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/kernel/fact"
)

// TestNewestTurns checks that an older turn with a late outcome is not among the newest turns.
func TestNewestTurns(t *testing.T) {
	l, err := eventlog.Open(t.Context(), filepath.Join(t.TempDir(), "eventlog.db"), eventlog.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	refs := func(run string) event.Refs { return event.Refs{Session: "s", Run: event.RunID(run)} }
	asked := func(run string) event.Event {
		return event.NewFact(event.MessageReceived, "user", refs(run), fact.MessageReceived{Text: run})
	}
	answered := func(run string) event.Event {
		return event.NewFact(event.Responded, "agent", refs(run), fact.Responded{Text: "to " + run})
	}
	if _, err := l.Append(t.Context(), asked("a"), asked("b"), answered("b"), asked("c"), answered("c"),
		event.NewFact(event.OutcomeUnknown, "perlica", refs("a"), fact.Failed{})); err != nil {
		t.Fatal(err)
	}
	for n, want := range []string{"", "c", "bc", "abc", "abc"} {
		turns, err := ReadTurns(t.Context(), &l.Reader, "s", 0, n)
		got := ""
		for _, turn := range turns {
			got += string(turn.Run)
			if turn.Outcome == "" {
				t.Errorf("%d turns: %s has no outcome", n, turn.Run)
			}
		}
		if err != nil || got != want {
			t.Errorf("the newest %d turns: %q, %v; want %q", n, got, err, want)
		}
	}
	before, err := ReadTurns(t.Context(), &l.Reader, "s", 4, 1) // only turns before the event at which run c begins
	if err != nil || len(before) != 1 || before[0].Run != "b" || before[0].Seq != 2 || before[0].Answer != "to b" {
		t.Errorf("the turn before event 4: %+v, %v", before, err)
	}
	before, err = ReadTurns(t.Context(), &l.Reader, "s", before[0].Seq, 5)
	if err != nil || len(before) != 1 || before[0].Run != "a" || before[0].Outcome == "" {
		t.Errorf("the turns before event 2: %+v, %v", before, err)
	}
	if before, err = ReadTurns(t.Context(), &l.Reader, "s", before[0].Seq, 5); err != nil || len(before) != 0 {
		t.Errorf("the turns before event 1: %+v, %v", before, err)
	}
}
