package eventlog

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/perlica/perlica/eventlog/anchor"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/evidence"
	"github.com/perlica/perlica/eventlog/store"
)

// ways are all the ways to write an event soon.
var ways = map[string]func(l *Log, e event.Event) error{
	"append":      func(l *Log, e event.Event) error { _, err := l.Append(context.Background(), e); return err },
	"sync":        func(l *Log, e event.Event) error { return errors.Join(l.Record(e), l.Sync()) },
	"mark":        func(l *Log, e event.Event) error { return errors.Join(l.Record(e), l.SyncTo(l.Mark())) },
	"start flush": func(l *Log, e event.Event) error { defer l.StartFlush(); return l.Record(e) },
	"checkpoint":  func(l *Log, e event.Event) error { return errors.Join(l.Record(e), checkpointed(l)) },
	"anchored": func(l *Log, e event.Event) error {
		_, err := l.EndRunEarly(context.Background(), e)
		return errors.Join(err, l.Anchored())
	},
	"run's end": func(l *Log, e event.Event) error {
		_, err := l.EndRun(context.Background(), e, fact(event.CallEnforced, event.Refs{}))
		return err
	},
	"answer": func(l *Log, e event.Event) error {
		_, err := l.EndRunEarly(context.Background(), e)
		return err
	},
}

func checkpointed(l *Log) error {
	_, err := l.Checkpoint(context.Background())
	return err
}

// still is a log in a synctest bubble. In the bubble, time passes only while all goroutines wait.
type still struct {
	*Log
	t *testing.T
	// recorded is the number of events that must be on disk in the end.
	recorded int
	// fail is called at each failpoint. Tests set it only while all goroutines wait. nil lets no step fail.
	fail func(point string) error
}

const stillLazy = 20 * time.Millisecond

func standStill(t *testing.T, test func(t *testing.T, l *still)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		l, dir := &still{t: t}, t.TempDir()
		opt := Options{Lazy: stillLazy, Keys: evidence.UseKeys(dir), fail: func(point string) error {
			if l.fail == nil {
				return nil
			}
			return l.fail(point)
		}}
		var err error
		if l.Log, err = Open(t.Context(), filepath.Join(dir, "e.db"), opt); err != nil {
			t.Fatal(err)
		}
		defer func() { _ = l.Close() }() // some tests let the log fail
		test(t, l)
	})
}

func (l *still) recordOne() {
	l.t.Helper()
	if err := l.Record(fact(event.Truncated, event.Refs{})); err != nil {
		l.t.Fatal(err)
	}
	l.recorded++
}

// onDisk waits until all goroutines are idle and counts the events on disk.
func (l *still) onDisk() int {
	l.t.Helper()
	synctest.Wait()
	size, _, err := l.Head(l.t.Context())
	if err != nil {
		l.t.Fatal(err)
	}
	return int(size)
}

func (l *still) isWritten(when string, args ...any) {
	l.t.Helper()
	if n := l.onDisk(); n != l.recorded {
		l.t.Errorf("%s: %d of %d events are on disk", fmt.Sprintf(when, args...), n, l.recorded)
	}
}

// TestLazy checks that recorded events are written after Options.Lazy and not before. This must hold for the first
// event, for an event after a pause, and for an event after waiting callers.
func TestLazy(t *testing.T) {
	standStill(t, func(t *testing.T, l *still) {
		for range 3 {
			l.recordOne()
			<-time.After(stillLazy / 2)
			if n := l.onDisk(); n != l.recorded-1 {
				t.Errorf("it did not wait for company: %d of %d events are on disk", n, l.recorded)
			}
			<-time.After(stillLazy / 2)
			l.isWritten("after a rest")
			<-time.After(10 * stillLazy)
		}
		for _, name := range slices.Sorted(maps.Keys(ways)) {
			for _, pause := range []time.Duration{0, stillLazy / 2, stillLazy - 1, stillLazy, 3 * stillLazy} {
				l.recordOne()
				if err := ways[name](l.Log, fact(event.Truncated, event.Refs{})); err != nil {
					t.Fatal(name, err)
				}
				if l.recorded++; name == "run's end" {
					l.recorded++
				}
				l.isWritten("behind %s", name)
				<-time.After(pause)
				l.recordOne()
				<-time.After(stillLazy)
				l.isWritten("%v after %s", pause, name)
			}
		}
	})
}

// TestLazyInAStream checks that later events do not delay earlier events.
func TestLazyInAStream(t *testing.T) {
	standStill(t, func(t *testing.T, l *still) {
		for i := range 40 {
			l.recordOne()
			<-time.After(stillLazy / 4)
			if n := l.onDisk(); n < i-2 { // Options.Lazy of the first event has passed at the fourth pause.
				t.Errorf("%d of %d events are on disk", n, i+1)
			}
		}
	})
}

// TestAnchoredUnasked checks that the anchor is written at once, even if no caller waits for it.
func TestAnchoredUnasked(t *testing.T) {
	standStill(t, func(t *testing.T, l *still) {
		for n := range 3 {
			if _, err := l.EndRunEarly(t.Context(), fact(event.CallEnforced, event.Refs{})); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			if got, err := anchor.Read(l.Path()); len(got) != n+1 || err != nil {
				t.Errorf("%d lines after %d runs, %v", len(got), n+1, err)
			}
		}
	})
}

// TestLazyAfterReopen checks that the timer for recorded events works after the log failed and was reopened.
func TestLazyAfterReopen(t *testing.T) {
	standStill(t, func(t *testing.T, l *still) {
		for _, pause := range []time.Duration{0, stillLazy / 2, 3 * stillLazy} {
			synctest.Wait()
			l.fail = func(string) error { return errors.New("the disk says no") }
			if err := errors.Join(l.Record(fact(event.Truncated, event.Refs{})), l.Sync()); err == nil {
				t.Fatal("the log lives")
			}
			<-time.After(pause)
			synctest.Wait()
			l.fail = nil
			if err := l.Reopen(t.Context()); err != nil {
				t.Fatal(err)
			}
			l.recordOne()
			<-time.After(stillLazy)
			l.isWritten("opened again %v after its death", pause)
		}
	})
}

// A gate stops the first goroutine that reaches a point of a commit.
type gate struct {
	point   string
	held    chan bool // capacity 1
	release chan bool
}

func (g *gate) passPoint(point string) error {
	if point == g.point {
		select {
		case g.held <- true:
			<-g.release
		default:
		}
	}
	return nil
}

// soon waits until the function "so" returns true.
func soon(t *testing.T, what string, so func() bool) {
	t.Helper()
	end := time.Now().Add(2 * time.Minute)
	for tick := time.NewTicker(100 * time.Microsecond); !so(); <-tick.C {
		if time.Now().After(end) {
			t.Fatalf("%s: that never comes", what)
		}
	}
}

// TestWhoWaitsIsAnswered checks that a call gets its result while another goroutine holds commitMu, at any point of
// that goroutine's commit. No timer may be needed.
func TestWhoWaitsIsAnswered(t *testing.T) {
	var at atomic.Pointer[gate]
	at.Store(new(gate))
	dir := t.TempDir()
	opt := Options{Lazy: time.Hour, Keys: evidence.UseKeys(dir),
		fail: func(point string) error { return at.Load().passPoint(point) }}
	l, err := Open(t.Context(), filepath.Join(dir, "e.db"), opt)
	if err != nil {
		t.Fatal(err)
	}
	// The holder is the call that holds commitMu, and the point at which the gate stops it. After StartFlush
	// the writer goroutine holds commitMu.
	for _, holder := range []struct{ way, point string }{
		{"append", "commit"}, {"mark", "commit"}, {"start flush", "commit"}, {"run's end", "commit"},
		{"answer", "commit"}, {"answer", "anchor"},
		{"run's end", "anchor"}, {"anchored", "anchor"}, {"checkpoint", "anchor"}, {"", ""},
	} {
		for name := range ways {
			what := fmt.Sprintf("%s behind %s, held up at %q", name, holder.way, holder.point)
			g := &gate{holder.point, make(chan bool, 1), make(chan bool)}
			at.Store(g)
			var done atomic.Int32
			begin := func(way string) {
				if err := ways[way](l, fact(event.Truncated, event.Refs{Run: event.RunID(what)})); err != nil {
					t.Error(what, err)
				}
				done.Add(1)
			}
			want := 1
			if holder.way != "" {
				want = 2
				go begin(holder.way)
				soon(t, what, func() bool { return len(g.held) > 0 })
			}
			before := l.Mark()
			go begin(name)
			soon(t, what+": its entry is queued", func() bool { return l.Mark() > before })
			close(g.release)
			soon(t, what, func() bool { return int(done.Load()) == want })
			// StartFlush returns at once, so wait here until the event is on disk.
			soon(t, what, func() bool { return countOf(t, &l.Reader, event.RunID(what)) == want })
		}
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	audit(t, l.Path())
}

// TestPruneFailsBesideACheckpoint checks that every waiting caller gets the error if a pruning ends the log.
func TestPruneFailsBesideACheckpoint(t *testing.T) {
	l, path := pruneLog(t)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	g, fault := &gate{"remove", make(chan bool, 1), make(chan bool)}, errors.New("the disk says no")
	l, err := Open(t.Context(), path, Options{fail: func(point string) error {
		if _ = g.passPoint(point); point == "remove" {
			return fault
		}
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	answers := make(chan error, 2)
	go func() { _, err := l.Prune(t.Context(), event.Pruning{Until: 13}); answers <- err }()
	<-g.held
	go func() { answers <- checkpointed(l) }()
	soon(t, "a checkpoint is wanted", func() bool {
		_, pending := l.queue.end()
		return pending
	})
	close(g.release)
	for range 2 {
		soon(t, "an answer", func() bool { return len(answers) > 0 })
		if err := <-answers; !errors.Is(err, fault) {
			t.Error(err)
		}
	}
}

// TestEverybodyAtOnce checks that every waiting caller gets a result, and that its events are then on disk.
func TestEverybodyAtOnce(t *testing.T) {
	dir := t.TempDir()
	l, err := Open(t.Context(), filepath.Join(dir, "e.db"), Options{Lazy: time.Hour, Keys: evidence.UseKeys(dir)})
	if err != nil {
		t.Fatal(err)
	}
	const rounds = 20
	var all sync.WaitGroup
	for name, way := range ways {
		for twin := range 2 {
			run := event.RunID(fmt.Sprint(name, twin))
			all.Go(func() {
				for i := range rounds {
					if err := way(l, fact(event.Truncated, event.Refs{Run: run})); err != nil {
						t.Error(name, err)
						return
					}
					if n := countOf(t, &l.Reader, run); n <= i && name != "start flush" {
						t.Errorf("%s: %d of %d events are on disk", name, n, i+1)
					}
				}
			})
		}
	}
	done := make(chan bool)
	go func() { all.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Error("somebody waits for ever")
	}
	c, err := l.Checkpoint(t.Context())
	if want := int64(2 * rounds * (len(ways) + 1)); err != nil || c.Size != want { // the end of a run is two events
		t.Errorf("%d events, want %d, %v", c.Size, want, err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	audit(t, l.Path())
}

// countOf returns the number of events of the run on disk.
func countOf(t *testing.T, r *store.Reader, run event.RunID) (n int) {
	t.Helper()
	for _, err := range r.Events(context.Background(), event.Query{Run: run}) {
		if err != nil {
			t.Error(err)
		}
		n++
	}
	return n
}
