package policy_test

import (
	"testing"

	"github.com/perlica/perlica/policy"
	"github.com/perlica/perlica/policy/shell"
)

// TestProgramsRuling checks which requests the ruling of a policy program decides.
func TestProgramsRuling(t *testing.T) {
	p, err := policy.New([]policy.Rule{{Effect: policy.Ask, Command: "make ask"}}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	options := []policy.Option{{ID: "y", Kind: "allow_once"}, {ID: "n", Kind: "reject_once"}}
	command := func(text string) policy.Request {
		return policy.Request{Kind: "execute", HasCommand: true, Options: options,
			Place: shell.Place{Dir: "/p", Home: "/h"}, Commands: []shell.Command{{Text: text}}}
	}
	nothing := policy.Request{Kind: "execute", Options: options}
	noAllow := command("make")
	noAllow.Options = options[1:]
	unread := command("make")
	unread.Fields = []policy.Field{{Name: "x", Role: policy.Unread}}
	grave := command("make")
	grave.Fields = []policy.Field{{Name: "x", Role: policy.Grave}}
	for name, c := range map[string]struct {
		request policy.Request
		mode    policy.Mode
		allow   policy.Effect // the decision if the program allows
		deny    policy.Effect // the decision if the program denies
	}{
		"ordinary":                {command("make"), policy.ModeAsk, policy.Allow, policy.Deny},
		"always asked, nameable":  {command("git push -f"), policy.ModeAllow, policy.Allow, policy.Deny},
		"always asked, unnamed":   {command(`eval "$x"`), policy.ModeAsk, policy.Ask, policy.Deny},
		"refused":                 {command("rm -rf /"), policy.ModeAsk, policy.Deny, policy.Deny},
		"unreadable":              {unread, policy.ModeAsk, policy.Ask, policy.Deny},
		"a grave field":           {grave, policy.ModeAsk, policy.Ask, policy.Deny},
		"no command":              {nothing, policy.ModeAsk, policy.Ask, policy.Deny},
		"a rule that asks":        {command("make ask"), policy.ModeAllow, policy.Ask, policy.Deny},
		"the mode deny":           {command("make"), policy.ModeDeny, policy.Deny, policy.Deny},
		"no option to allow once": {noAllow, policy.ModeAsk, policy.Ask, policy.Deny},
	} {
		for _, said := range []policy.Effect{policy.Allow, policy.Deny, policy.Ask, "", "yes"} {
			want := p.Decide(c.request, c.mode).Effect
			switch said {
			case policy.Allow:
				want = c.allow
			case policy.Deny:
				want = c.deny
			}
			d := p.DecideWith(c.request, c.mode, policy.Ruling{Effect: said, Program: "judge", Reason: "r"})
			if d.Effect != want || d.Effect == policy.Allow && d.OptionID != "y" {
				t.Errorf("%s, the program says %q: %s %s (%s), want %s", name, said, d.Effect, d.OptionID, d.Why, want)
			}
		}
	}
}
