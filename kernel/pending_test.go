package kernel

import (
	"errors"
	"testing"
	"time"

	"github.com/perlica/perlica/eventlog"
	"github.com/perlica/perlica/interaction"
)

func questionFact(run, id string, open time.Duration) eventlog.Event {
	return eventlog.NewFact(eventlog.InteractionRequested, "agent", eventlog.Refs{
		Run: eventlog.RunID(run), Interaction: eventlog.InteractionID(id),
	}, interaction.Question{ID: eventlog.InteractionID(id), Title: id, Expires: time.Now().Add(open)})
}

func intentFact(run string) eventlog.Event {
	return eventlog.NewFact(eventlog.Requested, "perlica",
		eventlog.Refs{Run: eventlog.RunID(run), Input: eventlog.InputID(run)}, requested{})
}

// TestPendingQuestions: only what somebody waits for is pending.
func TestPendingQuestions(t *testing.T) {
	locks := t.TempDir()
	lock, err := acquire(runLockPath(locks, runA))
	if err != nil {
		t.Fatal(err)
	}
	log := logWith(t,
		intentFact(runA), intentFact(runB),
		questionFact(runA, "open-0001", time.Hour),
		questionFact(runA, "nobody-02", -time.Second), // nobody was to be asked
		questionFact(runA, "lapsed-03", time.Hour),
		questionFact(runB, "orphan-04", time.Hour), // its process is gone
		questionFact(runA, "open-0005", time.Hour),
		eventlog.NewFact(eventlog.InteractionLapsed, "perlica", eventlog.Refs{Run: runA, Interaction: "lapsed-03"}, struct{}{}),
	)
	pending := func() (ids []eventlog.InteractionID) {
		t.Helper()
		open, err := PendingQuestions(t.Context(), &log.Reader, locks)
		if err != nil {
			t.Fatal(err)
		}
		for _, q := range open {
			ids = append(ids, q.ID)
		}
		return ids
	}
	if got := pending(); len(got) != 2 || got[0] != "open-0001" || got[1] != "open-0005" {
		t.Errorf("pending: %v", got)
	}
	lock.release()
	if got := pending(); len(got) != 0 {
		t.Errorf("pending after the process has gone: %v", got)
	}
}

func TestFindQuestion(t *testing.T) {
	log := logWith(t, questionFact(runA, "0199aaaa-1111", time.Hour), questionFact(runA, "0199aaaa-2222", time.Hour))
	for ref, want := range map[string]error{
		"0199aaaa-1111": nil, "1111": nil, "aa-2222": nil,
		"0199aaaa": ErrAmbiguousQuestion, "111": ErrNoQuestion, "": ErrNoQuestion, "3333": ErrNoQuestion,
	} {
		if _, err := FindQuestion(t.Context(), &log.Reader, ref); !errors.Is(err, want) || err != nil && want == nil {
			t.Errorf("FindQuestion(%q): %v, want %v", ref, err, want)
		}
	}
}
