package store_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"testing"

	"github.com/jmoiron/sqlx"

	"github.com/perlica/perlica/eventlog"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/store"
)

// openTest opens a log for a test.
func openTest(t *testing.T) *eventlog.Log {
	t.Helper()
	l, err := eventlog.Open(t.Context(), filepath.Join(t.TempDir(), "eventlog.db"), eventlog.Options{Context: "default"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

func mustAppend(t *testing.T, l *eventlog.Log, events ...event.Event) {
	t.Helper()
	if _, err := l.Append(t.Context(), events...); err != nil {
		t.Fatal(err)
	}
}

// TestNewestEndsAtTheFirstEvent checks a query for the newest events if the last chunk ends exactly at the first
// event.
func TestNewestEndsAtTheFirstEvent(t *testing.T) {
	l := openTest(t)
	for range 2*store.Chunk - 1 {
		if err := l.Record(event.NewFact(event.SessionCreated, "user", event.Refs{}, struct{}{})); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := l.Append(t.Context(), event.NewFact(event.SessionCreated, "user", event.Refs{}, struct{}{})); err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, err := range l.Events(t.Context(), event.Query{Newest: true}) {
		if n++; err != nil || n > 2*store.Chunk {
			t.Fatalf("event %d of %d: %v", n, 2*store.Chunk, err)
		}
	}
}

// TestChunksAreBounded checks the limit on bytes: 256 lines of the maximum size would take 16 GiB.
func TestChunksAreBounded(t *testing.T) {
	l := openTest(t)
	for range 12 {
		if _, err := l.Append(t.Context(), event.Event{Type: event.LineMalformed, Class: event.Frame,
			Payload: bytes.Repeat([]byte("x"), store.ChunkBytes/4)}); err != nil {
			t.Fatal(err)
		}
	}
	if got, more, err := store.Fetch(&l.Reader, t.Context(), event.Query{}, store.Chunk); len(got) != 4 || !more ||
		err != nil {
		t.Errorf("%d events in a store.Chunk, more %t, %v", len(got), more, err)
	}
	if n, err := l.Count(t.Context(), event.Query{}); n != 12 || err != nil {
		t.Errorf("%d events in all, %v", n, err)
	}
}

// TestReaderOfANewLog opens readers while other goroutines make logs. A reader finds no log or the whole log. It never
// takes a log that is being made for the file of another program.
func TestReaderOfANewLog(t *testing.T) {
	dir := t.TempDir()
	for n := range 100 {
		path := filepath.Join(dir, fmt.Sprint(n))
		made := make(chan error, 1)
		go func() {
			db, err := sqlx.Open("sqlite", store.WriterDSN(path))
			if err == nil {
				err = errors.Join(store.Prepare(context.Background(), db), db.Close())
			}
			made <- err
		}()
		for {
			r, err := store.OpenReader(t.Context(), path)
			if err == nil {
				if err := r.Close(); err != nil {
					t.Error(err)
				}
				break
			}
			if !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("log %d: %v", n, err)
				break
			}
		}
		if err := <-made; err != nil {
			t.Fatal(err)
		}
	}
}
