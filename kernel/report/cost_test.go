package report

import (
	"cmp"
	"math"
	"path/filepath"
	"testing"
	"time"

	"github.com/perlica/perlica/eventlog"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/kernel/fact"
)

// TestWhatARunCosts checks that a run's cost is the difference between two reports, because an agent reports the cost
// of its whole session. If an agent begins at zero again, the cost is the whole new report.
func TestWhatARunCosts(t *testing.T) {
	start := time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC)
	now := start
	log, err := eventlog.Open(t.Context(), filepath.Join(t.TempDir(), "log.db"),
		eventlog.Options{Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := log.Close(); err != nil {
			t.Error(err)
		}
	}()
	for _, turn := range []struct {
		run      string
		agent    event.ConversationID
		soFar    float64
		currency string // empty means USD
		silent   bool
	}{
		{run: "1", agent: "a", soFar: 1},
		{run: "2", agent: "a", silent: true},
		{run: "3", agent: "a", soFar: 1.5},
		{run: "4", agent: "a", soFar: 0.25}, // the agent began at zero again
		{run: "5", agent: "b", soFar: 2},
		{run: "6", agent: "b", soFar: 7, currency: "EUR"},
		{run: "7", agent: "b", soFar: 3},
	} {
		refs := event.Refs{Session: "s", Conversation: turn.agent, Run: event.RunID(turn.run), Input: event.InputID(turn.run)}
		answer := fact.Responded{}
		if !turn.silent {
			answer.Cost = &fact.Cost{Amount: turn.soFar, Currency: cmp.Or(turn.currency, "USD")}
		}
		if _, err := log.Append(t.Context(),
			event.NewFact(event.MessageReceived, "user", refs, fact.MessageReceived{Provider: "p"}),
			event.NewFact(event.Requested, "perlica", refs, fact.Requested{Provider: "p"}),
			event.NewFact(event.Responded, "agent", refs, answer)); err != nil {
			t.Fatal(err)
		}
		now = now.Add(time.Hour)
	}
	for hours, want := range []float64{4.75, 3.75, 3.75, 3.25, 3, 1, 1} {
		q := StatsQuery{Since: start.Add(time.Duration(hours) * time.Hour), Zone: time.UTC}
		if hours == 0 {
			q.Since = time.Time{}
		}
		if s, err := ReadStats(t.Context(), &log.Reader, q); err != nil || math.Abs(s.Total.Costs["USD"]-want) > 1e-9 {
			t.Errorf("from run %d on: %v, %v; want %v", hours+1, s.Total.Costs, err, want)
		}
	}
	for run, want := range map[event.RunID]float64{"1": 1, "3": 0.5, "4": 0.25, "5": 2, "6": 7, "7": 1} {
		for step, err := range Story(t.Context(), &log.Reader, run, event.Query{}) {
			if o, ok := step.What.(StepOutcome); err != nil || ok && (o.Cost == nil || math.Abs(o.Cost.Amount-want) > 1e-9) {
				t.Errorf("run %s: %+v, %v; want %v", run, o.Cost, err, want)
			}
		}
	}
}
