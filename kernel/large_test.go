package kernel

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/kernel/approvals"
	"github.com/perlica/perlica/kernel/config"
	"github.com/perlica/perlica/kernel/fact"
)

// largeSession writes a session with n answered turns of the keep strategy, and returns the session's id.
func largeSession(tb testing.TB, r *Runner, n int) event.SessionID {
	tb.Helper()
	const id = "0199cccc-0000-7000-8000-000000000001"
	record := func(events ...event.Event) {
		if err := r.log.Record(events...); err != nil {
			tb.Fatal(err)
		}
	}
	refs := event.Refs{Session: id, Conversation: "c"}
	record(newSessionFact(id, fact.SessionCreated{Provider: "test"}),
		event.NewFact(event.SessionStarted, "perlica", refs, fact.SessionStarted{Strategy: strategyKeep}))
	for i := range n {
		refs.Run, refs.Input = event.RunID(fmt.Sprintf("0199dddd-0000-7000-8000-%012d", i)), event.InputID(fmt.Sprint("i", i))
		frame := func(ty event.Type, line string) event.Event {
			return event.Event{Type: ty, Class: event.Frame, Actor: "agent", Refs: refs, Payload: []byte(line)}
		}
		events := []event.Event{
			event.NewFact(event.MessageReceived, "user", refs,
				fact.MessageReceived{Text: fmt.Sprintf("question %d: what is it that we were talking about?", i),
					Provider: "test", Sender: "me", Source: "chat"}),
			event.NewFact(event.Requested, "perlica", refs, fact.Requested{Provider: "test", CallIndex: 1,
				Strategy: strategyKeep}),
			frame(event.RequestSent, `{"jsonrpc":"2.0","id":2,"method":"session/prompt","params":{}}`),
		}
		for range 5 {
			events = append(events, frame(event.NotificationReceived,
				`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"c","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"a piece of the answer, which has some more words"}}}}`))
		}
		record(append(events,
			frame(event.ResponseReceived, `{"jsonrpc":"2.0","id":2,"result":{"stopReason":"end_turn"}}`),
			event.NewFact(event.Responded, "agent", refs, fact.Responded{Provider: "test",
				Text: "a piece of the answer, which has some more words", StopReason: "end_turn"}),
			event.NewFact(event.CallEnforced, "perlica", refs, fact.Enforced{Calls: 1}))...)
	}
	if err := r.log.Sync(); err != nil {
		tb.Fatal(err)
	}
	return id
}

// BenchmarkLargeSession measures the opening and showing of a session with 10,000 turns. It stores the log in the
// folder PERLICA_BENCH_LARGE, so that a later run can use it. Without this variable it writes a new log.
func BenchmarkLargeSession(b *testing.B) {
	const id = "0199cccc-0000-7000-8000-000000000001"
	dir := os.Getenv("PERLICA_BENCH_LARGE")
	if dir == "" {
		dir = b.TempDir()
	}
	paths := config.ContextPaths{
		Dir: dir, EventLog: filepath.Join(dir, "eventlog.db"), Sessions: filepath.Join(dir, "sessions.db"),
		Approvals: filepath.Join(dir, "approvals.db"), Locks: dir,
	}
	_, err := os.Stat(paths.EventLog)
	made := err == nil
	r, err := Open(b.Context(), Options{Paths: paths, Context: "default",
		Vouchers: approvals.NewVouchers(config.Dirs{State: dir})})
	if err != nil {
		b.Fatal(err)
	}
	if !made {
		largeSession(b, r, 10_000)
	}
	b.Cleanup(func() {
		if err := r.Close(); err != nil {
			b.Error(err)
		}
	})
	b.Run("converse", func(b *testing.B) {
		for b.Loop() {
			c, err := r.Converse(b.Context(), Setup{Session: id}, 0, "bench")
			if err == nil {
				err = c.Close(b.Context())
			}
			if err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("native continuation", func(b *testing.B) {
		for b.Loop() {
			if c, err := r.latestConversation(b.Context(), id); err != nil || c != "c" {
				b.Fatal(c, err)
			}
		}
	})
	b.Run("history", func(b *testing.B) {
		for b.Loop() {
			if h, err := r.readHistory(b.Context(), id, "", 50_000); err != nil || h.Dropped < 5000 {
				b.Fatal(h.Dropped, err)
			}
		}
	})
	b.Run("view", func(b *testing.B) {
		for b.Loop() {
			s, err := r.Sessions(b.Context())
			if err == nil {
				_, err = s.List(b.Context(), true)
			}
			if err == nil {
				err = s.Close()
			}
			if err != nil {
				b.Fatal(err)
			}
		}
	})
}
