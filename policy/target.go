package policy

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/perlica/perlica/policy/shell"
)

// onlyReads says whether a tool of the kind changes no file.
func onlyReads(kind string) bool { return kind == "read" || kind == "search" }

// pathVerdict judges a file that is named beside any command. Of a kind that may do anything
// the worst is assumed.
func (r Request) pathVerdict(p string) shell.Verdict {
	if onlyReads(r.Kind) || r.Kind == "think" || r.startsIn(p) {
		return shell.Verdict{Tier: shell.Ordinary}
	}
	real, ok := realPath(p)
	if !ok {
		return shell.Unclear("cannot tell where this leads: " + p)
	}
	kind := r.Kind
	if kind == "" || kind == "execute" {
		kind = "change"
	}
	there := resolved(r.Place)
	if r.Kind == "delete" || r.Kind == "move" || slices.Contains(r.Removes, p) {
		if v := there.Removal(kind, p, real); v.Tier == shell.Refused {
			return v
		}
		if v := r.Place.Removal(kind, p, filepath.Clean(p)); v.Tier == shell.Refused {
			return v
		}
	}
	return there.Change(kind, p, real)
}

// startsIn says whether a path is only where a command starts.
func (r Request) startsIn(p string) bool {
	if len(r.Commands) == 0 {
		return false
	}
	p = filepath.Clean(p)
	return p == filepath.Clean(r.Place.Dir) || slices.Contains(startDirs(r), p)
}

// asking are the modes of agents in which they ask before they act.
var asking = []string{"default", "ask", "plan", "readonly", "manual", "approve", "normal", "architect", "chat"}

// modeVerdict judges a change of the agent's mode: only a person decides that an agent asks
// less from then on.
func (r Request) modeVerdict() shell.Verdict {
	if r.Kind != "switch_mode" {
		return shell.Verdict{Tier: shell.Ordinary}
	}
	why := "the agent would change its mode"
	switch {
	case slices.Contains(asking, modeName(r.Mode)):
		return shell.Verdict{Tier: shell.Ordinary}
	case r.Mode != "":
		why += " to " + r.Mode
	}
	return shell.Unclear(why)
}

func modeName(mode string) string {
	return strings.NewReplacer("-", "", "_", "", " ", "").Replace(strings.ToLower(mode))
}

// Tier is the tier of the request.
func (r Request) Tier() shell.Tier { return assess(r).verdict.Tier }

// Writes says whether a command of the request changes or removes a file, as far as its text tells.
func (r Request) Writes() bool {
	return slices.ContainsFunc(r.Commands, func(c shell.Command) bool { return shell.Judge(c, r.Place).Writes })
}

// Runs says whether the request has the command c, in any spelling and with or without a shell
// around it.
// A command that does not say where it starts has started where the request says.
func (r Request) Runs(c shell.Command, at shell.Place) bool {
	return slices.ContainsFunc(r.Commands, func(have shell.Command) bool {
		if c.Dir == "" {
			c.Dir = have.Dir
		}
		return sameDir(have.StartDir(at), c.StartDir(at)) && have.SameText(c)
	})
}

// Names says whether one of the paths of the request leads to the same file as p.
func (r Request) Names(p string) bool {
	return slices.ContainsFunc(r.Paths, func(have string) bool { return samePath(have, p) })
}

// SamePrograms says whether the request runs no other programs than an earlier one did.
func (r Request) SamePrograms(earlier Request) bool {
	known := programsOf(earlier)
	for name := range programsOf(r) {
		if !known[name] {
			return false
		}
	}
	return len(r.Commands) > 0 == (len(earlier.Commands) > 0)
}

func programsOf(r Request) map[string]bool {
	names := map[string]bool{}
	for _, call := range assess(r).calls {
		names[call.Program()] = true
	}
	return names
}
