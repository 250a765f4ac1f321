package report

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"github.com/perlica/perlica/eventlog"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/kernel/fact"
)

// logWith returns a new log with these events.
func logWith(t *testing.T, events ...event.Event) *eventlog.Log {
	t.Helper()
	log, err := eventlog.Open(t.Context(), filepath.Join(t.TempDir(), "log.db"), eventlog.Options{Context: "test"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := log.Close(); err != nil {
			t.Error(err)
		}
	})
	if _, err := log.Append(t.Context(), events...); err != nil {
		t.Fatal(err)
	}
	return log
}

func inputFact(session, run, input string) event.Event {
	return event.NewFact(event.MessageReceived, "user", event.Refs{
		Session: event.SessionID(session), Run: event.RunID(run), Input: event.InputID(input),
	}, fact.MessageReceived{Text: "hello", Sender: "alice"})
}

func sessionFact(t event.Type, session, name string) event.Event {
	return event.NewFact(t, "user", event.Refs{Session: event.SessionID(session)}, fact.SessionCreated{Name: name})
}

const (
	sessionA = "0199aaaa-0000-7000-8000-00000000a001"
	sessionB = "0199aaaa-0000-7000-8000-00000000b002"
	runA     = "0199aaaa-0000-7000-8000-00000000c003"
	runB     = "0199bbbb-0000-7000-8000-00000000d004"
)

func TestFindRecord(t *testing.T) {
	log := logWith(t,
		sessionFact(event.SessionCreated, sessionA, "old name"),
		sessionFact(event.SessionRenamed, sessionA, "spine"),
		inputFact(sessionA, runA, "job-1"),
		sessionFact(event.SessionCreated, sessionB, "gone"),
		inputFact(sessionB, runB, "job-2"),
		sessionFact(event.SessionDeleted, sessionB, ""),
	)
	third, _, err := log.Last(t.Context(), event.Query{Until: 3})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		ref     string
		seq     event.Seq
		run     event.RunID
		session event.SessionID
		err     error
	}{
		{ref: "3", seq: 3},
		{ref: third.ID, seq: 3},
		{ref: runA, run: runA},
		{ref: "c003", run: runA},
		{ref: "0199bbbb", run: runB},
		{ref: "job-2", run: runB},
		{ref: "0199aaaa", run: runA}, // the run wins over sessions with the same beginning of their id
		{ref: "0199", err: ErrAmbiguousRef},
		{ref: sessionA, session: sessionA},
		{ref: "a001", session: sessionA},
		{ref: "spine", session: sessionA},
		{ref: "b002", session: sessionB}, // deleted, but still on the log
		{ref: "old name", err: ErrNotFound},
		{ref: "gone", err: ErrNotFound},
		{ref: "003", err: ErrNotFound},
		{ref: "7", err: ErrNotFound},
		{ref: "-1", err: ErrNotFound},
		{ref: "", err: ErrNotFound},
		{ref: "0199aaaa-0000-7000-8000-000000000000", err: ErrNotFound},
	} {
		got, err := FindRecord(t.Context(), &log.Reader, c.ref)
		if !errors.Is(err, c.err) {
			t.Errorf("%q: error %v, want %v", c.ref, err, c.err)
		}
		if err != nil {
			continue
		}
		if got.Run != c.run || got.Session != c.session || (got.Event != nil) != (c.seq > 0) || c.seq > 0 &&
			got.Event.Seq != c.seq {
			t.Errorf("%q: found %+v", c.ref, got)
		}
	}
}

// TestFindRunPrefersTheLastTry checks that FindRun returns the newest of several runs with the same input.
func TestFindRunPrefersTheLastTry(t *testing.T) {
	log := logWith(t, inputFact(sessionA, runA, "job"), inputFact(sessionA, runB, "job"))
	run, err := FindRun(context.Background(), &log.Reader, "job")
	if err != nil || run != runB {
		t.Errorf("FindRun = %s, %v, want %s", run, err, runB)
	}
}

// TestFindRunWithoutReadingInputs checks that FindRun finds a run by its intent or its outcome, without its input.
func TestFindRunWithoutReadingInputs(t *testing.T) {
	refs := func(run, input string) event.Refs {
		return event.Refs{Session: sessionA, Run: event.RunID(run), Input: event.InputID(input)}
	}
	log := logWith(t,
		event.NewFact(event.Requested, "perlica", refs(runA, "job-1"), fact.Requested{}),
		event.NewFact(event.Responded, "agent", refs(runA, "job-1"), fact.Responded{}),
		event.NewFact(event.Requested, "perlica", refs(runB, "job-2"), fact.Requested{}),
	)
	for ref, want := range map[string]event.RunID{
		"job-1": runA, "job-2": runB, "c003": runA, "0000c": runA, "d004": runB, "0199b": runB, "0199aaaa-": runA,
		"0199": "", "0000": "", "003": "", "b-0": "", "%003": "", "____": "",
	} {
		got, err := FindRun(t.Context(), &log.Reader, ref)
		if got != want || (err == nil) != (want != "") || ref == "0199" && !errors.Is(err, ErrAmbiguousRef) {
			t.Errorf("%q: %q, %v, want %q", ref, got, err, want)
		}
	}
}
