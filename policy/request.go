package policy

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Request is what an agent asks leave for.
type Request struct {
	Provider string
	Session  string // Perlica's session, for approvals that hold in one only
	Kind     string // ACP tool kind
	Title    string

	// Commands are what would be run. HasCommand without any of them means that
	// there is a command which nobody can read.
	Commands   []Command
	HasCommand bool

	Paths   []string // absolute
	Place   Place
	Options []Option // in the agent's order
}

// Option is one of the answers an agent offers.
type Option struct {
	ID   string
	Name string
	Kind string // allow_once, allow_always, reject_once, reject_always
}

// Command is one command: a text for a shell, or else the words of a program.
type Command struct {
	Text string
	Argv []string
	Dir  string // where it starts, if that is not the working directory
}

// String is the command as text for a shell.
func (c Command) String() string {
	text, _ := c.script()
	return text
}

// script is the text a shell would run. Words of the form sh -c TEXT are the text
// itself, because that is how agents hand a text to a shell.
func (c Command) script() (string, bool) {
	if len(c.Argv) == 0 {
		return c.Text, true
	}
	if text, ok := shellText(c.Argv); ok {
		return text, true
	}
	words := make([]string, len(c.Argv))
	for i, word := range c.Argv {
		quoted, err := syntax.Quote(word, syntax.LangBash)
		if err != nil {
			return "", false
		}
		words[i] = quoted
	}
	return strings.Join(words, " "), true
}

var dashC = lazily(`^-[il]*c$`)

func shellText(argv []string) (string, bool) {
	if len(argv) != 3 || !dashC().MatchString(argv[1]) {
		return "", false
	}
	name := commandName(literal(argv[0]))
	ok := slices.Contains([]string{"sh", "bash", "zsh", "dash", "ksh"}, name)
	return argv[2], ok
}

// dir is the directory the command starts in.
func (c Command) dir(at Place) string {
	switch {
	case c.Dir == "":
		return at.Dir
	case filepath.IsAbs(c.Dir):
		return c.Dir
	}
	return filepath.Join(at.Dir, c.Dir)
}

// CommandsOf finds the commands in a tool call: in rawInput.command (a text or a
// list of words), rawInput.cmd, rawInput.commands, or, for a tool of kind execute,
// in a title that is nothing but a command in backticks. It returns true with no
// commands if the call has none, and false if it has one that cannot be read.
func CommandsOf(rawInput json.RawMessage, title, kind string) (cmds []Command, ok bool) {
	var input map[string]json.RawMessage
	if err := json.Unmarshal(rawInput, &input); err == nil {
		dir := textOf(input["cwd"])
		for _, key := range []string{"command", "cmd"} {
			if value, found := present(input, key); found {
				c, ok := commandOf(value)
				if !ok {
					return nil, false
				}
				cmds = append(cmds, c)
			}
		}
		if value, found := present(input, "commands"); found {
			more, ok := listOf(value)
			if !ok {
				return nil, false
			}
			cmds = append(cmds, more...)
		}
		for i := range cmds {
			cmds[i].Dir = dir
		}
	}
	if len(cmds) > 0 {
		return cmds, true
	}
	if kind != "execute" {
		return nil, true
	}
	return titleCommand(title)
}

func present(input map[string]json.RawMessage, key string) (json.RawMessage, bool) {
	value, ok := input[key]
	return value, ok && !bytes.Equal(bytes.TrimSpace(value), []byte("null"))
}

func textOf(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return ""
	}
	return s
}

func commandOf(raw json.RawMessage) (Command, bool) {
	var c Command
	if json.Unmarshal(raw, &c.Text) == nil {
		return c, strings.TrimSpace(c.Text) != ""
	}
	var words []*string
	if json.Unmarshal(raw, &words) != nil || len(words) == 0 {
		return c, false
	}
	for _, word := range words {
		if word == nil {
			return c, false
		}
		c.Argv = append(c.Argv, *word)
	}
	return c, true
}

// listOf reads a list of commands, each a text, a list of words, or an object that
// holds one of these as command.
func listOf(raw json.RawMessage) ([]Command, bool) {
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) != nil || len(list) == 0 {
		return nil, false
	}
	var out []Command
	for _, item := range list {
		var object struct{ Command json.RawMessage }
		if json.Unmarshal(item, &object) == nil && object.Command != nil {
			item = object.Command
		}
		c, ok := commandOf(item)
		if !ok {
			return nil, false
		}
		out = append(out, c)
	}
	return out, true
}

var titled = lazily("^(?:(?:[Rr]un|[Rr]unning|[Ee]xecute|[Ee]xecuting):? )?`([^`]+)`$")

// titleCommand trusts a title only if a command is all there is to it, uncut.
func titleCommand(title string) ([]Command, bool) {
	m := titled().FindStringSubmatch(strings.TrimSpace(title))
	if m == nil {
		return nil, false
	}
	text := strings.TrimSpace(m[1])
	cut := strings.HasSuffix(text, "…") || (strings.HasSuffix(text, "...") && !strings.HasSuffix(text, "/..."))
	if text == "" || cut {
		return nil, false
	}
	return []Command{{Text: text}}, true
}
