package eventlog

import (
	"slices"
	"strings"
	"testing"

	"github.com/perlica/perlica/eventlog/event"
)

// TestOpenRunsNeedNoScan: every run asks for them.
func TestOpenRunsNeedNoScan(t *testing.T) {
	l := openTest(t)
	appendAll(t, l, fact(event.Requested, event.Refs{Run: "r", Input: "i"}))
	for query, use := range map[string][]string{
		listed:   {"SCAN x", "SEARCH intent USING INTEGER PRIMARY KEY", "SEARCH events USING INDEX events_one_outcome_per_run"},
		intended: {"SCAN x USING INDEX events_one_intent_per_input", "SEARCH events USING INDEX events_one_outcome_per_run"},
	} {
		rows, err := l.db.QueryxContext(t.Context(), `EXPLAIN QUERY PLAN `+query)
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

// TestStatementsNameTheTablesTypes: what is written out in statements, so that an index serves
// them, is what the table says.
func TestStatementsNameTheTablesTypes(t *testing.T) {
	var outcomes []string
	for _, ty := range event.Types() {
		if ty.Outcome() {
			outcomes = append(outcomes, "type = "+literals([]event.Type{ty}))
		}
		if ty.Step() == event.Opens && !strings.Contains(listed, "intent.type = "+literals([]event.Type{ty})) {
			t.Errorf("open runs are looked for without %s", ty)
		}
	}
	if want := "(" + strings.Join(outcomes, " OR ") + ")"; isOutcome != want {
		t.Errorf("the condition is %s, the table's %s", isOutcome, want)
	}
}
