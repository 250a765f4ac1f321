package policy

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/perlica/perlica/eventlog/message"
	"github.com/perlica/perlica/policy/shell"
)

// Request is an agent's request for permission. ReadToolCall makes one from a tool call.
type Request struct {
	Provider string
	Agent    string // the agent's program and its arguments, quoted as for a shell
	Session  string // id of Perlica's session, for approvals with ScopeSession
	Kind     string // ACP tool kind
	Title    string
	Mode     string // the new mode that a call of kind switch_mode names, or ""

	// Commands are the commands that would run. HasCommand with empty Commands means that a command cannot be read.
	Commands   []shell.Command
	HasCommand bool

	Paths   []string // every named file and directory, absolute
	Removes []string // the paths that the call removes, for any kind of call
	Changes bool     // the call contains text to write into a file, for any kind of call

	Fields []Field // the other fields of the call
	// Guesses are texts that may be commands. They may lead to a no or a question, and never to a yes.
	Guesses []shell.Command

	Place   shell.Place
	Options []Option // in the agent's order
}

// Role says how a field of a tool call takes part in the judgement.
type Role string

const (
	Plain  Role = "plain"  // a number, a word or the text of a known field; shown and remembered
	Inert  Role = "inert"  // a description, a timeout or an id: the field does not change the action
	Grave  Role = "grave"  // understood: the field gives more rights or removes something, so a person decides
	Unread Role = "unread" // not understood: only a rule that names exactly this request allows it
)

// Field is a field of a tool call that is neither a command nor a path.
type Field struct {
	Name  string // path in the input, such as "env.PATH" or "steps[2].note"
	Value string // a string unchanged, any other value as JSON
	Role  Role
	Cause *message.Text // the reason for asking, in a Grave field
}

// Option is one of the answers that an agent offers.
type Option struct {
	ID   string
	Name string
	Kind string // allow_once, allow_always, reject_once, reject_always
}

// unread returns the reason why only a rule that names exactly this request may allow it, or nil.
func (r Request) unread() *message.Text {
	if i := slices.IndexFunc(r.Fields, func(f Field) bool { return f.Role == Unread }); i >= 0 {
		return whyFieldUnknown.With(r.Fields[i].Name)
	}
	switch {
	case r.noCommand():
		return whyCommandUnread
	case r.noTarget():
		return whyNoFile.With(shell.KindText(r.Kind))
	}
	return nil
}

// isGrave reports whether a person must decide about a field of the request.
func (r Request) isGrave() bool {
	return slices.ContainsFunc(r.Fields, func(f Field) bool { return f.Role == Grave })
}

// noCommand reports whether the request runs a command that cannot be read.
func (r Request) noCommand() bool {
	return len(r.Commands) == 0 && (r.HasCommand || r.Kind == "execute")
}

// noTarget reports whether the request changes a file without naming it.
func (r Request) noTarget() bool {
	return len(r.Commands) == 0 && len(r.Paths) == 0 && slices.Contains([]string{"edit", "delete", "move"}, r.Kind)
}

// settings returns the fields that a standing approval compares, one a line and without the Inert ones. For a command,
// the lines also name the files of the call that are not in the text of the command.
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

// onlyReads reports whether a tool of this kind changes no file.
func onlyReads(kind string) bool { return kind == "read" || kind == "search" }

// pathVerdict judges one of the paths of the request. A tool that does not only read may change the file at the path.
func (r Request) pathVerdict(p string) shell.Verdict {
	removed := r.Kind == "delete" || r.Kind == "move" || slices.Contains(r.Removes, p)
	if onlyReads(r.Kind) && !r.Changes && !removed || r.startsIn(p) {
		return shell.Verdict{Tier: shell.Ordinary}
	}
	real, ok := realPath(p)
	if !ok {
		return shell.Unclear(whyUnknownLead.With(p))
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
			return shell.Asked(whyPattern.With(shell.KindText(kind), p))
		}
	}
	return there.Change(kind, p, real)
}

// writes reports whether the tool itself changes or removes the file p. The commands of the request do not matter
// here, because package shell judges their text.
func (r Request) writes(p string) bool {
	return r.Changes || slices.Contains([]string{"edit", "delete", "move"}, r.Kind) || slices.Contains(r.Removes, p)
}

// startsIn reports whether a path is only the directory in which a command starts.
func (r Request) startsIn(p string) bool {
	if len(r.Commands) == 0 {
		return false
	}
	p = filepath.Clean(p)
	return p == filepath.Clean(r.Place.Dir) || slices.Contains(startDirs(r), p)
}

// asking are the names of modes in which agents ask before they act.
var asking = []string{"default", "ask", "plan", "readonly", "manual", "approve", "normal", "architect", "chat"}

// modeVerdict judges a change of the agent's mode. The modes in asking are ordinary. In any other mode the agent may
// ask for fewer permissions, so a person decides.
func (r Request) modeVerdict() shell.Verdict {
	if r.Kind != "switch_mode" {
		return shell.Verdict{Tier: shell.Ordinary}
	}
	why := whyModeChange
	switch {
	case slices.Contains(asking, modeName(r.Mode)):
		return shell.Verdict{Tier: shell.Ordinary}
	case r.Mode != "":
		why = whyModeChangeTo.With(r.Mode)
	}
	return shell.Unclear(why)
}

func modeName(mode string) string {
	return strings.NewReplacer("-", "", "_", "", " ", "").Replace(strings.ToLower(mode))
}

// Tier says how dangerous the request is.
func (r Request) Tier() shell.Tier { return assess(r).verdict.Tier }

// Writes reports whether the text of a command in the request shows that it changes or removes a file.
func (r Request) Writes() bool {
	return slices.ContainsFunc(r.Commands, func(c shell.Command) bool { return shell.Judge(c, r.Place).Writes })
}

// Runs reports whether the request contains the command c, in any spelling and with or without a shell around it. If c
// has no directory, c starts in the directory of the command of the request.
func (r Request) Runs(c shell.Command, at shell.Place) bool {
	return slices.ContainsFunc(r.Commands, func(have shell.Command) bool {
		if c.Dir == "" {
			c.Dir = have.Dir
		}
		return sameDir(have.StartDir(at), c.StartDir(at)) && have.SameText(c)
	})
}

// Names reports whether one of the paths of the request leads to the same file as p.
func (r Request) Names(p string) bool {
	return slices.ContainsFunc(r.Paths, func(have string) bool { return samePath(have, p) })
}

// SamePrograms reports whether an earlier request ran every program of this request.
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
