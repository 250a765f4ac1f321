// Package hindsight judges recorded questions again with other rules, and suggests rules.
//
// The package only reads. It never guesses: if a question cannot be judged again, the package counts it and says why.
// Package kernel reads a recorded question by the same functions as a question of a running turn. Package policy judges
// both.
package hindsight

import (
	"context"
	"fmt"
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
func Read(ctx context.Context, log event.Reader, project string, at shell.Place, since time.Time) ([]Question, error) {
	past, err := kernel.ReadPastQuestions(ctx, log, at, since)
	list := make([]Question, len(past))
	for i, q := range past {
		list[i] = Question{q, project}
	}
	return list, err
}

// Answer is the recorded answer to a question.
type Answer string

// These are the answers. A question that lapsed has the reason of the lapse as its Answer instead.
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
	rules    []policy.Rule
	policies map[string]*policy.Policy // by the rules of a run
}

// NewJudge returns a Judge. The error names the first invalid rule.
func NewJudge(rules []policy.Rule) (*Judge, error) {
	p, err := policy.New(rules, nil, nil)
	return &Judge{rules, map[string]*policy.Policy{"": p}}, err
}

// Decide judges a question with the Judge's rules and with the rules of the question's own run. The result ok is false
// if no rule decides the question. The field Lacks of the question must be nil.
func (j *Judge) Decide(q kernel.PastQuestion) (d policy.Decision, ok bool) {
	d = j.policyFor(q.Rules).Decide(q.Request, policy.ModeAsk)
	// A person can allow a refused request by typing Word. An empty Word makes the denial final, as a deny rule does.
	return d, d.By == policy.ByRule || d.By == policy.ByTier && d.Effect == policy.Deny && d.Word == ""
}

func (j *Judge) policyFor(own []string) *policy.Policy {
	key := strings.Join(own, "\x00")
	p := j.policies[key]
	if p == nil {
		p, _ = policy.New(append(runRules(own), j.rules...), nil, nil) // each rule was checked before
		j.policies[key] = p
	}
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
