package policy

import (
	"github.com/perlica/perlica/policy/shell"
)

// ByProgram names a policy program as the source of a decision. The user wrote the program into the configuration.
const ByProgram By = "program"

// Ruling is the answer of a policy program to a request about which a person would otherwise be asked.
type Ruling struct {
	Effect  Effect // with Ask or "", a person decides
	Program string // the name of the program
	Reason  string
}

// DecideWith decides like Decide and then applies the ruling of a policy program. The ruling changes only an Ask. An
// Allow of the ruling is used only if the decision has ProgramMayAllow.
func (p *Policy) DecideWith(r Request, m Mode, ruling Ruling) Decision {
	d := p.Decide(r, m)
	if d.Effect != Ask || ruling.Effect != Deny && (ruling.Effect != Allow || !d.ProgramMayAllow) {
		return d
	}
	ruled := d.because(whyProgram.With(shell.Printable(ruling.Program), effects[ruling.Effect],
		shell.Printable(ruling.Reason)))
	ruled.Effect, ruled.By, ruled.Rule, ruled.Allow = ruling.Effect, ByProgram, nil, nil
	if ruled = ruled.chooseOption(r.Options); ruled.Effect == Ask {
		return d
	}
	return ruled
}

// programMayAllow reports whether a policy program may turn this decision into a yes. The request must be readable,
// and the agent's sandbox must permit it. The program cannot overrule an ask rule, because a person wrote the rule.
// If the tier is AlwaysAsked, a program may allow only a request that new rules could also allow. Then d.Allow is
// not empty.
func (d Decision) programMayAllow(r Request, a assessment) bool {
	switch {
	case d.Effect != Ask, d.By == ByRule, d.By == ByStanding:
		return false
	case a.unread != nil, r.isGrave(), a.verdict.Stopped != nil:
		return false
	case a.verdict.Tier == shell.Ordinary:
		return true
	}
	return a.verdict.Tier == shell.AlwaysAsked && len(d.Allow) > 0
}
