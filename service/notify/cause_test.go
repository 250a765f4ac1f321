package notify

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/interaction"
	"github.com/perlica/perlica/kernel/config"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/provider"
)

// TestCauses checks for each event whether a table of the configuration with a waiting time makes a notification, and
// that an old event makes none.
func TestCauses(t *testing.T) {
	ran := func(d time.Duration) fact.Responded { return fact.Responded{DurationMS: d.Milliseconds()} }
	broken := func(d time.Duration) fact.Failed {
		return fact.Failed{Error: &provider.Error{}, DurationMS: d.Milliseconds()}
	}
	flowStep := event.Refs{Run: "r", Input: "flow:schedule:morning@2026-11-27T07:00:00Z/first"}
	planned := event.Refs{Run: "r", Input: "schedule:morning@2026-11-27T07:00:00Z"}
	turn := event.Refs{Run: "r", Input: "i"}
	step := event.Refs{Run: "r", Input: "flow:review/post"}
	flow := event.Refs{Run: "flow:review", Interaction: event.Flows}
	plannedFlow := event.Refs{Run: "flow:schedule:morning@2026-11-27T07:00:00Z", Interaction: event.Flows}
	ends := func(outcome string) fact.FlowFinished { return fact.FlowFinished{Outcome: outcome} }
	for name, c := range map[string]struct {
		typ     event.Type
		refs    event.Refs
		payload any
		when    string // the kinds of the table
		want    bool
	}{
		"a long turn":                    {event.Responded, turn, ran(time.Minute), "finished", true},
		"a short turn":                   {event.Responded, turn, ran(time.Second), "finished", false},
		"another kind":                   {event.Responded, turn, ran(time.Minute), "failed unknown", false},
		"a long failure":                 {event.ProviderError, turn, broken(time.Minute), "failed", true},
		"a short failure":                {event.ProviderError, turn, broken(0), "failed", false},
		"an unknown outcome":             {event.OutcomeUnknown, turn, fact.Failed{}, "unknown", true},
		"a schedule's answer":            {event.Responded, planned, ran(0), "finished", true},
		"a schedule's failure":           {event.ProviderError, planned, broken(0), "schedule", true},
		"a schedule's unknown":           {event.OutcomeUnknown, planned, fact.Failed{}, "schedule", true},
		"a failure by hand":              {event.ProviderError, turn, broken(time.Hour), "schedule", false},
		"a warning of a budget":          {event.BudgetWarned, event.Refs{}, fact.BudgetReached{}, "budget", true},
		"a refusal of a budget":          {event.BudgetRefused, turn, fact.BudgetReached{}, "budget", true},
		"a missed time":                  {event.ScheduleMissed, event.Refs{}, fact.ScheduleMissed{}, "schedule", true},
		"a step's answer":                {event.Responded, step, ran(time.Hour), "finished", false},
		"a step's failure":               {event.ProviderError, step, broken(time.Hour), "failed", false},
		"a planned step's failure":       {event.ProviderError, flowStep, broken(0), "schedule", false},
		"a planned step's unknown":       {event.OutcomeUnknown, flowStep, fact.Failed{}, "schedule", true},
		"a step's unknown":               {event.OutcomeUnknown, step, fact.Failed{}, "unknown", true},
		"a short flow":                   {event.FlowFinished, flow, ends("done"), "finished", false},
		"a cancelled flow":               {event.FlowFinished, plannedFlow, ends("cancelled"), "finished failed", false},
		"a schedule's flow":              {event.FlowFinished, plannedFlow, ends("done"), "finished", true},
		"a schedule's failure of a flow": {event.FlowFinished, plannedFlow, ends("failed"), "schedule", true},
		"an input":                       {event.MessageReceived, turn, fact.MessageReceived{}, "finished", false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "")
			rules := []config.Notify{{When: strings.Fields(c.when), After: 30 * time.Second}}
			w.add(event.FlowStarted, flow, fact.FlowStarted{})
			seq := w.add(c.typ, c.refs, c.payload)
			l := ledger{target: "t", rules: rules}
			if err := l.read(t.Context(), &w.r.Log().Reader, time.Now()); err != nil {
				t.Fatal(err)
			}
			if got, ok := l.next(); ok != c.want || ok && got.cause.Seq != seq {
				t.Errorf("got %v %+v, want %v", ok, got, c.want)
			}
			// An hour later the cause is too old. It is dropped by a ledger that knew it, and ignored by a new one.
			for _, late := range []*ledger{&l, {target: "t", rules: rules}} {
				if err := late.read(t.Context(), &w.r.Log().Reader, time.Now().Add(maxAge+time.Minute)); err != nil {
					t.Fatal(err)
				}
				if got, ok := late.next(); ok {
					t.Errorf("an hour later: %+v", got)
				}
			}
		})
	}
}

// TestFlowsNote checks the time limit and the words of the notification about a flow run.
func TestFlowsNote(t *testing.T) {
	titles := map[string]string{"done": "A flow is finished in shop", "failed": "A flow failed in shop"}
	for outcome, title := range titles {
		w := newWorld(t, "")
		flow := event.Refs{Run: "flow:review", Interaction: event.Flows}
		w.add(event.FlowStarted, flow, fact.FlowStarted{Name: "review"})
		w.add(event.FlowFinished, flow, fact.FlowFinished{Outcome: outcome})
		var l ledger
		for _, after := range []time.Duration{time.Hour, 0} {
			l = ledger{target: "t", rules: []config.Notify{{When: []string{"finished", "failed"}, After: after}}}
			if err := l.read(t.Context(), &w.r.Log().Reader, time.Now()); err != nil {
				t.Fatal(err)
			}
			if _, ok := l.next(); ok != (after == 0) {
				t.Errorf("%s after %s: a notification is %v", outcome, after, ok)
			}
		}
		teller, err := tellerOf(w.project, "")
		if err != nil {
			t.Fatal(err)
		}
		n, err := teller.note(t.Context(), &w.r.Log().Reader, l.entries[0])
		if err != nil || n.Title != title || n.Command != "perlica flow show review" {
			t.Errorf("%s: %+v %v", outcome, n, err)
		}
	}
}

// TestInnerFlow checks that a flow inside of a flow makes no notification.
func TestInnerFlow(t *testing.T) {
	w := newWorld(t, "")
	for _, id := range []event.RunID{"flow:review", "flow:review/post"} {
		refs := event.Refs{Run: id, Interaction: event.Flows}
		w.add(event.FlowStarted, refs, fact.FlowStarted{})
		w.add(event.FlowFinished, refs, fact.FlowFinished{Outcome: fact.FlowDone})
	}
	l := ledger{target: "t", rules: []config.Notify{{When: []string{"finished"}}}}
	if err := l.read(t.Context(), &w.r.Log().Reader, time.Now()); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range l.entries {
		got = append(got, e.cause.flow)
	}
	if !slices.Equal(got, []string{"review"}) {
		t.Errorf("notifications about %q", got)
	}
}

// TestErrorDoublesNothing lets the log fail after its first event. The next read must not make the notification of that
// event again. The test fails if the ledger sets its head only at the end.
func TestErrorDoublesNothing(t *testing.T) {
	w := newWorld(t, "")
	turn := event.Refs{Run: "r", Input: "i"}
	for range 2 {
		w.add(event.Responded, turn, fact.Responded{})
		turn = event.Refs{Run: "s", Input: "j"}
	}
	l := ledger{target: "t", rules: []config.Notify{{When: []string{"finished"}}}}
	log, broken := &w.r.Log().Reader, errors.New("the disk failed")
	err := l.follow(t.Context(), log, func(yield func(event.Event, error) bool) {
		for e, err := range log.Events(t.Context(), event.Query{Types: watched}) {
			_ = yield(e, err) && yield(event.Event{}, broken)
			return
		}
	})
	if !errors.Is(err, broken) {
		t.Fatal(err)
	}
	if err := l.read(t.Context(), log, time.Now()); err != nil || len(l.entries) != 2 {
		t.Errorf("%d notifications, %v", len(l.entries), err)
	}
}

// TestQuestions checks the time at which an open question is a cause, and that a closed one is not.
func TestQuestions(t *testing.T) {
	w := newWorld(t, "")
	rules := []config.Notify{{When: []string{question}, After: 30 * time.Second}}
	l := ledger{target: "t", rules: rules}
	read := func() []event.InteractionID {
		t.Helper()
		if err := l.read(t.Context(), &w.r.Log().Reader, time.Now()); err != nil {
			t.Fatal(err)
		}
		var open []event.InteractionID
		for _, e := range l.entries {
			if d := e.due.Sub(e.cause.at); d != 30*time.Second {
				t.Errorf("due after %s", d)
			}
			open = append(open, e.cause.Interaction)
		}
		return open
	}
	first, second, third := w.ask("1"), w.ask("2"), w.ask("3")
	short := event.InteractionID("short")
	w.add(event.InteractionRequested, event.Refs{Run: "r", Interaction: short},
		interaction.Question{ID: short, Expires: time.Now().Add(time.Second)})
	if got := read(); !slices.Equal(got, []event.InteractionID{first, second, third}) {
		t.Errorf("open %v", got)
	}
	w.add(event.InteractionAnswered, event.Refs{Run: "run-1", Interaction: first}, interaction.Answer{})
	w.add(event.InteractionLapsed, event.Refs{Run: "run-1", Interaction: third}, struct{}{})
	if got := read(); !slices.Equal(got, []event.InteractionID{second}) {
		t.Errorf("open %v", got)
	}
}

// TestTablesOfOneTarget checks that two tables for one target make one notification for a cause. It is sent at the
// earlier time, and has the content if one of the tables asks for it.
func TestTablesOfOneTarget(t *testing.T) {
	w := newWorld(t, table("desktop", "after = \"1h\"")+
		"[[notify]]\nwhen = [\"question\"]\nto = \"desktop\"\ncontent = true\n")
	clock := time.Now().Add(time.Second)
	var out strings.Builder
	d := w.delivery(Options{Terminal: &out}, &clock)
	w.ask("TITLE")
	if got := w.deliver(t.Context(), d); got != "started, sent" || !strings.Contains(out.String(), "TITLE") {
		t.Errorf("got %s and %q", got, out.String())
	}
	clock = clock.Add(2 * time.Hour)
	if got := w.deliver(t.Context(), d); got != "started, sent" {
		t.Errorf("later: %s", got)
	}
}
