package policy

import (
	"slices"
	"testing"
)

// TestSuggestedRulesAllow checks that the rules that a question suggests together allow the whole request. A question
// suggests no rules if no rules can allow the request.
func TestSuggestedRulesAllow(t *testing.T) {
	for command, want := range map[string][]string{
		"mytool":                    {"mytool"},
		"mytool --fast":             {"mytool *"},
		"mytool a 'b c'":            {"mytool ..."},
		"mytool a b && mytool c d":  {"mytool ..."},
		"mytool a | head -3":        {"mytool *", "head -3"},
		"git push --force origin x": {"git push --force origin x"},
		"'my tool' x":               {"'my tool' *"},
		"mytool > x":                nil,
		"mytool $X":                 nil,
		"rm -rf /":                  nil,
		"ls":                        nil,
	} {
		d := policyOf(t, nil).Decide(execute(command), ModeAllow)
		if !slices.Equal(d.Allow, want) {
			t.Errorf("%s: the rules are %q, want %q", command, d.Allow, want)
		}
		var rules []Rule
		for _, c := range d.Allow {
			rules = append(rules, Rule{Effect: Allow, Command: c})
		}
		if d := policyOf(t, nil, rules...).Decide(execute(command), ModeAllow); want != nil && d.Effect != Allow {
			t.Errorf("%s: with its rules %q the decision is %s", command, want, d.Effect)
		}
	}
}
