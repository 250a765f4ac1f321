package kernel

import (
	"errors"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/kernel/budget"
	"github.com/perlica/perlica/kernel/config"
)

// openWithBudgets opens a runner with budgets and a clock. The clock begins at noon in UTC, plus shift.
func openWithBudgets(t *testing.T, shift *atomic.Int64, budgets ...config.Budget) *Runner {
	t.Helper()
	r := openAlone(t)
	opt := r.opt
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	noon := begin.UTC().Truncate(24 * time.Hour).Add(12 * time.Hour)
	opt.Now = func() time.Time { return noon.Add(time.Since(begin)).Add(time.Duration(shift.Load())) }
	opt.Budgets, opt.BudgetDir = budgets, filepath.Join(opt.Paths.Dir, "budgets")
	r, err := Open(t.Context(), opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

// TestBudgetRenewal checks that an input that a day's budget refused makes one call on the next day, under the same id.
func TestBudgetRenewal(t *testing.T) {
	var shift atomic.Int64
	one := 1
	r := openWithBudgets(t, &shift, config.Budget{Per: "day", Calls: &one, Timezone: "UTC"})
	call := func(id event.InputID) (replayed bool, err error) {
		res, err := hostileTurn(t, r, "hello", func(turn *Turn) { turn.Input.ID = id })
		return res.Replayed, err
	}
	if _, err := call("one"); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := call("two"); !errors.As(err, new(*budget.RefusedError)) {
			t.Fatalf("%v, want a refusal", err)
		}
	}
	if n, err := r.log.Count(t.Context(), event.Query{Types: []event.Type{event.BudgetRefused}}); n != 2 || err != nil {
		t.Errorf("%d refusals on record, %v; want 2", n, err)
	}
	shift.Add(int64(24 * time.Hour))
	for _, want := range []bool{false, true} {
		if replayed, err := call("two"); err != nil || replayed != want {
			t.Errorf("on the next day: %v, %v; want %v", replayed, err, want)
		}
	}
	if _, err := call("three"); !errors.As(err, new(*budget.RefusedError)) {
		t.Errorf("%v, want a refusal", err)
	}
	if n, _ := sent(t, r, "session/prompt"); n != 2 {
		t.Errorf("%d prompts, want 2", n)
	}
}

// TestBudgetOfGrowingReports checks that an agent's usage updates, which grow during its session, count once: the costs
// as the difference to the report before, and the size of the context not as tokens.
func TestBudgetOfGrowingReports(t *testing.T) {
	most := 1_000_000
	r := openWithBudgets(t, new(atomic.Int64), config.Budget{Per: "day", Tokens: &most, Money: "9 USD"})
	c := converse(t, r, "", "", "")
	for _, text := range []string{
		"@usage 100 1000 cost=0.10\n@usage 120 1000 cost=0.20\n@tokens 10 5\n@say one",
		"@usage 300 1000 cost=0.50\n@tokens 20 5\n@say two",
		"@usage 400 1000 cost=0.50\n@tokens 30 5\n@say three",
	} {
		say(t, c, text)
	}
	list, err := r.Budgets(t.Context(), c.Session())
	if err != nil || len(list) != 1 || len(list[0].Amount) != 2 {
		t.Fatalf("%+v, %v", list, err)
	}
	if tokens, money := *list[0].Amount[0].Used, *list[0].Amount[1].Used; tokens != 75 || money != 0.5 {
		t.Errorf("%v tokens and %v USD are used, want 75 and 0.5", tokens, money)
	}
	closeConversation(t, c)
}
