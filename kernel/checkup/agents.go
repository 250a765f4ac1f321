package checkup

import (
	"errors"
	"fmt"
	"strings"

	"github.com/dustin/go-humanize/english"

	"github.com/perlica/perlica/kernel/agents"
	"github.com/perlica/perlica/provider/process"
)

func (e *examination) defaultAgent() {
	a, err := e.Agents.Default()
	var missing *agents.Error
	switch {
	case errors.As(err, &missing):
		e.fail(missing.Hint, "%v", err)
		return
	case err != nil:
		e.fail("see 'perlica provider list'", "%v", err)
		return
	}
	if _, err := e.Agents.Find(a.Command[0]); err != nil {
		e.fail("see 'perlica provider show "+a.ID+"'", "%s: its program cannot be started: %v", a.ID, err)
		return
	}
	if a.Why == "" {
		e.ok("%s, as the configuration says", a.ID)
		return
	}
	if a.ID == agents.Predictable {
		e.warn("'perlica provider list' says how to install one", "%s: %s", a.ID, a.Why)
		return
	}
	e.ok("%s: %s", a.ID, a.Why)
}

// agents looks for the programs of those that are configured and of those that are known.
func (e *examination) agents() {
	var installed []string
	for _, l := range e.Agents.List() {
		switch {
		case l.State == agents.Installed && l.ID != agents.Predictable:
			installed = append(installed, l.ID)
		case l.State == agents.Missing && l.Configured:
			e.warn(l.Hint(), "%s is configured and cannot be used: %s", l.ID, l.Why)
		}
	}
	if len(installed) == 0 {
		e.ok("none is installed but the built-in one")
		return
	}
	e.ok("%s installed: %s", english.Plural(len(installed), "agent", ""), strings.Join(installed, ", "))
}

// survivors lists what is left of agents whose Perlica is gone.
func (e *examination) survivors() {
	left := process.Survivors()
	if len(left) == 0 {
		e.ok("none")
		return
	}
	var words []string
	for _, s := range left {
		words = append(words, fmt.Sprintf("%d (%s, of %s)", s.PID, s.Command, s.Agent))
	}
	e.warn("Perlica never ends a process by its number; look at them, then end them yourself: kill PID",
		"left behind by agents: %s", strings.Join(words, ", "))
}
