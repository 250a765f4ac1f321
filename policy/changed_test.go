package policy

import (
	"testing"
	"time"

	"github.com/perlica/perlica/policy/shell"
)

// TestChangedFiles checks that a remembered yes no longer covers a command after the session has changed the script
// that the command runs. A written rule still allows the command, and the question suggests this rule. In a request
// with several commands, an earlier command may change the script, too.
func TestChangedFiles(t *testing.T) {
	changed := execute("./x.sh")
	changed.Place.Changed = shell.Changed{}
	changed.Place.Changed.Add(at.Dir + "/x.sh")
	remembered := Approval{ID: "a", Effect: Allow, Scope: ScopeContext, Command: "./x.sh"}
	p, err := New(nil, func() ([]Approval, error) { return []Approval{remembered}, nil }, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	if d := p.Decide(execute("./x.sh"), ModeAsk); d.Effect != Allow {
		t.Errorf("untouched: %+v", d)
	}
	d := p.Decide(changed, ModeAllow)
	if d.Effect != Ask || d.Why != "runs x.sh, which this session changed: ./x.sh" || len(d.Allow) != 1 ||
		d.Allow[0] != "./x.sh" {
		t.Errorf("changed: %+v", d)
	}
	if offers := changed.Offers(); len(offers) > 0 {
		t.Errorf("it may be remembered: %+v", offers)
	}
	p = policyOf(t, nil, Rule{Effect: Allow, Command: d.Allow[0]})
	if d := p.Decide(changed, ModeAsk); d.Effect != Allow || d.By != ByRule {
		t.Errorf("with a rule: %+v", d)
	}
	several := execute("./gen > x.sh")
	several.Commands = append(several.Commands, shell.Command{Text: "sh x.sh"})
	if d := policyOf(t, nil).Decide(several, ModeAllow); d.Effect != Ask {
		t.Errorf("written and run in one request: %+v", d)
	}
}
