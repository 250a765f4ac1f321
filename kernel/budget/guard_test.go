package budget

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/perlica/perlica/eventlog"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/kernel/config"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/kernel/filelock"
	"github.com/perlica/perlica/kernel/logtrust"
)

// world has the projects of one user and a clock.
type world struct {
	testing.TB
	dir string
	now time.Time
	n   int
}

func newWorld(t testing.TB) *world {
	return &world{TB: t, dir: t.TempDir(), now: time.Now().UTC().Truncate(24 * time.Hour).Add(time.Hour)}
}

// project is a project with a log and budgets.
type project struct {
	*world
	log *eventlog.Log
	*Guard
}

func (w *world) known() logtrust.Store { return logtrust.Store{Dir: filepath.Join(w.dir, "logs")} }

func (w *world) open(name string, budgets ...config.Budget) *project {
	w.Helper()
	dir := filepath.Join(w.dir, name, config.DirName, "contexts", "default")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		w.Fatal(err)
	}
	log, _, err := w.known().Open(w.Context(), filepath.Join(dir, "eventlog.db"),
		eventlog.Options{Context: "default", Now: func() time.Time { return w.now }})
	if err != nil {
		w.Fatal(err)
	}
	g, err := New(Options{Budgets: budgets, Locks: dir, Dir: filepath.Join(w.dir, "budgets"), Known: w.known(),
		Now: func() time.Time { return w.now }})
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() {
		if err := errors.Join(g.Close(), log.Close()); err != nil {
			w.Error(err)
		}
	})
	return &project{w, log, g}
}

// call makes a call with the answer, unless a budget refuses it. It returns the refusal.
func (p *project) call(c Call, answer fact.Responded) *RefusedError {
	p.Helper()
	p.n++
	c.Refs.Run = event.RunID(fmt.Sprint("run-", p.n))
	if c.Refs.Input == "" {
		c.Refs.Input = event.InputID(fmt.Sprint("input-", p.n))
	}
	if c.Provider == "" {
		c.Provider = "claude"
	}
	_, err := p.Check(p.Context(), &p.log.Reader, c)
	var refused *RefusedError
	if errors.As(err, &refused) {
		return refused
	}
	if err != nil {
		p.Fatal(err)
	}
	answer.Provider = c.Provider
	if _, err := p.log.Append(p.Context(),
		event.NewFact(event.MessageReceived, "user", c.Refs, fact.MessageReceived{Sender: c.Sender}),
		event.NewFact(event.Requested, "perlica", c.Refs, fact.Requested{Provider: c.Provider}),
		event.NewFact(event.Responded, "agent", c.Refs, answer)); err != nil {
		p.Fatal(err)
	}
	return nil
}

func of(n int) *int { return &n }

func tokens(in, out int) []byte {
	return fmt.Appendf(nil, `{"inputTokens":%d,"outputTokens":%d}`, in, out)
}

// expect checks that the first free calls are allowed and that the next one is refused with this reason. The parameter
// "free" is their number.
func (p *project) expect(free int, reason string, c Call, answer fact.Responded) {
	p.Helper()
	for i := range free {
		if e := p.call(c, answer); e != nil {
			p.Fatalf("call %d: %v", i, e)
		}
	}
	if e := p.call(c, answer); e == nil || !strings.Contains(e.Why, reason) {
		p.Errorf("after %d calls: %v, want a refusal with %q", free, e, reason)
	}
}

// TestConditions checks that a budget counts the calls that it names, and no others.
func TestConditions(t *testing.T) {
	calls := func(b config.Budget) config.Budget {
		b.Per, b.Calls = "day", of(1)
		return b
	}
	for name, tt := range map[string]struct {
		budget    config.Budget
		one, none Call
	}{
		"provider": {config.Budget{Provider: "claude"}, Call{}, Call{Provider: "codex"}},
		"schedule": {config.Budget{Schedule: "morning"},
			Call{Refs: event.Refs{Input: "schedule:morning@2026-11-27T08:00:00Z"}},
			Call{Refs: event.Refs{Input: "schedule:mornings@2026-11-27T08:00:00Z"}}},
		"schedule of a flow": {config.Budget{Schedule: "morning"},
			Call{Refs: event.Refs{Input: "flow:schedule:morning@2026-11-27T08:00:00Z/review"}},
			Call{Refs: event.Refs{Input: "flow:morning/review"}}},
		"flow": {config.Budget{Flow: "review"}, Call{Refs: event.Refs{Input: "flow:1/step"}},
			Call{Refs: event.Refs{Input: "flow:2/step"}}},
		"contact by name": {config.Budget{Contact: "alice"}, Call{Sender: "alice (telegram:7)"},
			Call{Sender: "alice2 (telegram:8)"}},
		"contact by id": {config.Budget{Contact: "telegram:7"}, Call{Sender: "alice (telegram:7)"},
			Call{Sender: "alice (telegram:77)"}},
		"project": {config.Budget{Project: "site", Scope: userScope}, Call{}, Call{}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			p, elsewhere := w.open("site", calls(tt.budget)), w.open("other", calls(tt.budget))
			for run, flow := range map[event.RunID]string{"flow:1": "review", "flow:2": "other"} {
				if _, err := p.log.Append(t.Context(), event.NewFact(event.FlowStarted, "user", event.Refs{Run: run},
					fact.FlowStarted{Name: flow})); err != nil {
					t.Fatal(err)
				}
			}
			uncounted := p
			if name == "project" {
				uncounted = elsewhere
			}
			if e := uncounted.call(tt.none, fact.Responded{}); e != nil {
				t.Error(e)
			}
			p.expect(1, "1 of 1 calls are used", tt.one, fact.Responded{})
		})
	}
}

// TestPeriods checks the renewal of each period.
func TestPeriods(t *testing.T) {
	for per, next := range map[string]func(*world, *Call){
		"day":     func(w *world, _ *Call) { w.now = w.now.AddDate(0, 0, 1) },
		"week":    func(w *world, _ *Call) { w.now = w.now.AddDate(0, 0, 7) },
		"month":   func(w *world, _ *Call) { w.now = w.now.AddDate(0, 1, 1) },
		"session": func(_ *world, c *Call) { c.Refs.Session = "second" },
	} {
		w := newWorld(t)
		p := w.open("site", config.Budget{Per: per, Calls: of(2), Timezone: "UTC"})
		c := Call{Refs: event.Refs{Session: "first"}}
		p.expect(2, "2 of 2 calls are used", c, fact.Responded{})
		next(w, &c)
		p.expect(2, "2 of 2 calls are used", c, fact.Responded{})
	}
	p := newWorld(t).open("site", config.Budget{Per: "run", Calls: of(2)})
	for _, run := range []string{"a", "b"} {
		for i := range 3 {
			e := p.call(Call{Refs: event.Refs{Input: event.InputID(fmt.Sprintf("flow:%s/%d", run, i))}}, fact.Responded{})
			if (e != nil) != (i == 2) {
				t.Errorf("call %d of the flow run %s: %v", i, run, e)
			}
		}
	}
	if e := p.call(Call{}, fact.Responded{}); e != nil {
		t.Error(e)
	}
}

// TestUsageBelongsToTheBeginning checks that the tokens of a call count for the day on which it began, and that a
// provider's cumulative reports count once.
func TestUsageBelongsToTheBeginning(t *testing.T) {
	w := newWorld(t)
	p := w.open("site", config.Budget{Per: "day", Tokens: of(100), Timezone: "UTC"},
		config.Budget{Per: "day", Money: "1 EUR", Timezone: "UTC"})
	c := Call{Refs: event.Refs{Session: "s", Conversation: "theirs"}}
	report := func(in int, amount float64) fact.Responded {
		return fact.Responded{Usage: tokens(in, 0), OfSession: true, Cost: &fact.Cost{Amount: amount, Currency: "EUR"}}
	}
	for _, in := range []int{30, 60, 90} {
		if e := p.call(c, report(in, float64(in)/100)); e != nil {
			t.Fatal(e)
		}
	}
	w.now = w.now.AddDate(0, 0, 1)
	for _, in := range []int{120, 180, 190} { // reports of the whole session: today's calls add 30, 60 and 10 tokens
		if e := p.call(c, report(in, float64(in)/100)); e != nil {
			t.Fatal(e)
		}
	}
	p.expect(0, "100 of 100 tokens are used", c, fact.Responded{})

	w = newWorld(t)
	p = w.open("site", config.Budget{Per: "day", Tokens: of(100), Timezone: "UTC"})
	refs := event.Refs{Run: "late", Input: "late", Session: "s"}
	if _, err := p.log.Append(t.Context(), event.NewFact(event.Requested, "perlica", refs,
		fact.Requested{Provider: "claude"})); err != nil {
		t.Fatal(err)
	}
	w.now = w.now.AddDate(0, 0, 1)
	if _, err := p.log.Append(t.Context(), event.NewFact(event.Responded, "agent", refs,
		fact.Responded{Provider: "claude", Usage: tokens(500, 0)})); err != nil {
		t.Fatal(err)
	}
	if e := p.call(Call{}, fact.Responded{}); e != nil {
		t.Errorf("the tokens of a call that began yesterday count today: %v", e)
	}
}

// TestRebuilt checks that a database that is made again from the whole log has the same amounts as one that was updated
// after each call.
func TestRebuilt(t *testing.T) {
	w := newWorld(t)
	budgets := []config.Budget{
		{Per: "day", Calls: of(1000), Tokens: of(100_000), Money: "1000 EUR"},
		{Per: "day", Calls: of(1000), Tokens: of(100_000), Contact: "alice"},
		{Per: "day", Calls: of(1000), Tokens: of(100_000), Provider: "codex"},
		{Per: "session", Calls: of(1000), Tokens: of(100_000)},
	}
	p := w.open("site", budgets...)
	for i, c := range []struct{ sender, session, theirs, provider string }{
		{"alice (a:1)", "s", "A", ""}, {"alice (a:1)", "s", "A", ""}, {"bob (a:2)", "s", "B", ""}, {"", "s", "A", ""},
		{"bob (a:2)", "other", "A", "codex"}, {"alice (a:1)", "other", "A", "codex"}, {"", "other", "", "codex"},
	} {
		call := Call{Sender: c.sender, Provider: c.provider, Refs: event.Refs{Session: event.SessionID(c.session),
			Conversation: event.ConversationID(c.theirs)}}
		if e := p.call(call, fact.Responded{Usage: tokens(10*(i+1), i), OfSession: true,
			Cost: &fact.Cost{Amount: float64(i + 1), Currency: []string{"EUR", "USD"}[i/6]}}); e != nil {
			t.Fatal(e)
		}
	}
	again, err := New(Options{Budgets: budgets, Locks: p.opt.Locks, Dir: filepath.Join(w.dir, "again"), Known: w.known(),
		Now: p.opt.Now})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := again.Close(); err != nil {
			t.Error(err)
		}
	}()
	// The tokens are 10, 21-10, 32 of a second agent's session, 43 of the first one again, 54, 65-54, and 76 without one.
	var used []string
	for _, g := range []*Guard{p.Guard, again} {
		list, err := g.Status(t.Context(), &p.log.Reader, "s")
		if err != nil {
			t.Fatal(err)
		}
		var amounts []float64
		for _, s := range list {
			for _, a := range s.Amount {
				amounts = append(amounts, *a.Used)
			}
		}
		used = append(used, fmt.Sprint(amounts))
	}
	const want = "[7 237 15 3 32 3 141 4 96]"
	if used[0] != want || used[1] != want {
		t.Errorf("updated: %s, made again: %s, want %s", used[0], used[1], want)
	}
}

// TestAbsurdReports checks that a report of absurd numbers neither frees a budget nor makes its view unusable.
func TestAbsurdReports(t *testing.T) {
	p := newWorld(t).open("site", config.Budget{Per: "day", Tokens: of(1000)}, config.Budget{Per: "day", Money: "9 EUR"})
	for _, usage := range []string{`{"inputTokens":-9000000,"outputTokens":-5}`,
		`{"inputTokens":9223372036854775807,"outputTokens":9223372036854775807}`} {
		c := Call{Refs: event.Refs{Session: "s"}}
		answer := fact.Responded{Usage: []byte(usage), Cost: &fact.Cost{Amount: -1e300, Currency: "EUR"}}
		if e := p.call(c, answer); e != nil {
			t.Fatal(e)
		}
	}
	p.expect(0, "tokens are used", Call{}, fact.Responded{})
}

// TestAllProjects checks a budget for all projects of the user: it counts the calls of each log, and a log that is gone
// no longer counts.
func TestAllProjects(t *testing.T) {
	w := newWorld(t)
	b := config.Budget{Per: "day", Calls: of(3), Scope: userScope, Timezone: "UTC"}
	one, two := w.open("one", b), w.open("two", b)
	for i, p := range []*project{one, two, one} {
		if e := p.call(Call{}, fact.Responded{}); e != nil {
			t.Errorf("call %d: %v", i, e)
		}
	}
	two.expect(0, "3 of 3 calls are used", Call{}, fact.Responded{})
	one.expect(0, "3 of 3 calls are used", Call{}, fact.Responded{})
}

// TestWarnedOnce checks that a person gets a warning once in a period, from 80 % on.
func TestWarnedOnce(t *testing.T) {
	w := newWorld(t)
	w.now = w.now.AddDate(0, 0, -1) // the second day is today, because old files are not read
	b := config.Budget{Per: "day", Calls: of(10), Scope: userScope, Timezone: "UTC"}
	one, two := w.open("one", b), w.open("two", b)
	var warned []int
	for i := range 20 {
		p := []*project{one, two}[i%2]
		c, err := p.Check(t.Context(), &p.log.Reader, Call{Provider: "claude"})
		if err != nil {
			t.Fatal(err)
		}
		for _, warning := range c.Warnings {
			warned = append(warned, i)
			if _, err := p.log.Append(t.Context(), event.NewFact(event.BudgetWarned, "perlica", event.Refs{},
				warning)); err != nil {
				t.Fatal(err)
			}
		}
		p.call(Call{}, fact.Responded{})
		if i == 9 {
			w.now = w.now.AddDate(0, 0, 1)
		}
	}
	if fmt.Sprint(warned) != "[7 17]" {
		t.Errorf("warnings at the calls %v, want 7 and 17", warned)
	}
}

// TestOtherCurrency checks that a budget of money counts only costs in its own currency.
func TestOtherCurrency(t *testing.T) {
	p := newWorld(t).open("site", config.Budget{Per: "day", Money: "1 EUR"})
	for range 2 {
		if e := p.call(Call{}, fact.Responded{Cost: &fact.Cost{Amount: 5, Currency: "USD"}}); e != nil {
			t.Error(e)
		}
	}
	p.expect(1, "5.00 EUR of 1.00 EUR is used", Call{}, fact.Responded{Cost: &fact.Cost{Amount: 5, Currency: "EUR"}})
}

// TestLock checks that only one process at a time can hold the lock in which it checks a budget and records its call. A
// waiting process stops waiting when its context ends.
func TestLock(t *testing.T) {
	w := newWorld(t)
	b := config.Budget{Per: "day", Calls: of(3), Scope: userScope}
	one, two := w.open("one", b), w.open("two", b)
	unlock, err := one.Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if held, err := filelock.Held(filepath.Join(two.opt.Dir, lockName)); !held || err != nil {
		t.Errorf("the lock of all projects is free: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := two.Lock(ctx); !errors.Is(err, ErrNotChecked) || !errors.Is(err, context.Canceled) {
		t.Errorf("a process with an ended context gets the lock: %v", err)
	}
	unlock()
	unlock, err = two.Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	unlock()
}

// TestNoBudget checks that a nil Guard locks, reads and allocates nothing.
func TestNoBudget(t *testing.T) {
	g, err := New(Options{})
	if g != nil || err != nil {
		t.Fatal(g, err)
	}
	if n := testing.AllocsPerRun(100, func() {
		check, err := g.Check(t.Context(), nil, Call{})
		if check.Exceeded(t.Context(), Report{}) != nil || err != nil || check.Watches() {
			t.Error(check, err)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
