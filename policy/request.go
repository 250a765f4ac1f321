package policy

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/perlica/perlica/policy/shell"
)

// Request is what an agent asks permission for. Package toolcall makes one of a tool call.
type Request struct {
	Provider string
	Agent    string // the agent's program and its arguments, as a shell would read them
	Session  string // Perlica's session, for approvals that hold in one only
	Kind     string // ACP tool kind
	Title    string
	Mode     string // the mode that a switch_mode asks for, as far as it is named

	// Commands are what would be run. HasCommand without any of them means that
	// there is a command that cannot be read.
	Commands   []shell.Command
	HasCommand bool

	Paths   []string // every file and directory that is named, absolute
	Removes []string // those of Paths that are removed, with any kind
	Changes bool     // the call names a change of a file, whatever its kind is

	Fields []Field // what else the call holds
	// Guesses are what a part that is not understood may turn out to be: rules that deny
	// are compared with them, and nothing is allowed by them.
	Guesses []shell.Command

	Place   shell.Place
	Options []Option // in the agent's order
}

// A Role says what a field of a tool call means for judging it.
type Role string

const (
	Plain  Role = "plain"  // a number, a word or a text of a known field: shown, and part of what is remembered
	Inert  Role = "inert"  // a description, a timeout, an id: changes nothing about what is done
	Grave  Role = "grave"  // understood: it gives more rights, or takes something away, so a person decides
	Unread Role = "unread" // not understood: only a rule that names exactly this request allows it
)

// Field is a field of a tool call that is neither a command nor a path.
type Field struct {
	Name  string // its path in the input: "env.PATH", "steps[2].note"
	Value string // a string as it is, anything else as JSON
	Role  Role
	Cause string // of a Grave field: the reason for asking
}

// Option is one of the answers an agent offers.
type Option struct {
	ID   string
	Name string
	Kind string // allow_once, allow_always, reject_once, reject_always
}

// unread says why nothing may allow the request but a rule that names exactly it, or "".
func (r Request) unread() string {
	if i := slices.IndexFunc(r.Fields, func(f Field) bool { return f.Role == Unread }); i >= 0 {
		return "cannot tell what the field " + r.Fields[i].Name + " means"
	}
	switch {
	case r.noCommand():
		return "a command that cannot be read"
	case r.noTarget():
		return "the agent does not say which file it would " + r.Kind
	}
	return ""
}

// isGrave says whether a person decides about a field of the request.
func (r Request) isGrave() bool {
	return slices.ContainsFunc(r.Fields, func(f Field) bool { return f.Role == Grave })
}

// noCommand says whether a command is to be run that cannot be read.
func (r Request) noCommand() bool {
	return len(r.Commands) == 0 && (r.HasCommand || r.Kind == "execute")
}

// noTarget says whether a file is to be changed that is not named.
func (r Request) noTarget() bool {
	return len(r.Commands) == 0 && len(r.Paths) == 0 && slices.Contains([]string{"edit", "delete", "move"}, r.Kind)
}

// settings are the fields that are part of what is remembered: another value of one of
// them is another request. They include the files that a command's tool names beside it.
func (r Request) settings() string {
	var lines []string
	for _, f := range r.Fields {
		if f.Role != Inert {
			lines = append(lines, f.Name+"="+f.Value)
		}
	}
	if len(r.Commands) > 0 {
		for _, p := range r.Paths {
			if !slices.Contains(startDirs(r), filepath.Clean(p)) {
				lines = append(lines, "file "+filepath.Clean(p))
			}
		}
	}
	for _, p := range r.Removes {
		lines = append(lines, "removes "+filepath.Clean(p))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// onlyReads says whether a tool of the kind changes no file.
func onlyReads(kind string) bool { return kind == "read" || kind == "search" }

// pathVerdict judges a file that is named beside any command. Of a kind that may do anything
// the worst is assumed.
func (r Request) pathVerdict(p string) shell.Verdict {
	removed := r.Kind == "delete" || r.Kind == "move" || slices.Contains(r.Removes, p)
	if onlyReads(r.Kind) && !r.Changes && !removed || r.startsIn(p) {
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
	if removed {
		if v := there.Removal(kind, p, real); v.Tier == shell.Refused {
			return v
		}
		if v := r.Place.Removal(kind, p, filepath.Clean(p)); v.Tier == shell.Refused {
			return v
		}
		if strings.ContainsAny(filepath.Base(p), "*?[{") {
			return shell.Verdict{Tier: shell.AlwaysAsked, Why: kind + " of all files of a pattern: " + p}
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
