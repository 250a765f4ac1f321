package kernel

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"github.com/perlica/perlica/eventlog"
	"github.com/perlica/perlica/policy"
)

// logWith returns a log that holds the events.
func logWith(t *testing.T, events ...eventlog.Event) *eventlog.Log {
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

func inputFact(session, run, input string) eventlog.Event {
	return eventlog.NewFact(eventlog.MessageReceived, "user", eventlog.Refs{
		Session: eventlog.SessionID(session), Run: eventlog.RunID(run), Input: eventlog.InputID(input),
	}, messageReceived{Text: "hello", Sender: "alice"})
}

func sessionFact(t eventlog.Type, session, name string) eventlog.Event {
	return eventlog.NewFact(t, "user", eventlog.Refs{Session: eventlog.SessionID(session)}, SessionFacts{Name: name})
}

const (
	sessionA = "0199aaaa-0000-7000-8000-00000000a001"
	sessionB = "0199aaaa-0000-7000-8000-00000000b002"
	runA     = "0199aaaa-0000-7000-8000-00000000c003"
	runB     = "0199bbbb-0000-7000-8000-00000000d004"
)

func TestFindRecord(t *testing.T) {
	log := logWith(t,
		sessionFact(eventlog.SessionCreated, sessionA, "old name"),
		sessionFact(eventlog.SessionRenamed, sessionA, "spine"),
		inputFact(sessionA, runA, "job-1"),
		sessionFact(eventlog.SessionCreated, sessionB, "gone"),
		inputFact(sessionB, runB, "job-2"),
		sessionFact(eventlog.SessionDeleted, sessionB, ""),
	)
	third, _, err := log.Last(t.Context(), eventlog.Query{Until: 3})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		ref     string
		seq     eventlog.Seq
		run     eventlog.RunID
		session eventlog.SessionID
		err     error
	}{
		{ref: "3", seq: 3},
		{ref: third.ID, seq: 3},
		{ref: runA, run: runA},
		{ref: "c003", run: runA},
		{ref: "0199bbbb", run: runB},
		{ref: "job-2", run: runB},
		{ref: "0199aaaa", run: runA}, // a run comes before the sessions that begin alike
		{ref: "0199", err: ErrAmbiguousRef},
		{ref: sessionA, session: sessionA},
		{ref: "a001", session: sessionA},
		{ref: "spine", session: sessionA},
		{ref: "b002", session: sessionB}, // deleted, but on the log
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
		if got.Run != c.run || got.Session != c.session || (got.Event != nil) != (c.seq > 0) || c.seq > 0 && got.Event.Seq != c.seq {
			t.Errorf("%q: found %+v", c.ref, got)
		}
	}
}

// TestFindRunPrefersTheLastTry: an input that failed before its call may be tried again.
func TestFindRunPrefersTheLastTry(t *testing.T) {
	log := logWith(t, inputFact(sessionA, runA, "job"), inputFact(sessionA, runB, "job"))
	run, err := FindRun(context.Background(), &log.Reader, "job")
	if err != nil || run != runB {
		t.Errorf("FindRun = %s, %v, want %s", run, err, runB)
	}
}

func TestFindApproval(t *testing.T) {
	list := []policy.Approval{{ID: "0199aaaa-1111"}, {ID: "0199aaaa-2222"}, {ID: "1111"}}
	for ref, want := range map[string]string{"0199aaaa-2222": "0199aaaa-2222", "-2222": "0199aaaa-2222", "1111": "1111", "0199aaaa-1": "0199aaaa-1111"} {
		if got, err := FindApproval(list, ref); err != nil || got.ID != want {
			t.Errorf("FindApproval(%q) = %v, %v, want %s", ref, got.ID, err, want)
		}
	}
	if _, err := FindApproval(list, "0199"); !errors.Is(err, ErrAmbiguousApproval) {
		t.Errorf("an ambiguous beginning: %v", err)
	}
	for _, ref := range []string{"", "222", "nosuch"} {
		if _, err := FindApproval(list, ref); !errors.Is(err, ErrNoApproval) {
			t.Errorf("FindApproval(%q): %v", ref, err)
		}
	}
}
