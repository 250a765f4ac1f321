package policy

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/perlica/perlica/policy/shell"
)

// ToolCall is a tool call as an agent reports it.
type ToolCall struct {
	Provider  string // the provider's id, for rules
	Agent     string // the id of the known agent that it is: some have fields of their own; empty: Provider
	Kind      string // ACP tool kind
	Title     string
	RawInput  json.RawMessage
	Locations []string
	Diffs     []Diff   // of its content
	Text      []string // of its content
}

// Diff is a change of a file.
type Diff struct{ Path, Old, New string }

// Reading is a tool call, read.
type Reading struct {
	// Request has Provider, Kind, Title, Mode, Commands, HasCommand, Paths, Removes, Changes, Fields,
	// Guesses and Place.
	Request Request
	// Bodies are texts that the input would put into its file, or take out of it, and that
	// no diff of the call shows.
	Bodies []Diff
}

// ReadToolCall reads a tool call that is made at a place.
func ReadToolCall(c ToolCall, at shell.Place) Reading {
	r := &reader{call: c, place: at, names: ofAgent()[cmp.Or(c.Agent, c.Provider)]}
	for _, path := range c.Locations {
		r.path(path)
	}
	for _, d := range c.Diffs {
		r.path(d.Path)
	}
	r.input(c.RawInput)
	r.finish()
	return Reading{Request: Request{
		Provider: c.Provider, Kind: c.Kind, Title: c.Title, Mode: r.mode,
		Commands: r.commands, HasCommand: len(r.commands) > 0 || r.lost,
		Paths: r.paths, Removes: r.removes, Changes: r.changes || len(c.Diffs) > 0, Fields: r.fields, Guesses: r.guesses, Place: at,
	}, Bodies: r.bodies}
}

// A reader gathers what a tool call says.
type reader struct {
	call  ToolCall
	place shell.Place
	names map[string]role

	scopes []*scope // of the objects being read, the innermost last
	left   int      // how many more values are read

	commands []shell.Command
	lost     bool // there is a command that cannot be read
	paths    []string
	removes  []string
	fields   []Field
	guesses  []shell.Command
	bodies   []Diff
	mode     string

	given   bool    // the call has an input
	changes bool    // it names a change of a file
	deletes bool    // it says that it deletes the files that it names
	beside  []Field // fields that widen what a command may do, if there is one

	patched, unpatched []string // the files that patches name, and those that they remove
}

// What an agent sends is bounded, so that reading it is.
const (
	maxDepth  = 16
	maxValues = 2000
)

func (r *reader) acts() bool { return r.call.Kind == "execute" }

func (r *reader) field(name, value string, role Role) {
	r.fields = append(r.fields, Field{Name: name, Value: value, Role: role})
}

// unread keeps a field that is not understood, and what it may turn out to be.
func (r *reader) unread(name, value string) {
	r.field(name, value, Unread)
	if strings.TrimSpace(value) != "" {
		r.guesses = append(r.guesses, shell.Command{Text: value})
	}
	if looksLikePath(value) {
		r.path(value)
	}
}

// finish takes in what only the whole call tells.
func (r *reader) finish() {
	if len(r.commands) == 0 && !r.lost && r.acts() {
		r.title()
	}
	r.patches()
	if len(r.commands) > 0 || r.acts() {
		for _, f := range r.beside {
			r.grave(f.Name, f.Value, "it changes who the command runs as, or what it reaches")
		}
	}
	r.spoken()
	if r.deletes {
		r.removes = append(r.removes, r.paths...)
	}
	for _, c := range r.commands {
		if c.Dir != "" {
			r.path(c.Dir)
		}
	}
	slices.SortStableFunc(r.fields, func(a, b Field) int { return strings.Compare(a.Name, b.Name) })
	r.bodies = slices.DeleteFunc(r.bodies, func(b Diff) bool {
		return slices.ContainsFunc(r.call.Diffs, func(d Diff) bool {
			return (b.New == "" || strings.Contains(d.New, b.New)) && (b.Old == "" || strings.Contains(d.Old, b.Old))
		})
	})
	for i := range r.bodies {
		if r.bodies[i].Path == "" && len(r.paths) > 0 {
			r.bodies[i].Path = r.paths[0]
		}
	}
}
