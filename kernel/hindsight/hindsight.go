// Package hindsight judges recorded questions again with other rules, and suggests rules.
//
// The package only reads. It never guesses. If a question cannot be judged again, the package counts the question
// and gives the reason. Package kernel reads a recorded question with the functions that read a question of a
// running turn. Package policy judges both.
package hindsight

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/kernel"
	"github.com/perlica/perlica/policy"
	"github.com/perlica/perlica/policy/shell"
)

// Question is a recorded question of one of the user's projects.
type Question struct {
	kernel.PastQuestion
	Project string // the project's directory
}

// Read returns the questions of a project's log since a time, oldest first. See kernel.ReadPastQuestions.
func Read(ctx context.Context, log event.Reader, project string, at shell.Place, since time.Time,
	progress func(event.Seq)) ([]Question, error) {
	past, err := kernel.ReadPastQuestions(ctx, log, at, since, progress)
	list := make([]Question, len(past))
	for i, q := range past {
		list[i] = Question{q, project}
	}
	return list, err
}

// Answer is the recorded answer to a question.
type Answer string

// These are the values of Answer. The Answer of a lapsed question is the reason of the lapse instead.
const (
	allowed Answer = "allowed"
	denied  Answer = "denied"
	open    Answer = "open"
)

// answer returns the answer to the question, and the person or the part of the policy that gave it.
func (q Question) answer() (a Answer, by string) {
	switch {
	case q.Decided != nil:
		return map[policy.Effect]Answer{policy.Allow: allowed, policy.Deny: denied}[policy.Effect(q.Decided.Effect)],
			q.Decided.By
	case q.End == nil:
		return open, ""
	case q.End.Answer == nil:
		return Answer(q.End.Lapsed), ""
	}
	by = q.End.Answer.By
	for _, o := range q.Question.Options {
		if o.ID == q.End.Answer.Option && o.Allows() {
			return allowed, by
		}
	}
	return denied, by
}

// Judge judges recorded questions with rules.
type Judge struct {
	present  map[string][]policy.Rule // by project
	rules    []policy.Rule            // these come after the project's own rules
	policies map[asker]*policy.Policy
	decided  map[asked]policy.Decision

	// whole is a Judge with more rules, or nil. If it is not nil, this Judge has only the rules of whole with a number
	// in keep.
	whole *Judge
	keep  []int
}

// asker is a project, with the rules of a run.
type asker struct{ project, own string }

// asked is a request in a run.
type asked struct {
	request *policy.Assessed
	asker
}

// NewJudge returns a Judge for the present rules of each project. The parameter "rules" has further rules for all
// projects. The error names the first invalid rule.
func NewJudge(present map[string][]policy.Rule, rules []policy.Rule) (*Judge, error) {
	j := &Judge{present: present, rules: rules, policies: map[asker]*policy.Policy{},
		decided: map[asked]policy.Decision{}}
	for _, list := range append(slices.Collect(maps.Values(present)), rules) {
		if _, err := policy.New(list, nil, nil); err != nil {
			return nil, err
		}
	}
	return j, nil
}

// only returns a Judge with the present rules and some of the further rules of j.
func (j *Judge) only(keep []int) *Judge {
	return &Judge{present: j.present, policies: map[asker]*policy.Policy{}, decided: map[asked]policy.Decision{},
		whole: j, keep: keep}
}

// Decide judges a question with the Judge's rules for its project and with the rules of the question's own run. The
// result ok is false if no rule decides the question. The field Lacks of the question must be nil.
func (j *Judge) Decide(q Question) (d policy.Decision, ok bool) {
	key := asked{q.Request, asker{q.Project, strings.Join(q.Rules, "\x00")}}
	d, known := j.decided[key]
	if !known {
		d = j.policyFor(key.asker, q.Rules).DecideAssessed(q.Request)
		j.decided[key] = d
	}
	// A person can allow a refused request by typing Word. An empty Word makes the denial final, as a deny rule does.
	return d, d.By == policy.ByRule || d.By == policy.ByTier && d.Effect == policy.Deny && d.Word == ""
}

func (j *Judge) policyFor(a asker, own []string) *policy.Policy {
	p := j.policies[a]
	switch {
	case p != nil:
		return p
	case j.whole == nil:
		p, _ = policy.New(slices.Concat(runRules(own), j.present[a.project], j.rules), nil, nil) // checked before
	default:
		first := len(runRules(own)) + len(j.present[a.project])
		var keep []int
		for i := range first {
			keep = append(keep, i)
		}
		for _, i := range j.keep {
			keep = append(keep, first+i)
		}
		p = j.whole.policyFor(a, own).Only(keep)
	}
	j.policies[a] = p
	return p
}

// runRules returns the rules of a run's flags, such as "--allow make test".
func runRules(texts []string) (rules []policy.Rule) {
	for _, text := range texts {
		flag, command, _ := strings.Cut(text, " ")
		r := policy.Rule{Effect: policy.Effect(strings.TrimPrefix(flag, "--")), Command: command, Origin: flag}
		if r.Check() == nil {
			rules = append(rules, r)
		}
	}
	return rules
}

// ParseRule parses a rule of one line: an effect and the words of a command, such as "allow go test ./...".
func ParseRule(text string) (policy.Rule, error) {
	effect, command, _ := strings.Cut(strings.TrimSpace(text), " ")
	r := policy.Rule{Effect: policy.Effect(effect), Command: strings.TrimSpace(command), Origin: "the rule '" + text + "'"}
	switch r.Effect {
	case policy.Allow, policy.Ask, policy.Deny:
	default:
		return r, fmt.Errorf("the rule %q does not begin with allow, ask or deny", text)
	}
	if r.Command == "" {
		return r, fmt.Errorf("the rule %q names no command", text)
	}
	return r, r.Check()
}
