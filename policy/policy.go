// Package policy judges what an agent asks permission for: allow, deny, or ask a
// person. It promises that a yes comes from a written rule, a standing approval or
// the mode the person chose, that it always picks an option that allows once, and
// that a command which destroys the root, the home, the working directory or a
// device gets no yes from any of them.
//
// Package shell judges the commands of a request. The package runs nothing and is no
// sandbox: it knows only what the agent says it will do.
//
// Everything is a function of its arguments: paths and time are given by the caller.
// Only the paths of a request are looked up on disk, so that a rule holds for
// the file that a link leads to.
package policy

import (
	"fmt"
	"time"

	"github.com/perlica/perlica/policy/shell"
)

// Policy decides by rules and standing approvals. It is immutable and may be used
// from several goroutines if standing and now may.
type Policy struct {
	rules    []compiled
	standing func() ([]Approval, error)
	now      func() time.Time
}

// compiled is a rule whose command pattern has been parsed.
type compiled struct {
	rule    Rule
	pattern *shell.Pattern // nil where the rule has no command
}

// New makes a policy of the rules of all configuration files. Standing returns the
// approvals in force at the time of each decision, expired ones included; it may be
// nil. Where it fails, a person is asked. An error names the first rule that cannot be understood.
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
