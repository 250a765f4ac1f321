package policy

import (
	"cmp"
	"encoding/json"
	"slices"
	"sort"
	"strings"

	"github.com/perlica/perlica/policy/shell"
)

// ToolCall is a tool call as an agent reports it.
type ToolCall struct {
	Provider  string // the provider's id, for rules
	Agent     string // id of the agent, which selects its table in ofAgent; empty means Provider
	Kind      string // ACP tool kind
	Title     string
	RawInput  json.RawMessage
	Locations []string
	Diffs     []Diff   // the diffs in the content of the call
	Text      []string // the texts in the content of the call
}

// Diff is a change of a file.
type Diff struct {
	Path, Old, New string
	patch          bool // New is a patch in the input of the call
}

// Reading is the result of ReadToolCall.
type Reading struct {
	// Request has all fields except Agent, Session and Options, which the caller sets.
	Request Request
	// Bodies are texts in the input that the call adds to a file or removes from it. They do not repeat the call's
	// diffs.
	Bodies []Diff
	// Diffs are the diffs of the call.
	Diffs []Diff
}

// ReadToolCall reads a tool call. Relative paths and commands start in the directory at.Dir.
func ReadToolCall(c ToolCall, at shell.Place) Reading {
	r := &reader{call: c, place: at, names: ofAgent()[cmp.Or(c.Agent, c.Provider)]}
	for _, path := range c.Locations {
		r.addPath(path)
	}
	for _, d := range c.Diffs {
		r.addPath(d.Path)
	}
	r.readInput(c.RawInput)
	r.finishCall()
	return Reading{Request: Request{
		Provider: c.Provider, Kind: c.Kind, Title: c.Title, Mode: r.mode,
		Commands: r.commands, HasCommand: len(r.commands) > 0 || r.lost,
		Paths: r.paths, Removes: r.removes, Changes: r.changes ||
			len(c.Diffs) > 0, Fields: r.fields, Guesses: r.guesses, Place: at,
	}, Bodies: r.bodies, Diffs: c.Diffs}
}

// reader collects the parts of a tool call.
type reader struct {
	call  ToolCall
	place shell.Place
	names map[string]role

	scopes []*scope // one for each nested object that is being read, the innermost last
	left   int      // number of further values to read

	commands []shell.Command
	lost     bool // the call has a command that cannot be read
	paths    []string
	removes  []string
	fields   []Field
	guesses  []shell.Command
	bodies   []Diff
	mode     string

	given   bool    // the call has an input
	changes bool    // the call describes a change of a file
	deletes bool    // the call deletes the files that it names
	beside  []Field // fields that widen the rights only if the call has a command

	patched, unpatched []string // the files that patches name, and the files that patches remove
}

// These limits bound the time for reading one call.
const (
	maxDepth  = 16
	maxValues = 2000
)

func (r *reader) isExecute() bool { return r.call.Kind == "execute" }

func (r *reader) addField(name, value string, role Role) {
	r.fields = append(r.fields, Field{Name: name, Value: value, Role: role})
}

// addUnread records a field with the role Unread. Its value may be a command or a path. addUnread therefore also
// records the value as a guess, and as a path if the value looks like a path.
func (r *reader) addUnread(name, value string) {
	r.addField(name, value, Unread)
	if strings.TrimSpace(value) != "" {
		r.guesses = append(r.guesses, shell.Command{Text: value})
	}
	if looksLikePath(value) {
		r.addPath(value)
	}
}

// finishCall adds the parts that depend on several fields of the call. It runs after all fields have been read.
func (r *reader) finishCall() {
	if len(r.commands) == 0 && !r.lost && r.isExecute() {
		r.takeTitle()
	}
	r.addPatchedPaths()
	if len(r.commands) > 0 || r.isExecute() {
		for _, f := range r.beside {
			r.addGrave(f.Name, f.Value, whyRunsAs)
		}
	}
	r.judgeTitle()
	if r.deletes {
		r.removes = append(r.removes, r.paths...)
	}
	for _, c := range r.commands {
		if c.Dir != "" {
			r.addPath(c.Dir)
		}
	}
	sort.SliceStable(r.fields, func(i, j int) bool { return r.fields[i].Name < r.fields[j].Name })
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
