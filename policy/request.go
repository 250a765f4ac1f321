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
	Unread Role = "unread" // not understood: only a rule that names exactly this request allows it
)

// Field is a field of a tool call that is neither a command nor a path.
type Field struct {
	Name  string // its path in the input: "env.PATH", "steps[2].note"
	Value string // a string as it is, anything else as JSON
	Role  Role
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
