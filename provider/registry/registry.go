// Package registry knows agents by their ids: their commands, their variables, and how each is made
// to ask. It holds only what their makers' documents, their source or the agents themselves say.
package registry

import (
	"slices"
	"strings"

	"github.com/agext/levenshtein"

	"github.com/perlica/perlica/provider"
)

// Self stands for Perlica's own executable as the first word of a command in the
// registry. The look-up of commands answers it with os.Executable.
const Self = "perlica"

// Known is an agent that the registry knows.
type Known struct {
	ID       string     // "claude"
	Name     string     // "Claude Code"
	Commands [][]string // command lines in the order in which they are looked for
	Install  string     // a command that installs it, or where that is described
	Login    string     // how to log in
	Env      []string   // names of its own variables that it is given
	Website  string
	Asking   provider.Asking // how it is made to ask; zero: nothing to select
	Orderly  bool            // it says nothing of a turn behind its answer
	Asks     string          // when it asks, in a few words
	Note     string          // what else is worth knowing; may be empty
}

// All returns the known agents. Their order is that of preference where none
// was chosen; the built-in predictable agent is the last. The caller may change
// what it gets.
func All() []Known {
	out := make([]Known, len(known))
	for i, k := range known {
		out[i] = k.clone()
	}
	return out
}

// Lookup returns the known agent with that id.
func Lookup(id string) (Known, bool) {
	for _, k := range known {
		if k.ID == id {
			return k.clone(), true
		}
	}
	return Known{}, false
}

// Nearest returns the id in the registry or in more that id most likely meant, or
// "" if none is near.
func Nearest(id string, more ...string) string {
	best, at := "", 3 // at most two edits, and fewer than half of the word
	for _, k := range known {
		more = append(more, k.ID)
	}
	for _, other := range more {
		d := levenshtein.Distance(strings.ToLower(id), strings.ToLower(other), nil)
		if d < at && 2*d < len(other) {
			best, at = other, d
		}
	}
	return best
}

// Find returns the first of k's command lines whose program lookPath finds, with
// what it found as the first word. The usual lookPath is exec.LookPath, with Self
// answered by os.Executable.
func (k Known) Find(lookPath func(string) (string, error)) (argv []string, ok bool) {
	for _, c := range k.Commands {
		if path, err := lookPath(c[0]); err == nil {
			return append([]string{path}, c[1:]...), true
		}
	}
	return nil, false
}

// Agent returns what starts k with the command line that was found.
func (k Known) Agent(argv []string) provider.Agent {
	k = k.clone()
	return provider.Agent{ID: k.ID, Command: slices.Clone(argv), Env: k.Env, Asking: k.Asking, Orderly: k.Orderly}
}

func (k Known) clone() Known {
	k.Commands = slices.Clone(k.Commands)
	for i, c := range k.Commands {
		k.Commands[i] = slices.Clone(c)
	}
	k.Env = slices.Clone(k.Env)
	k.Asking.Env = slices.Clone(k.Asking.Env)
	return k
}
