// Package policy judges an agent's requests: allow, deny, or ask a person.
//
// A yes comes from a written rule, a standing approval, or the mode that the person chose. A yes always picks an option
// of the agent that allows once. No rule, approval or mode says yes to a command that destroys the root, the home, the
// working directory or a device.
//
// ReadToolCall reads a tool call once, for the judgement, for the display, and for the comparison with the call that
// ran. Each member of the input becomes a part of a command, a path, or a Field. The role of a Field says whether
// ReadToolCall understood it. A member that no table knows makes the request unreadable, unless its value is a number,
// true, false or a harmless word. Three tables map names of members to their meaning: one for the agent, one for the
// tool kind and one for all agents. They ignore case and separators.
//
// Package shell judges the commands of a request. Neither package runs anything or is a sandbox: they know only the
// agent's words about its plan. Each result depends only on the arguments, on the approvals and time that the functions
// given to New return, and on symbolic links. Package policy resolves the paths of a request on disk, so that a rule
// holds for the target of a link.
package policy

import (
	"fmt"
	"time"

	"github.com/perlica/perlica/policy/shell"
)

// Policy decides by rules and standing approvals. It is immutable. Several goroutines may use it if the two functions
// given to New are safe for concurrent use.
type Policy struct {
	rules    []compiled
	standing func() ([]Approval, error)
	now      func() time.Time
}

// Only returns a policy with some of the rules of p. The parameter "keep" has their numbers, from 0 on.
func (p *Policy) Only(keep []int) *Policy {
	some := &Policy{standing: p.standing, now: p.now}
	for _, i := range keep {
		some.rules = append(some.rules, p.rules[i])
	}
	return some
}

// compiled is a rule whose command pattern has been parsed.
type compiled struct {
	rule    Rule
	pattern *shell.Pattern // nil for a rule without a command
}

// New makes a policy from the rules of all configuration files. At a decision, the policy calls the function "standing"
// for the approvals and ignores expired ones. If no rule decides and standing returns an error, the answer is Ask. A
// nil standing means no approvals. An error of New names the first invalid rule.
func New(rules []Rule, standing func() ([]Approval, error), now func() time.Time) (*Policy, error) {
	p := &Policy{standing: standing, now: now}
	for i, r := range rules {
		c, err := compile(r)
		if err != nil {
			where := r.Origin
			if where == "" {
				where = fmt.Sprintf("number %d", i+1)
			}
			return nil, fmt.Errorf("policy: rule %s: %w", where, err)
		}
		p.rules = append(p.rules, c)
	}
	return p, nil
}
