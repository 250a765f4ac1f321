package kernel

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/perlica/perlica/eventlog"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/store"
	"github.com/perlica/perlica/interaction"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/policy"
	"github.com/perlica/perlica/policy/shell"
)

// checkPast judges every question on the log of a closed runner again. The request must be complete, and with the
// runner's rules and one of the modes the decision must be the recorded one.
func checkPast(t *testing.T, r *Runner) {
	t.Helper()
	log, err := store.OpenReader(context.Background(), r.opt.Paths.EventLog)
	if errors.Is(err, fs.ErrNotExist) {
		return // the test has moved the log
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = log.Close() }() // only read, so the error does not matter
	list, err := ReadPastQuestions(context.Background(), log, shell.Place{Own: r.opt.Own}, time.Time{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	rules, err := policy.New(r.opt.Rules, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range list {
		if q.Request != nil {
			got, want := rules.DecideAssessed(q.Request), rules.Decide(q.Request.Request, policy.ModeAsk)
			if got.Effect != want.Effect || got.By != want.By || got.Word != want.Word ||
				got.OptionID != want.OptionID {
				t.Errorf("%q %q: %+v, want %+v", q.Title, q.Commands, got, want)
			}
		}
		switch {
		case q.Lacks == lacksPayload: // the test has pruned the log, or has written a question without a request
		case q.Lacks != nil && strings.HasPrefix(t.Name(), "TestRefusedBeforeAnybodyWasAsked/"):
			// The agent asks about two calls by one id. Only the newest request of an id is compared.
		case q.Lacks != nil:
			t.Errorf("%q %q cannot be judged again: %s", q.Title, q.Commands, q.Lacks)
		case !slices.ContainsFunc([]policy.Mode{policy.ModeAsk, policy.ModeReads, policy.ModeDeny, policy.ModeAllow},
			func(m policy.Mode) bool { return judgedAlike(q, rules.Decide(q.Request.Request, m)) }):
			t.Errorf("%q %q: no mode gives the recorded decision %+v, question %+v", q.Title, q.Commands, q.Decided,
				q.Question)
		}
	}
}

// TestPastRunsOverlap reads a run that begins before another one and asks after it.
func TestPastRunsOverlap(t *testing.T) {
	log, err := eventlog.Open(t.Context(), filepath.Join(t.TempDir(), "eventlog.db"), eventlog.Options{Context: "default"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = log.Close() }() // the test has read all that it needs
	begin := func(run string) event.Event {
		return event.NewFact(event.MessageReceived, "user", event.Refs{Run: event.RunID(run)}, fact.MessageReceived{})
	}
	ask := func(run string) event.Event {
		refs := event.Refs{Run: event.RunID(run), Interaction: event.InteractionID("of-" + run)}
		return event.NewFact(event.InteractionRequested, "agent", refs,
			interaction.Question{Subject: interaction.Subject{Request: "1"}})
	}
	if _, err := log.Append(t.Context(), begin("early"), begin("late"), ask("late"), ask("early")); err != nil {
		t.Fatal(err)
	}
	list, err := ReadPastQuestions(t.Context(), log, shell.Place{}, time.Time{}, nil)
	if err != nil || len(list) != 2 {
		t.Fatalf("%d questions, %v", len(list), err)
	}
	for _, q := range list {
		if q.Lacks != lacksRequest { // the log has the input of each run, and no line of an agent
			t.Errorf("run %s: %q, want %q", q.Run, q.Lacks, lacksRequest)
		}
	}
}

// judgedAlike reports whether d is the recorded decision about the question.
func judgedAlike(q PastQuestion, d policy.Decision) bool {
	if q.Question != nil {
		return (d.Effect == policy.Ask || d.Word != "") && d.Why == q.Question.Why && d.Word == q.Question.Word &&
			slices.Equal(d.Allow, q.Question.Allow)
	}
	recorded := q.Decided
	if recorded.By == string(policy.ByStanding) || recorded.By == string(policy.ByProgram) {
		return d.Effect == policy.Ask // the rules leave the question to the approval or the program
	}
	return string(d.Effect) == recorded.Effect && string(d.By) == recorded.By && d.Why == recorded.Why &&
		d.OptionID == recorded.Option
}
