package eventlog

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/perlica/perlica/eventlog/disk"
	"github.com/perlica/perlica/eventlog/event"
)

// TestPruneWaitsForReaders checks that Prune waits for a reader that began before. The reader's snapshot still needs
// the pages with the removed bytes.
func TestPruneWaitsForReaders(t *testing.T) {
	if testing.Short() {
		t.Skip("it waits as long as any writer does")
	}
	t.Parallel() // the test waits most of the time
	l, path := pruneLog(t)
	conn, err := dbOf(t, path).Connx(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	do := func(sql string) {
		t.Helper()
		if _, err := conn.ExecContext(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	do(`BEGIN`)
	var n int
	if err := conn.GetContext(t.Context(), &n, `SELECT count(*) FROM events`); err != nil {
		t.Fatal(err)
	}
	p := event.Pruning{Until: 13}
	if _, err := l.Prune(t.Context(), p); !errors.Is(err, disk.ErrBusy) || l.Err() != nil {
		t.Errorf("got %v while somebody reads; the log: %v", err, l.Err())
	}
	do(`ROLLBACK`)
	if done, err := l.Prune(t.Context(), p); err != nil || !done.Resumed {
		t.Fatalf("%+v, %v", done, err)
	}
	if got := found(t, path, "[one:", "[two:"); got != "" {
		t.Errorf("in the files: %s", got)
	}
	intact(t, &l.Reader)
}

func TestPruneCancelled(t *testing.T) {
	l, path := pruneLog(t)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	l, err := Open(t.Context(), path, Options{fail: func(point string) error {
		if point == "remove" {
			cancel()
		}
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	many := make([]event.Event, 2*removeStep)
	for i := range many {
		many[i] = event.Event{Type: event.NotificationReceived, Class: event.Frame, Payload: fmt.Appendf(nil, "line %d", i)}
	}
	appendAll(t, l, many...)
	if _, err := l.Prune(ctx, event.Pruning{Until: event.Seq(len(many))}); !errors.Is(err, context.Canceled) ||
		l.Err() != nil {
		t.Errorf("got %v; the log: %v", err, l.Err())
	}
	if n := intact(t, &l.Reader); n == 0 || n > removeStep {
		t.Errorf("%d are missing", n)
	}
}
