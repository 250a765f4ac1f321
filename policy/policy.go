// Package policy judges an agent's requests: allow, deny, or ask a person.
//
// A yes comes from a written rule, a standing approval, or the mode that the person chose, and it always picks an
// option that allows once. No rule, approval or mode says yes to a command that destroys the root, the home, the
// working directory or a device.
//
// ReadToolCall reads a tool call once, for the judgement, for the display, and for the comparison with the call that
// ran. Each field of the input is part of a command, one of the paths, or a field with a role that says whether
// it was understood. A field that no table knows makes the request unreadable unless it is a number or a
// word. Tables find a field by its name without regard to case and underscores: first the agent's own table, then
// the table of all agents.
//
// Package shell judges the commands of a request. The package runs nothing and is no sandbox: it knows only the
// agent's words about its plan. Each result follows from the arguments: the caller gives paths and time. The package
// looks up only the paths of a request on disk, so that a rule holds for the target of a link.
package policy

import (
	"fmt"
	"time"

	"github.com/perlica/perlica/policy/shell"
)

// Policy decides by rules and standing approvals. It is immutable. Several goroutines may use it if they may call
// standing and now concurrently.
type Policy struct {
	rules    []compiled
	standing func() ([]Approval, error)
	now      func() time.Time
}

// compiled is a rule whose command pattern has been parsed.
type compiled struct {
	rule    Rule
	pattern *shell.Pattern // nil for a rule without a command
}

// New makes a policy from the rules of all configuration files. At each decision it calls standing for the approvals,
// which may have expired. If standing returns an error, a person is asked. standing may be nil. An error of New names
// the first invalid rule.
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
