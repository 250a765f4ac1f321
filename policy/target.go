package policy

import (
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// onlyReads says whether a tool of the kind changes no file.
func onlyReads(kind string) bool { return kind == "read" || kind == "search" }

// pathVerdict judges a file that is named beside any command. Of a kind that may do anything
// the worst is assumed.
func (r Request) pathVerdict(p string) Verdict {
	if onlyReads(r.Kind) || r.Kind == "think" || r.startsIn(p) {
		return Verdict{Tier: Ordinary}
	}
	real, ok := realPath(p)
	if !ok {
		return Verdict{Tier: AlwaysAsked, Why: tidy("cannot tell where this leads: " + p), Unknown: true}
	}
	kind := r.Kind
	if kind == "" || kind == "execute" {
		kind = "change"
	}
	resolved := r.Place.resolved()
	there := resolved.slashed()
	there.Own = resolved.Own
	target := slashPath(real)
	if r.Kind == "delete" || r.Kind == "move" || slices.Contains(r.Removes, p) {
		what, word := there.loss(target, false)
		if what == "" {
			what, word = r.Place.slashed().loss(slashPath(filepath.Clean(p)), false)
		}
		if what != "" {
			return Verdict{Tier: Refused, Why: tidy(kind + " of " + what + ": " + p), Word: word}
		}
	}
	return there.change(kind, p, target)
}

// change judges a change of a file, where its path leads.
func (at Place) change(kind, p, target string) Verdict {
	asked := func(why string) Verdict {
		return Verdict{Tier: AlwaysAsked, Why: tidy(why + ": " + kind + " of " + p)}
	}
	for _, own := range at.Own {
		if own = slashPath(own); own != "" && (within(own, target) || within(target, own) && kind != "change" && kind != "other") {
			return Verdict{Tier: Refused, Why: tidy(kind + " of Perlica's own files: " + p), Word: "perlica"}
		}
	}
	switch {
	case !at.writable(target, false), at.athome(target):
		return asked("outside the working directory")
	case slices.Contains(strings.Split(path.Dir(target), "/"), ".git"):
		return asked("what git runs later or keeps its history in")
	case at.dotfile(target):
		return asked("a settings file of the home directory")
	}
	return Verdict{Tier: Ordinary}
}

// athome says whether the target lies in the home and not in the working directory. A temporary
// directory that holds the home makes none of that temporary; one within it does.
func (at Place) athome(target string) bool {
	return at.Home != "" && within(at.Home, target) && !within(at.Dir, target) &&
		!slices.ContainsFunc(at.Temp, func(t string) bool { return within(at.Home, t) && within(t, target) })
}

// dotfile says whether the target is a hidden file of the home, or lies in a hidden directory
// there, and the work does not.
func (at Place) dotfile(target string) bool {
	return at.Home != "" && within(at.Home, target) && within(at.Dir, at.Home) &&
		strings.HasPrefix(strings.TrimPrefix(target, strings.TrimSuffix(at.Home, "/")+"/"), ".")
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

// modeVerdict judges a change of the agent's mode: nobody but a person decides that an agent
// asks less from now on.
func (r Request) modeVerdict() Verdict {
	if r.Kind != "switch_mode" {
		return Verdict{Tier: Ordinary}
	}
	why := "the agent would change its mode"
	switch {
	case slices.Contains(asking, modeName(r.Mode)):
		return Verdict{Tier: Ordinary}
	case r.Mode != "":
		why += " to " + r.Mode
	}
	return Verdict{Tier: AlwaysAsked, Why: tidy(why), Unknown: true}
}

func modeName(mode string) string {
	return strings.NewReplacer("-", "", "_", "", " ", "").Replace(strings.ToLower(mode))
}

// stopping are parts of the names of modes in which agents ask less or nothing.
var stopping = []string{"bypass", "yolo", "acceptedit", "auto", "dontask", "neverask", "noask", "fullaccess", "danger", "never", "unrestricted", "onfailure", "trust"}

// StopsAsking says whether a mode of that name is one in which agents ask less.
func StopsAsking(mode string) bool {
	return slices.ContainsFunc(stopping, func(part string) bool { return strings.Contains(modeName(mode), part) })
}

// TierOf is the tier of a request.
func TierOf(r Request) Tier { return assess(r).verdict.Tier }

// Writes says whether a command of the request changes or removes a file, as far as its text tells.
func Writes(r Request) bool {
	return slices.ContainsFunc(r.Commands, func(c Command) bool { return analyse(c, r.Place).writes })
}

// Above says whether a tier is graver than another; the empty one is ordinary.
func (t Tier) Above(other Tier) bool { return t.rank() > other.rank() }

// SamePrograms says whether a request runs no other programs than an earlier one did.
func SamePrograms(earlier, r Request) bool {
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
		if len(call) > 0 {
			names[commandName(call[0])] = true
		}
	}
	return names
}
