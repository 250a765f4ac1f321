package eventlog

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/evidence"
	"github.com/perlica/perlica/eventlog/store"
	"github.com/perlica/perlica/eventlog/verify"
)

var (
	benchLog = flag.String("verify-log", "",
		"the folder of a log for BenchmarkVerify, which is kept; made if there is none")
	benchEvents = flag.Int("verify-events", 20_000, "how many events the log for BenchmarkVerify has")
)

// runEvents is the number of events of a run in the log of BenchmarkVerify. Each run has one signed checkpoint.
const runEvents = 200

// fillRuns appends runs of runEvents events. Most of them are frames of 1 KiB, like an agent's
// updates.
func fillRuns(tb testing.TB, l *Log, events int) {
	tb.Helper()
	payload := make([]byte, 1024)
	for i := range payload {
		payload[i] = byte('a' + i%26)
	}
	for run := range (events + runEvents - 1) / runEvents {
		id := fmt.Sprintf("0199aaaa-bbbb-7ccc-8ddd-%012d", run)
		refs := event.Refs{Session: event.SessionID(id[:35] + "5"), Conversation: "c-17", Run: event.RunID(id),
			Trace: event.TraceID(fmt.Sprintf("%032d", run))}
		input := refs
		input.Input = event.InputID(id)
		list := []event.Event{
			{Type: event.MessageReceived, Class: event.Fact, Actor: "user", Refs: input, Payload: payload},
			{Type: event.SessionStarted, Class: event.Fact, Actor: "agent", Refs: refs, Payload: payload},
			{Type: event.Requested, Class: event.Fact, Actor: "perlica", Refs: input, Payload: payload},
			{Type: event.RequestSent, Class: event.Frame, Actor: "perlica", Refs: refs,
				Payload: append([]byte(`{"jsonrpc":"2.0","id":3,"method":"session/prompt","params":"`),
					append(payload[:900:900], `"}`...)...)},
		}
		for len(list) < runEvents-3 {
			list = append(list, event.Event{Type: event.NotificationReceived, Class: event.Frame, Actor: "agent", Refs: refs,
				Payload: payload})
		}
		list = append(list,
			event.Event{Type: event.ResponseReceived, Class: event.Frame, Actor: "agent", Refs: refs, Payload: payload})
		for _, e := range list {
			if err := l.Record(e); err != nil {
				tb.Fatal(err)
			}
		}
		if _, err := l.EndRun(tb.Context(),
			event.Event{Type: event.Responded, Class: event.Fact, Actor: "agent", Refs: refs, Payload: payload},
			event.Event{Type: event.CallEnforced, Class: event.Fact, Actor: "perlica", Refs: refs, Payload: payload},
		); err != nil {
			tb.Fatal(err)
		}
	}
}

// runLog makes a log of runs with signed checkpoints in dir and returns its path.
func runLog(tb testing.TB, dir string, events int) (path string, keys *evidence.Keys) {
	tb.Helper()
	keys, err := evidence.MakeKeys(filepath.Join(dir, "keys"))
	if err != nil {
		tb.Fatal(err)
	}
	path = filepath.Join(dir, "eventlog.db")
	if _, err := os.Stat(path); err == nil {
		return path, keys
	}
	l, err := Open(tb.Context(), path, Options{Context: "default", Keys: keys})
	if err != nil {
		tb.Fatal(err)
	}
	fillRuns(tb, l, events)
	if err := errors.Join(l.Anchored(), l.Close()); err != nil {
		tb.Fatal(err)
	}
	return path, keys
}

// BenchmarkVerify verifies a log with a signed checkpoint for every 200 events.
func BenchmarkVerify(b *testing.B) {
	dir := *benchLog
	if dir == "" {
		dir = b.TempDir()
	}
	path, keys := runLog(b, dir, *benchEvents)
	r, err := store.OpenReader(b.Context(), path)
	if err != nil {
		b.Fatal(err)
	}
	defer r.Close()
	origin, err := r.Origin(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	b.ResetTimer()
	var rep verify.Report
	for range b.N {
		if rep, err = verify.Log(b.Context(), r, verify.Options{Keys: keys.Verifiers(origin)}); err != nil || !rep.OK() {
			b.Fatalf("%+v, %v", rep, err)
		}
	}
	b.ReportMetric(float64(rep.Events)*float64(b.N)/b.Elapsed().Seconds(), "events/s")
	if rep.Checkpoints*runEvents < int(rep.Events) || rep.Anchors*runEvents < int(rep.Events) || rep.Signed != rep.Events {
		b.Errorf("%d checkpoints, %d anchors", rep.Checkpoints, rep.Anchors)
	}
}

// BenchmarkHeaders checks the headers of the log of BenchmarkVerify.
func BenchmarkHeaders(b *testing.B) {
	dir := *benchLog
	if dir == "" {
		dir = b.TempDir()
	}
	path, _ := runLog(b, dir, *benchEvents)
	r, err := store.OpenReader(b.Context(), path)
	if err != nil {
		b.Fatal(err)
	}
	defer r.Close()
	size, _, err := r.Head(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if err := verify.Headers(b.Context(), r, 0); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(size)*float64(b.N)/b.Elapsed().Seconds(), "events/s")
}
