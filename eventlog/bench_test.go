package eventlog

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/jmoiron/sqlx"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/store"
)

var benchPayload = make([]byte, 200)

// BenchmarkStream records events without waiting for them, like the updates of an agent.
func BenchmarkStream(b *testing.B) {
	l, err := Open(b.Context(), filepath.Join(b.TempDir(), "e.db"), Options{Context: "default"})
	if err != nil {
		b.Fatal(err)
	}
	refs := event.Refs{Session: "0199aaaa-bbbb-7ccc-8ddd-eeeeeeeeeeee", Conversation: "c",
		Run: "0199aaaa-bbbb-7ccc-8ddd-ffffffffffff", Trace: "0199aaaabbbb7ccc8dddffffffffffff"}
	b.ResetTimer()
	for range b.N {
		if err := l.Record(event.Event{Type: event.NotificationReceived, Class: event.Frame, Actor: "agent", Refs: refs,
			Payload: benchPayload}); err != nil {
			b.Fatal(err)
		}
	}
	if err := l.Close(); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "events/s")
}

// BenchmarkBareStream inserts the same rows as BenchmarkStream in batches of the same size, through one prepared
// statement. It has no hashes, no indexes and no tree.
func BenchmarkBareStream(b *testing.B) {
	bareInsert(b, batchEvents)
}

// BenchmarkAppend appends one durable event at a time.
func BenchmarkAppend(b *testing.B) {
	l, err := Open(b.Context(), filepath.Join(b.TempDir(), "e.db"), Options{Context: "default"})
	if err != nil {
		b.Fatal(err)
	}
	b.ResetTimer()
	for range b.N {
		if _, err := l.Append(context.Background(), event.Event{Type: event.Truncated, Class: event.Fact, Actor: "agent",
			Payload: benchPayload}); err != nil {
			b.Fatal(err)
		}
	}
	if err := l.Close(); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkBareAppend commits one row at a time with SQLite alone.
func BenchmarkBareAppend(b *testing.B) { bareInsert(b, 1) }

func bareInsert(b *testing.B, batch int) {
	db, err := sqlx.Open("sqlite", store.WriterDSN(filepath.Join(b.TempDir(), "bare.db")))
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	db.MustExec(
		`CREATE TABLE events (seq INTEGER PRIMARY KEY, event_id TEXT, ts INTEGER, type TEXT, class TEXT, actor TEXT, writer TEXT,
		context_id TEXT, session_id TEXT, conversation_id TEXT, run_id TEXT, trace_id TEXT, interaction_id TEXT, input_id TEXT,
		payload_len INTEGER, payload_sha256 BLOB, leaf BLOB, payload BLOB) STRICT`)
	stmt, err := db.Preparex(`INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`)
	if err != nil {
		b.Fatal(err)
	}
	hash := make([]byte, 32)
	id := "0199aaaa-bbbb-7ccc-8ddd-eeeeeeeeeeee"
	b.ResetTimer()
	for n := 0; n < b.N; {
		tx, err := db.Beginx()
		if err != nil {
			b.Fatal(err)
		}
		s := tx.Stmtx(stmt)
		for range min(batch, b.N-n) {
			n++
			if _, err := s.Exec(n, fmt.Sprintf("%036d", n), 1763694000000000000+n, "acp.notification.received", "frame", "agent",
				id,
				"default", id, "c", id, "0199aaaabbbb7ccc8dddffffffffffff", "", "", 200, hash, hash, benchPayload); err != nil {
				b.Fatal(err)
			}
		}
		if err := tx.Commit(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "events/s")
}

// BenchmarkIntent appends the frames of the agent's start and the intent in one commit. The prompt leaves only after
// this commit.
func BenchmarkIntent(b *testing.B) {
	l, err := Open(b.Context(), filepath.Join(b.TempDir(), "e.db"), Options{Context: "default"})
	if err != nil {
		b.Fatal(err)
	}
	b.ResetTimer()
	for i := range b.N {
		run := fmt.Sprintf("0199aaaa-bbbb-7ccc-8ddd-%012d", i)
		refs := event.Refs{Session: event.SessionID(run), Conversation: "c", Run: event.RunID(run), Trace: event.TraceID(run),
			Input: event.InputID(run)}
		for range 4 {
			if err := l.Record(event.Event{Type: event.NotificationReceived, Class: event.Frame, Actor: "agent", Refs: refs,
				Payload: benchPayload}); err != nil {
				b.Fatal(err)
			}
		}
		if _, err := l.Append(context.Background(), fact(event.SessionStarted, refs),
			fact(event.Requested, refs)); err != nil {
			b.Fatal(err)
		}
		if err := l.Record(fact(event.Responded, refs)); err != nil {
			b.Fatal(err)
		}
	}
	if err := l.Close(); err != nil {
		b.Fatal(err)
	}
}
