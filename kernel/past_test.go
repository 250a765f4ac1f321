package kernel

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/perlica/perlica/eventlog/store"
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
	list, err := ReadPastQuestions(context.Background(), log, shell.Place{Own: r.opt.Own}, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	rules, err := policy.New(r.opt.Rules, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range list {
		switch {
		case q.Lacks == lacksPayload: // the test has pruned the log, or has written a question without a request
		case q.Lacks != "" && strings.HasPrefix(t.Name(), "TestRefusedBeforeAnybodyWasAsked/"):
			// The agent asks about two calls by one id. Only the newest request of an id is compared.
		case q.Lacks != "":
			t.Errorf("%q %q cannot be judged again: %s", q.Title, q.Commands, q.Lacks)
		case !slices.ContainsFunc([]policy.Mode{policy.ModeAsk, policy.ModeReads, policy.ModeDeny, policy.ModeAllow},
			func(m policy.Mode) bool { return judgedAlike(q, rules.Decide(q.Request, m)) }):
			t.Errorf("%q %q: no mode gives the recorded decision %+v, question %+v", q.Title, q.Commands, q.Decided,
				q.Question)
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
