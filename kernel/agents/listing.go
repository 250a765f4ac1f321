package agents

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sort"
	"time"

	"github.com/perlica/perlica/eventlog/message"
	"github.com/perlica/perlica/provider"
	"github.com/perlica/perlica/provider/registry"
)

// State is the state of an agent's installation.
type State string

// These are the states of an agent's installation.
const (
	Installed State = "installed"
	// NeedsKey is the state of a model without its API key.
	NeedsKey State = "needs key"
	// NeedsModel is the state of a model provider without the name of a model.
	NeedsModel State = "needs model"
	// NeedsAdapter is the state of an agent if its own program is installed, but not its ACP adapter.
	NeedsAdapter State = "needs adapter"
	// Missing is the state of an agent without its program on PATH.
	Missing State = "missing"
	// Disabled is the state of an agent that the configuration disables.
	Disabled State = "disabled"
)

// order is the order of the states in a list. Usable agents come first.
var order = []State{Installed, NeedsModel, NeedsKey, NeedsAdapter, Missing, Disabled}

// Listing describes an agent without starting it.
type Listing struct {
	ID    string `json:"id"`
	Name  string `json:"name"`
	State State  `json:"state"`
	// Why is the reason why the agent cannot be used.
	Why string `json:"why"`
	message.Coded
	Default bool `json:"default"`
	// Known means that the registry has the agent.
	Known bool `json:"known"`
	// Configured means that the configuration mentions the agent.
	Configured bool `json:"configured"`
	// Command is the command line that starts the agent. For a missing agent it is the command that was not found.
	Command []string `json:"command"`
	// Origin is the registry or the configuration file that names Command.
	Origin string `json:"origin"`
	// Env names the variables that this agent gets in addition to the common ones.
	Env []string `json:"env"`
	// Mode is the mode in the configuration. Empty means the asking mode.
	Mode   string          `json:"mode"`
	Asking provider.Asking `json:"asking"`
	// Asks is a sentence about the actions before which the agent asks.
	Asks    string `json:"asks"`
	Install string `json:"install"`
	// Hint is the next step for an agent that cannot be used.
	Hint    string `json:"hint,omitempty"`
	Login   string `json:"login"`
	Website string `json:"website"`
	Note    string `json:"note"`
	// Needs lists the requirements of a model provider. The caller of List sets it.
	Needs []Requirement `json:"needs,omitempty"`

	// Installer is the command line that installs the agent. It is nil if Install is advice for a person and not a
	// command.
	Installer      []string      `json:"-"`
	ConnectTimeout time.Duration `json:"-"`
	RequestTimeout time.Duration `json:"-"`
	MaxLine        int           `json:"max_line_bytes"`
}

// Require stores the requirements of a model provider. A missing key or model becomes the State.
func (l *Listing) Require(needs []Requirement) {
	l.Needs = needs
	if l.State != Installed {
		return
	}
	for _, n := range needs {
		switch {
		case n.OK:
		case n.Name == "key":
			l.State = NeedsKey
			return
		case n.Name == "model":
			l.State = NeedsModel
		}
	}
}

// SortUsable sorts the list by state, usable agents first. Agents with the same state keep their order.
func SortUsable(list []Listing) {
	sort.SliceStable(list, func(i, j int) bool {
		return slices.Index(order, list[i].State) < slices.Index(order, list[j].State)
	})
}

// OriginRegistry is the Origin of a command that comes from the registry alone.
const OriginRegistry = "registry"

// List returns all agents in the order of the registry, and then the other configured agents by name.
func (r Resolver) List() []Listing {
	def := ""
	if a, err := r.Default(); err == nil {
		def = a.ID
	}
	var ids []string
	for _, k := range registry.All() {
		ids = append(ids, k.ID)
	}
	for _, id := range slices.Sorted(maps.Keys(r.Config.Providers)) {
		if !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	list := make([]Listing, len(ids))
	for i, id := range ids {
		list[i] = r.describe(id)
		list[i].Default = id == def
	}
	return list
}

// Describe describes one agent. It returns an *Error if neither the registry nor the configuration has the id.
func (r Resolver) Describe(id string) (Listing, error) {
	for _, l := range r.List() {
		if l.ID == id {
			return l, nil
		}
	}
	_, err := r.Named(id)
	if err == nil {
		err = &Error{ID: id, Why: "there is no provider " + id}
	}
	return Listing{}, err
}

// Warnings returns one line for each provider in the configuration that has no command and cannot work.
func (r Resolver) Warnings() []string {
	var lines []string
	for _, id := range slices.Sorted(maps.Keys(r.Config.Providers)) {
		if argv, _ := r.commandOf(id); len(argv) == 0 {
			lines = append(lines, fmt.Sprintf("providers.%s: the registry does not know it, and it has no adapter.command%s", id,
				r.near(id)))
		}
	}
	id := r.Config.DefaultProvider
	if _, mentioned := r.Config.Providers[id]; id == "" || mentioned {
		return lines
	}
	if argv, _ := r.commandOf(id); len(argv) == 0 {
		lines = append(lines, fmt.Sprintf("%s: model.default_provider: there is no provider %q%s",
			r.origin("model.default_provider"), id, r.near(id)))
	}
	return lines
}

// near returns "did you mean" with a similar id, or an empty string.
func (r Resolver) near(id string) string {
	others := slices.DeleteFunc(slices.Sorted(maps.Keys(r.Config.Providers)),
		func(other string) bool { return other == id })
	if n := registry.Nearest(id, others...); n != "" {
		return fmt.Sprintf("; did you mean %q?", n)
	}
	return ""
}

func (r Resolver) describe(id string) Listing {
	c := r.Config.Provider(id)
	k, known := registry.Lookup(id)
	_, configured := r.Config.Providers[id]
	l := Listing{
		ID: id, Name: id, Known: known, Configured: configured, State: Installed,
		Env: append(append([]string{}, k.Env...), c.Env...), Mode: c.Mode,
		Asking: k.Asking,
		Asks:   k.Asks, Install: k.Install, Login: k.Login, Website: k.Website, Note: k.Note,
		ConnectTimeout: c.ConnectTimeout, RequestTimeout: c.RequestTimeout, MaxLine: c.MaxLineBytes,
	}
	l.Asking.Env = append([]string{}, k.Asking.Env...)
	if known {
		l.Name, l.Installer = k.Name, k.Installer()
	}
	l.Command, l.Origin = r.commandOf(id)
	state, why, hint := r.state(id)
	l.State, l.Hint = state, hint
	if why != nil {
		l.Why, l.Coded = why.Text, why.Coded
	}
	return l
}

// commandOf returns an agent's command line and the source of that command. For a missing agent it returns the command
// that was not found.
func (r Resolver) commandOf(id string) (argv []string, origin string) {
	c := r.Config.Provider(id)
	if c.Command != "" {
		return append([]string{c.Command}, c.Args...), r.origin("providers." + id + ".adapter.command")
	}
	if c.Model.API != "" {
		if a, err := r.Named(id); err == nil {
			return a.Command, r.origin("providers." + id + ".model.api")
		}
	}
	k, known := registry.Lookup(id)
	if !known {
		return []string{}, ""
	}
	argv, ok := k.Find(r.Find)
	if !ok {
		argv = k.Commands[0]
	}
	if c.Args != nil {
		return append(argv[:1:1], c.Args...), OriginRegistry + "; its arguments: " + r.origin("providers."+id+".adapter.args")
	}
	return argv, OriginRegistry
}

// origin returns the name of the configuration layer that set a key.
func (r Resolver) origin(key string) string {
	for _, v := range r.Config.Values() {
		if v.Key == key {
			return v.Origin
		}
	}
	return "configuration"
}

// state returns the state of an agent. For an unusable agent it also returns the reason and the next step.
func (r Resolver) state(id string) (s State, why *message.Text, hint string) {
	a, err := r.Named(id)
	if err == nil {
		_, err = r.Find(a.Command[0])
	}
	var e *Error
	switch {
	case err == nil:
		return Installed, nil, ""
	case !r.Config.Provider(id).Enabled:
		return Disabled, message.Of(err), ""
	case errors.As(err, &e) && e.State != "":
		return e.State, e.Tell(), e.Hint
	}
	return Missing, message.Of(err), "see 'perlica provider show " + id + "'"
}
