package schedule

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/perlica/perlica/eventlog"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/kernel/config"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/kernel/flow"
)

// world has one log and the calls that keepers make on it. Its time begins at midnight on 1 January 2000, in UTC.
type world struct {
	t   *testing.T
	log *eventlog.Log
	dir string

	mu     sync.Mutex
	tables []config.Schedule
	shift  time.Duration // the error of the clock
	calls  []string      // the schedule, its planned time, the time of the call and the text
	start  time.Duration // the time that an agent takes to start, before the intent
	// run plays the agent during a call. It may sleep, and it returns the call's error. If run is nil, the call takes
	// no time and has no error.
	run func(c Call) error
}

func newWorld(t *testing.T, tables ...config.Schedule) *world {
	w := &world{t: t, dir: t.TempDir(), tables: tables}
	var err error
	if w.log, err = eventlog.Open(t.Context(), filepath.Join(w.dir, "eventlog.db"), eventlog.Options{}); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *world) close() {
	if err := w.log.Close(); err != nil {
		w.t.Error(err)
	}
}

func (w *world) now() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return time.Now().Add(w.shift).UTC()
}

// keeper returns a keeper of the log. Its Answer calls no agent: it only records the intent of the call.
func (w *world) keeper() *Keeper {
	return &Keeper{
		Log: w.log, Locks: w.dir, Now: w.now,
		Schedules: func() (list []Schedule, err error) {
			w.mu.Lock()
			defer w.mu.Unlock()
			for _, c := range w.tables {
				s, err := fromTable(c, time.UTC)
				if err != nil {
					return nil, err
				}
				list = append(list, s)
			}
			return list, nil
		},
		Digest: func(text string) (string, error) { return "digest of " + text, nil },
		Answer: func(ctx context.Context, c Call) error {
			time.Sleep(w.start)
			refs := event.Refs{Input: c.Input, Run: event.RunID("run of " + c.Input)}
			_, err := w.log.Append(ctx, event.NewFact(event.Requested, "perlica", refs, fact.Requested{}))
			if errors.As(err, new(*eventlog.ConflictError)) {
				return nil // the input was called before: no second call
			}
			if err != nil {
				return err
			}
			w.mu.Lock()
			run := w.run
			w.calls = append(w.calls, fmt.Sprintf("%s %s at %s %s", c.ID, c.Time.UTC().Format("02T15:04"),
				time.Now().Add(w.shift).UTC().Format("02T15:04"), c.Text))
			w.mu.Unlock()
			if run != nil {
				return run(c)
			}
			return nil
		},
		Show: func(_ event.Event, err error) {
			if err != nil {
				w.t.Error(err)
			}
		},
	}
}

// during runs keepers in goroutines while f runs.
func (w *world) during(f func(), keepers ...*Keeper) {
	ctx, cancel := context.WithCancel(w.t.Context())
	var wg sync.WaitGroup
	for _, k := range keepers {
		wg.Go(func() { k.Run(ctx) })
	}
	synctest.Wait()
	f()
	cancel()
	wg.Wait()
}

// facts returns a line for each event about a schedule.
func (w *world) facts() (lines []string) {
	at := func(t time.Time) string { return t.UTC().Format("02T15:04") }
	for e, err := range w.log.Events(w.t.Context(), event.Query{Types: types}) {
		if err != nil {
			w.t.Fatal(err)
		}
		switch e.Type {
		case event.ScheduleStarted:
			f, _ := fact.Decode[fact.ScheduleStarted](e)
			lines = append(lines, fmt.Sprintf("%s started %s %s", f.Schedule, at(f.From), f.Why))
		case event.SchedulePlanned:
			f, _ := fact.Decode[fact.SchedulePlanned](e)
			lines = append(lines, fmt.Sprintf("%s planned %s %s", f.Schedule, at(f.Time), f.Digest))
		case event.ScheduleMissed:
			f, _ := fact.Decode[fact.ScheduleMissed](e)
			lines = append(lines, strings.TrimSpace(fmt.Sprintf("%s missed %d %s to %s %s %s", f.Schedule, f.Count,
				at(f.First), at(f.Last), f.Why, f.Code)))
		default:
			lines = append(lines, string(e.Type))
		}
	}
	return lines
}

// want compares the calls and the facts with the wanted ones.
func (w *world) want(calls, facts []string) {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if !slices.Equal(w.calls, calls) {
		w.t.Errorf("the calls:\n %s, want\n %s", strings.Join(w.calls, "\n "), strings.Join(calls, "\n "))
	}
	if got := w.facts(); facts != nil && !slices.Equal(got, facts) {
		w.t.Errorf("the facts:\n %s, want\n %s", strings.Join(got, "\n "), strings.Join(facts, "\n "))
	}
}

func (w *world) set(f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f()
}

// tries returns the number of calls so far.
func (w *world) tries() (n int) {
	w.set(func() { n = len(w.calls) })
	return n
}

// table returns a schedule at minute 0 of each hour.
func table(id string) config.Schedule {
	return config.Schedule{ID: id, Cron: "0 * * * *", Text: "hello", Missed: "skip", Overlap: "skip", Permissions: "deny"}
}

// TestRun checks that a keeper calls each planned time once, in time, and only after it has seen the schedule.
func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, table("a"))
		defer w.close()
		w.during(func() { time.Sleep(2*time.Hour + time.Minute) }, w.keeper())
		w.want([]string{"a 01T01:00 at 01T01:00 hello", "a 01T02:00 at 01T02:00 hello"},
			[]string{"a started 01T00:00 new", "a planned 01T01:00 digest of hello", "a planned 01T02:00 digest of hello"})
	})
}

// TestSlowStart checks slow agents: a keeper that sees the plan of an input without its intent still plans the next
// times in time.
func TestSlowStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := table("a")
		s.Cron, s.Every = "", 2*time.Second
		w := newWorld(t, s)
		defer w.close()
		w.start = time.Second
		w.during(func() { time.Sleep(9500 * time.Millisecond) }, w.keeper(), w.keeper())
		if len(w.calls) != 4 || len(w.facts()) != 5 {
			t.Errorf("%s\n%s", w.calls, strings.Join(w.facts(), "\n"))
		}
	})
}

// TestTwoKeepers checks that two keepers of one log make one call for each planned time.
func TestTwoKeepers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, table("a"), table("b"))
		defer w.close()
		w.during(func() { time.Sleep(3*time.Hour + time.Minute) }, w.keeper(), w.keeper(), w.keeper())
		slices.Sort(w.calls)
		w.want([]string{
			"a 01T01:00 at 01T01:00 hello", "a 01T02:00 at 01T02:00 hello", "a 01T03:00 at 01T03:00 hello",
			"b 01T01:00 at 01T01:00 hello", "b 01T02:00 at 01T02:00 hello", "b 01T03:00 at 01T03:00 hello",
		}, nil)
		if facts := w.facts(); len(facts) != 8 {
			t.Errorf("the facts: %s", strings.Join(facts, "\n "))
		}
	})
}

// TestSleep checks that a computer that slept for three days makes no burst: each of ten schedules gets one event for
// its gap, and at most one input. The made-up inputs come one after another.
func TestSleep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var tables []config.Schedule
		for i := range 10 {
			s := table(string(rune('a' + i)))
			if i >= 5 {
				s.Missed = "latest"
			}
			tables = append(tables, s)
		}
		w := newWorld(t, tables...)
		defer w.close()
		atOnce, most := 0, 0
		w.run = func(Call) error {
			w.set(func() { atOnce++; most = max(most, atOnce) })
			time.Sleep(time.Second)
			w.set(func() { atOnce-- })
			return nil
		}
		w.during(func() {
			time.Sleep(10 * time.Minute)
			w.set(func() { w.shift += 72*time.Hour + 10*time.Minute }) // 00:20 on the 4th
			time.Sleep(10 * time.Minute)
		}, w.keeper())
		if len(w.calls) != 5 || most != 1 {
			t.Errorf("%d calls, %d at once:\n%s", len(w.calls), most, strings.Join(w.calls, "\n"))
		}
		missed := slices.DeleteFunc(w.facts(), func(line string) bool { return !strings.Contains(line, "missed") })
		slices.Sort(missed)
		for i, line := range missed {
			id := string(rune('a' + i))
			want := id + " missed 72 01T01:00 to 04T00:00 late"
			if i >= 5 {
				want = id + " missed 71 01T01:00 to 03T23:00 late"
			}
			if line != want {
				t.Errorf("%s, want %s", line, want)
			}
		}
		if len(missed) != 10 {
			t.Errorf("%d gaps: %s", len(missed), missed)
		}
	})
}

// TestClockJumps checks clocks that jump forward and back by an hour and by a year. No time is called twice, and the
// schedule goes on at the right time.
func TestClockJumps(t *testing.T) {
	for _, by := range []time.Duration{time.Hour, 365 * 24 * time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			s := table("a")
			s.Cron = "*/30 * * * *"
			w := newWorld(t, s)
			defer w.close()
			w.during(func() {
				time.Sleep(32 * time.Minute) // 00:30 is called
				w.set(func() { w.shift += by })
				time.Sleep(30 * time.Minute) // by the wrong clock: 00:30 comes 2 minutes late, 01:00 in time
				w.set(func() { w.shift -= by })
				time.Sleep(30 * time.Minute) // by the right clock again: 01:30 is called, unless it was called before
			}, w.keeper())
			var times []string
			for _, call := range w.calls {
				times = append(times, call[:strings.Index(call, " at")])
			}
			want := []string{"a 01T00:30", "a 01T01:30", "a 01T02:00"}
			if by > time.Hour {
				want = []string{"a 01T00:30", "a 31T00:30", "a 31T01:00", "a 01T01:30"}
			}
			if !slices.Equal(times, want) {
				t.Errorf("by %s: %s, want %s\n%s", by, times, want, strings.Join(w.facts(), "\n"))
			}
		})
	}
}

// TestOverlap checks a time that comes while the schedule's earlier input runs: it is left out, or it waits. A second
// process decides in the same way.
func TestOverlap(t *testing.T) {
	for overlap, c := range map[string]struct{ calls, facts []string }{
		"skip": {[]string{"a 01T01:00 at 01T01:00 hello", "a 01T04:00 at 01T04:00 hello"},
			[]string{"a started 01T00:00 new", "a planned 01T01:00 digest of hello",
				"a missed 1 01T02:00 to 01T02:00 overlap", "a missed 1 01T03:00 to 01T03:00 overlap",
				"a planned 01T04:00 digest of hello"}},
		"wait": {[]string{"a 01T01:00 at 01T01:00 hello", "a 01T03:00 at 01T03:30 hello", "a 01T04:00 at 01T04:00 hello"},
			[]string{"a started 01T00:00 new", "a planned 01T01:00 digest of hello",
				"a missed 1 01T02:00 to 01T02:00 late", "a planned 01T03:00 digest of hello",
				"a planned 01T04:00 digest of hello"}},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := table("a")
			s.Overlap = overlap
			w := newWorld(t, s)
			defer w.close()
			w.run = func(c Call) error {
				if c.Time.Hour() == 1 {
					time.Sleep(150 * time.Minute)
				}
				return nil
			}
			w.during(func() { time.Sleep(4*time.Hour + time.Minute) }, w.keeper(), w.keeper())
			w.want(c.calls, c.facts)
		})
	}
}

// TestChangedText checks a process that dies between the plan and the call, and a text that changes then. The next
// process plans the new text and calls it once.
func TestChangedText(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, table("a"))
		defer w.close()
		k := w.keeper()
		if err := k.Due(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		list, _ := k.Schedules()
		call, err := k.plan(t.Context(), list[0])
		if err != nil || call == nil {
			t.Fatal(call, err)
		}
		// Another process does not take the plan of a living one.
		if err := w.keeper().Due(t.Context()); err != nil {
			t.Fatal(err)
		}
		call.lock.Release() // the process dies
		w.set(func() { w.tables[0].Text = "other" })
		for range 3 {
			if err := w.keeper().Due(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		w.want([]string{"a 01T01:00 at 01T01:00 other"}, []string{"a started 01T00:00 new",
			"a planned 01T01:00 digest of hello", "a planned 01T01:00 digest of other"})
	})
}

// TestChangedRule checks a schedule with changed times. The new times apply from the moment at which a process sees the
// change. No earlier time is missed or called.
func TestChangedRule(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := table("a")
		s.Missed = "latest"
		w := newWorld(t, s)
		defer w.close()
		w.during(func() { time.Sleep(90 * time.Minute) }, w.keeper())
		w.set(func() { w.tables[0].Cron = "25 * * * *" })
		w.during(func() { time.Sleep(time.Hour) }, w.keeper())
		w.want([]string{"a 01T01:00 at 01T01:00 hello", "a 01T02:25 at 01T02:25 hello"},
			[]string{"a started 01T00:00 new", "a planned 01T01:00 digest of hello", "a started 01T01:30 changed",
				"a planned 01T02:25 digest of hello"})
	})
}

// TestPause checks that a paused schedule makes and misses nothing, and goes on from the moment at which it is resumed.
func TestPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := table("a")
		s.Missed = "latest"
		w := newWorld(t, s)
		defer w.close()
		w.during(func() {
			time.Sleep(30 * time.Minute)
			list, _ := w.keeper().Schedules()
			if err := Pause(t.Context(), w.log, list[0], "me"); err != nil {
				t.Error(err)
			}
			time.Sleep(3 * time.Hour)
			if err := Resume(t.Context(), w.log, list[0], "me", w.now()); err != nil {
				t.Error(err)
			}
			if err := Resume(t.Context(), w.log, list[0], "me", w.now()); !errors.Is(err, errNotPaused) {
				t.Errorf("a second time: %v", err)
			}
			time.Sleep(time.Hour)
		}, w.keeper())
		w.want([]string{"a 01T04:00 at 01T04:00 hello"}, []string{"a started 01T00:00 new", "schedule.paused",
			"schedule.resumed", "a planned 01T04:00 digest of hello"})
	})
}

// TestPauseWhilePlanning pauses a schedule after a keeper has read its state and before the keeper records a plan. The
// keeper must read the state again and plan nothing. The test fails if a keeper records a decision although the log has
// a newer event about a schedule.
func TestPauseWhilePlanning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, table("a"))
		defer w.close()
		k := w.keeper()
		digest := k.Digest
		list, err := k.Schedules()
		if err != nil {
			t.Fatal(err)
		}
		k.Digest = func(text string) (string, error) {
			if err := Pause(t.Context(), w.log, list[0], "me"); err != nil {
				t.Error(err)
			}
			return digest(text)
		}
		w.during(func() { time.Sleep(3 * time.Hour) }, k)
		w.want(nil, []string{"a started 01T00:00 new", "schedule.paused"})
	})
}

// TestRefused checks that an input that is not accepted is on record and is not tried again. The next planned time is
// tried.
func TestRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := table("a")
		s.Missed = "latest"
		w := newWorld(t, s)
		defer w.close()
		k := w.keeper()
		tries := 0
		k.Answer = func(context.Context, Call) error { tries++; return errors.New("no such agent") }
		w.during(func() { time.Sleep(130 * time.Minute) }, k)
		w.want(nil, []string{"a started 01T00:00 new", "a planned 01T01:00 digest of hello",
			"a missed 1 01T01:00 to 01T01:00 refused", "a planned 01T02:00 digest of hello",
			"a missed 1 01T02:00 to 01T02:00 refused"})
		if tries != 2 {
			t.Errorf("%d tries", tries)
		}
	})
}

// TestJitter checks that the delay of a time is always the same, is less than the jitter, and keeps the order.
func TestJitter(t *testing.T) {
	s := newSchedule(t, "*/5 * * * *", "UTC")
	s.Jitter = time.Hour
	at := time.Date(2026, 11, 27, 8, 0, 0, 0, time.UTC)
	different := map[time.Duration]bool{}
	for range 50 {
		delay := s.Delay(at)
		if delay < 0 || delay >= 5*time.Minute || delay != s.Delay(at) {
			t.Errorf("%s: %s", at, delay)
		}
		different[delay] = true
		at, _ = s.After(at)
	}
	if len(different) < 25 {
		t.Errorf("only %d different delays", len(different))
	}
	synctest.Test(t, func(t *testing.T) {
		c := table("a")
		c.Jitter = 10 * time.Minute
		w := newWorld(t, c)
		defer w.close()
		list, _ := w.keeper().Schedules()
		first := time.Date(2000, 1, 1, 1, 0, 0, 0, time.UTC)
		w.during(func() { time.Sleep(time.Hour + list[0].Delay(first) - time.Second) }, w.keeper())
		w.want(nil, nil)
		w.during(func() { time.Sleep(2 * time.Second) }, w.keeper())
		if len(w.calls) != 1 || !strings.HasPrefix(w.calls[0], "a 01T01:00 at") {
			t.Errorf("%s", w.calls)
		}
	})
}

// flowAnswer returns the function Answer of a keeper whose calls are flow runs. It records the start of the flow run
// and calls drive, which reports whether the flow run has ended.
func (w *world) flowAnswer(drive func(ctx context.Context, c Call) (ended bool)) func(context.Context, Call) error {
	return func(ctx context.Context, c Call) error {
		w.set(func() {
			w.calls = append(w.calls, fmt.Sprintf("%s %v at %s", c.Time.UTC().Format("02T15:04"), c.Continued,
				time.Now().Add(w.shift).UTC().Format("02T15:04")))
		})
		run := event.Refs{Run: flow.RunID(string(c.Input)), Interaction: event.Flows}
		started := event.Query{Run: run.Run, Types: []event.Type{event.FlowStarted}}
		_, err := w.log.AppendUnless(ctx, started, event.NewFact(event.FlowStarted, "user", run, fact.FlowStarted{}))
		if err != nil && !errors.As(err, new(*eventlog.ConflictError)) {
			return err
		}
		if drive(ctx, c) {
			_, err = w.log.Append(ctx, event.NewFact(event.FlowFinished, "perlica", run, fact.FlowFinished{}))
			return err
		}
		return nil
	}
}

// flowTable returns a schedule of a flow at minute 0 of each hour.
func flowTable(id string) config.Schedule {
	s := table(id)
	s.Text, s.Flow = "", "flow.toml"
	return s
}

// TestFlowContinues checks that the next keeper continues a flow run that its keeper has left, and plans no new one.
// Further times overlap with the flow run until it has ended. The test fails if a start counts as an end, or if a
// missed time makes the keeper forget the flow run.
func TestFlowContinues(t *testing.T) {
	for overlap, want := range map[string][]string{
		"skip": {"a started 01T00:00 new", "a planned 01T01:00 ", "a missed 1 01T02:00 to 01T02:00 overlap",
			"a missed 1 01T03:00 to 01T03:00 overlap", "a planned 01T04:00 "},
		"wait": {"a started 01T00:00 new", "a planned 01T01:00 ", "a missed 1 01T02:00 to 01T02:00 late", "a planned 01T03:00 ",
			"a planned 01T04:00 "},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := flowTable("a")
			s.Overlap = overlap
			w := newWorld(t, s)
			defer w.close()
			dies, lives := w.keeper(), w.keeper()
			dies.Answer = w.flowAnswer(func(ctx context.Context, _ Call) bool { <-ctx.Done(); return false })
			lives.Answer = w.flowAnswer(func(_ context.Context, c Call) bool {
				if c.Continued {
					time.Sleep(30 * time.Minute)
				}
				return true
			})
			w.during(func() { time.Sleep(2*time.Hour + time.Minute) }, dies) // from 00:00 to 02:01
			time.Sleep(49 * time.Minute)
			w.during(func() { time.Sleep(80 * time.Minute) }, lives) // from 02:50 to 04:10
			calls := []string{"01T01:00 false at 01T01:00", "01T01:00 true at 01T02:50", "01T04:00 false at 01T04:00"}
			if overlap == "wait" {
				calls = slices.Insert(calls, 2, "01T03:00 false at 01T03:20")
			}
			w.want(calls, want)
		})
	}
}

// TestFlowWaits checks a keeper that finds an unfinished flow run and a time that is due. With overlap = "wait" the
// time is made when the flow run ends. The test fails if the keeper leaves the time out.
func TestFlowWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := flowTable("a")
		s.Overlap = "wait"
		w := newWorld(t, s)
		defer w.close()
		dies, lives := w.keeper(), w.keeper()
		dies.Answer = w.flowAnswer(func(ctx context.Context, _ Call) bool { <-ctx.Done(); return false })
		lives.Answer = w.flowAnswer(func(_ context.Context, c Call) bool {
			if c.Continued {
				time.Sleep(30 * time.Minute)
			}
			return true
		})
		w.during(func() { time.Sleep(110 * time.Minute) }, dies) // from 00:00 to 01:50
		time.Sleep(15 * time.Minute)
		w.during(func() { time.Sleep(40 * time.Minute) }, lives) // from 02:05 to 02:45
		w.want([]string{"01T01:00 false at 01T01:00", "01T01:00 true at 01T02:05", "01T02:00 false at 01T02:35"},
			[]string{"a started 01T00:00 new", "a planned 01T01:00 ", "a planned 01T02:00 "})
	})
}

// TestFlowBecomesText checks a schedule that gets a text while its flow run is unfinished. The text is called at its own
// planned times alone. The test fails if the keeper continues the flow run with the text, outside of any planned time.
func TestFlowBecomesText(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, flowTable("a"))
		defer w.close()
		dies, lives := w.keeper(), w.keeper()
		dies.Answer = w.flowAnswer(func(ctx context.Context, _ Call) bool { <-ctx.Done(); return false })
		var called []string
		answer := lives.Answer
		lives.Answer = func(ctx context.Context, c Call) error {
			called = append(called, c.Time.UTC().Format("15:04")+" at "+w.now().UTC().Format("15:04"))
			return answer(ctx, c)
		}
		w.during(func() { time.Sleep(90 * time.Minute) }, dies) // from 00:00 to 01:30
		w.tables[0].Flow, w.tables[0].Text = "", "hello"
		w.during(func() { time.Sleep(100 * time.Minute) }, lives) // from 01:30 to 03:10
		if want := []string{"02:00 at 02:00", "03:00 at 03:00"}; !slices.Equal(called, want) {
			t.Errorf("called %q, want %q", called, want)
		}
	})
}

// TestFlowStuck checks a flow run that cannot go on, because a person must answer or judge first. A keeper tries it at
// each look and not more often, also with the schedule paused in between. The test fails if the keeper looks again at
// once.
func TestFlowStuck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, flowTable("a"))
		defer w.close()
		var open atomic.Bool
		open.Store(true)
		k := w.keeper()
		k.Answer = w.flowAnswer(func(context.Context, Call) bool { return !open.Load() })
		w.during(func() {
			time.Sleep(65*time.Minute + time.Second)
			tries := w.tries()
			if tries < 2 || tries > 8 {
				t.Errorf("%d tries in five minutes", tries)
			}
			s, err := fromTable(w.tables[0], time.UTC)
			if err != nil {
				t.Fatal(err)
			}
			if err := Pause(t.Context(), w.log, s, "me"); err != nil {
				t.Fatal(err)
			}
			tries = w.tries()
			time.Sleep(10 * time.Minute)
			if n := w.tries(); n != tries {
				t.Errorf("a paused schedule continues its flow run: %d tries", n-tries)
			}
			if err := Resume(t.Context(), w.log, s, "me", w.now()); err != nil {
				t.Fatal(err)
			}
			open.Store(false)
			time.Sleep(5 * time.Minute)
			if n := w.tries(); n != tries+1 {
				t.Errorf("the resumed schedule: %d tries", n-tries)
			}
		}, k)
	})
}

// TestFlowRefused checks that a refused flow run is not tried again, and that the next time makes a new one. After a
// flow run has begun, the record says that it stopped. The test fails if the record says that nothing was sent, or if
// the record lacks the code of the error.
func TestFlowRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, flowTable("a"))
		defer w.close()
		k := w.keeper()
		answer := w.flowAnswer(func(context.Context, Call) bool { return false })
		k.Answer = func(ctx context.Context, c Call) error {
			if c.Time.Hour() == 1 {
				_, err := flow.Load(filepath.Join(w.dir, "none.toml"))
				return err
			}
			return errors.Join(answer(ctx, c), errors.New("no budget"))
		}
		w.during(func() { time.Sleep(2*time.Hour + time.Minute) }, k)
		w.want([]string{"01T02:00 false at 01T02:00"}, []string{"a started 01T00:00 new",
			"a planned 01T01:00 ", "a missed 1 01T01:00 to 01T01:00 refused flow.in-place", "a planned 01T02:00 ",
			"a missed 1 01T02:00 to 01T02:00 stopped"})
	})
}

// TestTwoFlowKeepers checks that two keepers drive each flow run once.
func TestTwoFlowKeepers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, flowTable("a"))
		defer w.close()
		one, two := w.keeper(), w.keeper()
		one.Answer = w.flowAnswer(func(context.Context, Call) bool { time.Sleep(10 * time.Minute); return true })
		two.Answer = one.Answer
		w.during(func() { time.Sleep(2*time.Hour + 30*time.Minute) }, one, two)
		w.want([]string{"01T01:00 false at 01T01:00", "01T02:00 false at 01T02:00"}, []string{"a started 01T00:00 new",
			"a planned 01T01:00 ", "a planned 01T02:00 "})
	})
}
