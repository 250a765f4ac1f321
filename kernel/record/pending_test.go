package record

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/perlica/perlica/eventlog"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/interaction"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/kernel/filelock"
)

// openLogFile returns a new log.
func openLogFile(t *testing.T) *eventlog.Log {
	t.Helper()
	log, err := eventlog.Open(t.Context(), filepath.Join(t.TempDir(), "eventlog.db"), eventlog.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := log.Close(); err != nil {
			t.Error(err)
		}
	})
	return log
}

func appendTo(t *testing.T, log *eventlog.Log, events ...event.Event) {
	t.Helper()
	if _, err := log.Append(t.Context(), events...); err != nil {
		t.Fatal(err)
	}
}

func questionFact(run, id string, open time.Duration) event.Event {
	return event.NewFact(event.InteractionRequested, "agent", event.Refs{
		Run: event.RunID(run), Interaction: event.InteractionID(id),
	}, interaction.Question{ID: event.InteractionID(id), Title: id, Expires: time.Now().Add(open)})
}

func intentFact(run string) event.Event {
	return event.NewFact(event.Requested, "perlica",
		event.Refs{Run: event.RunID(run), Input: event.InputID(run)}, fact.Requested{})
}

// TestPendingQuestions checks that a question is pending only if a process waits for its answer.
func TestPendingQuestions(t *testing.T) {
	const runA, runB = "0199aaaa-0000-7000-8000-00000000c003", "0199bbbb-0000-7000-8000-00000000d004"
	log, locks := openLogFile(t), t.TempDir()
	lock, err := filelock.Acquire(filelock.Run(locks, runA))
	if err != nil {
		t.Fatal(err)
	}
	appendTo(t, log,
		intentFact(runA), intentFact(runB),
		questionFact(runA, "open-0001", time.Hour),
		questionFact(runA, "nobody-02", -time.Second), // no person could be asked
		questionFact(runA, "lapsed-03", time.Hour),
		questionFact(runB, "orphan-04", time.Hour), // the run's process has ended
		questionFact(runA, "open-0005", time.Hour),
		event.NewFact(event.InteractionLapsed, "perlica", event.Refs{Run: runA, Interaction: "lapsed-03"}, struct{}{}),
	)
	pending := func() (ids []event.InteractionID) {
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
	lock.Release()
	if got := pending(); len(got) != 0 {
		t.Errorf("pending after the process has gone: %v", got)
	}
}
