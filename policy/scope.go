package policy

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/perlica/perlica/policy/shell"
)

// scope collects the parts of a command, such as program, arguments and variables, from one object of the input.
type scope struct {
	commands []shell.Command
	argv     []string // a program's words, with or without its name
	args     []string
	argsName string
	hasArgs  bool
	scripts  []shell.Command
	argsText string  // arguments that came as one text
	stdin    []Field // the fields with the standard input of the command
	env      []string
	envName  string
	dirs     []string
}

// leaveScope ends the scope of an inner object. If the inner object has a command, it becomes a command of the outer
// object. Otherwise its parts, such as arguments, go to the outer scope.
func (r *reader) leaveScope() {
	inner := r.scope()
	r.scopes = r.scopes[:len(r.scopes)-1]
	outer := r.scope()
	if len(inner.commands)+len(inner.scripts)+len(inner.argv) > 0 {
		outer.scripts = append(outer.scripts, r.combineScope(inner)...)
		return
	}
	if inner.hasArgs {
		outer.addArgs(inner.argsName, inner.args)
	}
	if inner.argsText != "" {
		outer.argsText, outer.argsName = strings.TrimSpace(outer.argsText+" "+inner.argsText), inner.argsName
	}
	outer.stdin = append(outer.stdin, inner.stdin...)
	outer.dirs = append(outer.dirs, inner.dirs...)
	if len(inner.env) > 0 {
		outer.env, outer.envName = append(outer.env, inner.env...), inner.envName
	}
}

func (s *scope) addArgs(name string, list []string) {
	s.args, s.argsName, s.hasArgs = append(s.args, list...), name, true
}

// combineScope builds the commands of an object from the parts in its scope.
func (r *reader) combineScope(s *scope) []shell.Command {
	switch {
	case len(s.argv) == 0:
	case len(s.commands) == 1 && len(s.commands[0].Argv) == 0 &&
		filepath.Base(s.commands[0].Text) != filepath.Base(s.argv[0]):
		s.addArgs("argv", s.argv)
	default:
		s.commands = append(s.commands, shell.Command{Argv: s.argv})
	}
	if s.hasArgs || s.argsText != "" {
		r.joinArgs(s)
	}
	all := append(s.commands, s.scripts...)
	for _, f := range s.stdin {
		if len(all) == 0 {
			r.readUnknown(f.Name, f.Value)
		}
	}
	if len(all) == 0 {
		for _, d := range s.dirs {
			r.addPath(d)
		}
		if len(s.env) > 0 {
			r.addUnread(s.envName, strings.Join(s.env, " "))
		}
		return nil
	}
	slices.Sort(s.dirs)
	s.dirs = slices.Compact(s.dirs)
	if len(s.dirs) > 1 {
		r.addUnread("directory", strings.Join(s.dirs, " or "))
	}
	for i := range all {
		c := &all[i]
		if c.Dir == "" && len(s.dirs) > 0 {
			c.Dir = s.dirs[0]
		}
		c.Env = append(slices.Clone(s.env), c.Env...)
		for _, f := range s.stdin {
			c.Stdin += f.Value
		}
	}
	return all
}

// joinArgs adds the arguments to the command of the scope. If the scope does not have exactly one command, no one can
// tell to which command the arguments belong. Then they become an unread field.
func (r *reader) joinArgs(s *scope) {
	text, ok := shell.Words(s.args)
	if s.argsText != "" {
		text = strings.TrimSpace(text + " " + s.argsText)
	}
	if len(s.commands) != 1 || !ok {
		r.lost = r.lost || r.isExecute()
		r.addUnread(s.argsName, text)
		return
	}
	c := &s.commands[0]
	if joined := strings.Join(s.args, " "); strings.ContainsAny(joined, ";|&$`<>\n") {
		// Some tools join the words and pass them to a shell without quotes, so the joined text may be the command.
		r.guesses = append(r.guesses, shell.Command{Text: c.String() + " " + joined})
	}
	switch {
	case len(c.Argv) > 0 && s.argsText == "":
		c.Argv = append(c.Argv, s.args...)
	case len(c.Argv) > 0:
		line, _ := shell.Words(c.Argv)
		*c = shell.Command{Text: line + " " + text}
	case s.argsText == "" && plainProgram().MatchString(c.Text):
		*c = shell.Command{Argv: append([]string{c.Text}, s.args...)}
	default:
		c.Text += " " + text
	}
}

var plainProgram = lazily(`^[\w./+@:\\-]+$`)
