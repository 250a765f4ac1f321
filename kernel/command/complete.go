package command

import (
	"context"
	"slices"
	"strings"

	"github.com/perlica/perlica/kernel/agents"
	"github.com/perlica/perlica/kernel/sessions"
)

// Complete returns what may stand in place of the last word of a line that begins with a
// slash: names of commands, the agent's own among them, and what their arguments can be.
func (h *Host) Complete(ctx context.Context, line string) []string {
	rest, ok := strings.CutPrefix(line, "/")
	if !ok || strings.HasPrefix(rest, "/") {
		return nil
	}
	words := strings.Split(rest, " ")
	last := words[len(words)-1]
	if len(words) == 1 {
		return starting(h.names(), "/"+last)
	}
	return starting(h.arguments(ctx, words[0], words[1:len(words)-1]), last)
}

func starting(all []string, prefix string) []string {
	var list []string
	for _, s := range all {
		if strings.HasPrefix(s, prefix) {
			list = append(list, s)
		}
	}
	return list
}

func (h *Host) names() []string {
	var list []string
	for _, c := range Commands() {
		list = append(list, "/"+c.Name)
	}
	o, _, _ := h.offers()
	for _, c := range o.Commands {
		if !Known(c.Name) {
			list = append(list, "/"+c.Name)
		}
	}
	return list
}

// arguments are the words that may follow a command and the words before.
func (h *Host) arguments(ctx context.Context, name string, before []string) []string {
	o, _, _ := h.offers()
	switch {
	case name == "session" && len(before) == 0:
		return []string{"list", "new", "use", "show", "current", "rename", "delete", "export"}
	case name == "session" && len(before) == 1 && slices.Contains([]string{"use", "show", "delete"}, before[0]):
		return h.sessionNames(ctx)
	case name == "log" && len(before) == 0:
		return []string{"show", "verify"}
	case name == "policy" && len(before) == 0:
		return []string{"revoke"}
	case len(before) > 0 && name != "config":
		return nil
	}
	var list []string
	switch name {
	case "help":
		for _, c := range Commands() {
			list = append(list, c.Name)
		}
	case "provider":
		for _, l := range h.Agents.List() {
			list = append(list, l.ID)
		}
	case "mode":
		for _, m := range o.Modes {
			list = append(list, string(m.Id))
		}
	case "model":
		_, list, _ = o.Models()
	case "config":
		for _, opt := range o.Options {
			if opt.Select == nil {
				continue
			}
			if len(before) == 0 {
				list = append(list, string(opt.Select.Id))
			} else if len(before) == 1 && before[0] == string(opt.Select.Id) {
				return agents.OptionValues(opt.Select.Options)
			}
		}
	case "allow", "deny", "choose":
		open, _ := h.open(ctx) // what cannot be read cannot be completed
		for _, q := range open {
			list = append(list, short(string(q.ID)))
		}
	}
	return list
}

func (h *Host) sessionNames(ctx context.Context) (names []string) {
	_ = h.view(ctx, func(v *sessions.View) error { // likewise
		sessions, err := v.List(ctx, true)
		for _, s := range sessions {
			if s.Name != "" {
				names = append(names, s.Name)
			} else {
				names = append(names, short(string(s.ID)))
			}
		}
		return err
	})
	return names
}
