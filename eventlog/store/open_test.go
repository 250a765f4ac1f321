package store_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/store"
)

// TestOpenRunsNeedNoScan checks that the queries for runs without an outcome do not scan the whole log, because every
// run executes them.
func TestOpenRunsNeedNoScan(t *testing.T) {
	l := openTest(t)
	mustAppend(t, l, event.NewFact(event.Requested, "user", event.Refs{Run: "r", Input: "i"}, struct{}{}))
	for query, use := range map[string][]string{
		store.Listed: {"SCAN x", "SEARCH intent USING INTEGER PRIMARY KEY",
			"SEARCH entries USING INDEX events_one_outcome_per_run"},
		store.Intended: {"SCAN intent USING INDEX events_one_intent_per_input",
			"SEARCH entries USING INDEX events_one_outcome_per_run"},
	} {
		rows, err := store.DB(&l.Reader).QueryxContext(t.Context(), `EXPLAIN QUERY PLAN `+query)
		if err != nil {
			t.Fatal(err)
		}
		var plan []string
		for rows.Next() {
			step, err := rows.SliceScan()
			if err != nil {
				t.Fatal(err)
			}
			plan = append(plan, step[3].(string))
		}
		if err := rows.Err(); err != nil {
			t.Fatal(err)
		}
		for _, u := range use {
			if !slices.ContainsFunc(plan, func(s string) bool { return strings.HasPrefix(s, u) }) {
				t.Errorf("no %q in %q", u, plan)
			}
		}
	}
}

// TestStatementsNameTheTablesTypes checks the types that statements contain as text. They must be the types of the
// table.
func TestStatementsNameTheTablesTypes(t *testing.T) {
	var outcomes []string
	for _, ty := range event.Known().Types() {
		if ty.Outcome() {
			outcomes = append(outcomes, "type = "+store.Literals([]event.Type{ty}))
		}
		if ty.Step() == event.Opens && !strings.Contains(store.Listed, "intent.type = "+store.Literals([]event.Type{ty})) {
			t.Errorf("open runs are looked for without %s", ty)
		}
	}
	if want := "(" + strings.Join(outcomes, " OR ") + ")"; store.IsOutcome != want {
		t.Errorf("the condition is %s, the table's %s", store.IsOutcome, want)
	}
}
