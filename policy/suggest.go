package policy

import "slices"

// suggestRules returns the command patterns of new allow rules that together would allow the request. It returns nil if
// no such rules exist.
func (p *Policy) suggestRules(r Request, m Mode, a assessment) []string {
	var commands []string
	var rules []compiled
	for _, command := range r.Commands {
		calls, ok := command.Simple(r.Place)
		if !ok {
			return nil
		}
		for _, call := range calls {
			text, ok := call.Rule()
			if !ok {
				return nil
			}
			if slices.Contains(commands, text) {
				continue
			}
			c, err := compile(Rule{Effect: Allow, Command: text})
			if err != nil {
				return nil
			}
			commands, rules = append(commands, text), append(rules, c)
		}
	}
	with := Policy{rules: slices.Concat(p.rules, rules), standing: p.standing, now: p.now}
	if len(commands) == 0 || with.judgeRequest(r, m, a).Effect != Allow {
		return nil
	}
	return commands
}
