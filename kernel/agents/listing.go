package agents

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/perlica/perlica/provider"
	"github.com/perlica/perlica/provider/registry"
)

// State says whether an agent can be used.
type State string

// The states of an agent.
const (
	Installed    State = "installed"
	NeedsKey     State = "needs key"     // a model without its key
	NeedsModel   State = "needs model"   // a model without a name
	NeedsAdapter State = "needs adapter" // the maker's program was found, and the adapter that speaks ACP was not
	Missing      State = "missing"       // its program was not found
	Disabled     State = "disabled"      // by the configuration
)

// order is the order of the states in a list: usable agents come first.
var order = []State{Installed, NeedsModel, NeedsKey, NeedsAdapter, Missing, Disabled}

// Listing is what there is to know of an agent without starting it.
type Listing struct {
	ID         string          `json:"id"`
	Name       string          `json:"name"`
	State      State           `json:"state"`
	Why        string          `json:"why"` // it cannot be used
	Default    bool            `json:"default"`
	Known      bool            `json:"known"`      // the registry has it
	Configured bool            `json:"configured"` // the configuration mentions it
	Command    []string        `json:"command"`    // as it is started; what would be looked for, if it is missing
	Origin     string          `json:"origin"`     // where the command comes from
	Env        []string        `json:"env"`        // names of variables that it is given beside the common ones
	Mode       string          `json:"mode"`       // that the configuration chooses; empty: the asking one
	Asking     provider.Asking `json:"asking"`
	Asks       string          `json:"asks"` // when it asks, in words
	Install    string          `json:"install"`
	Hint       string          `json:"hint,omitempty"` // the next step where it cannot be used
	Login      string          `json:"login"`
	Website    string          `json:"website"`
	Note       string          `json:"note"`
	Needs      []Requirement   `json:"needs,omitempty"` // of a model without an agent; set by who asked for it

	Installer      []string      `json:"-"` // the command that installs it, nil where Install is no command
	ConnectTimeout time.Duration `json:"-"`
	RequestTimeout time.Duration `json:"-"`
	MaxLine        int           `json:"max_line_bytes"`
}

// Require notes the needs of a model. A need that is not met is the state of the model.
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

// SortUsable puts usable agents first and keeps the order of the registry otherwise.
func SortUsable(list []Listing) {
	slices.SortStableFunc(list, func(a, b Listing) int { return slices.Index(order, a.State) - slices.Index(order, b.State) })
}

// OriginRegistry is the Origin of a command that only the registry names.
const OriginRegistry = "registry"

// List returns every agent that the registry knows, in its order, and every other that the
// configuration mentions, by name.
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

// Describe returns what there is to know of one agent. An id that neither the registry nor
// the configuration has is an *Error.
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

// Warnings returns what is accepted in the configuration and cannot work, a line each:
// providers without a command.
func (r Resolver) Warnings() []string {
	var lines []string
	for _, id := range slices.Sorted(maps.Keys(r.Config.Providers)) {
		if argv, _ := r.commandOf(id); len(argv) == 0 {
			lines = append(lines, fmt.Sprintf("providers.%s: the registry does not know it, and it has no adapter.command%s", id, r.near(id)))
		}
	}
	id := r.Config.DefaultProvider
	if _, mentioned := r.Config.Providers[id]; id == "" || mentioned {
		return lines
	}
	if argv, _ := r.commandOf(id); len(argv) == 0 {
		lines = append(lines, fmt.Sprintf("%s: model.default_provider: there is no provider %q%s", r.origin("model.default_provider"), id, r.near(id)))
	}
	return lines
}

// near asks whether another id was meant.
func (r Resolver) near(id string) string {
	others := slices.DeleteFunc(slices.Sorted(maps.Keys(r.Config.Providers)), func(other string) bool { return other == id })
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
	l.State, l.Why, l.Hint = r.state(id)
	return l
}

// commandOf returns the command line that is used or looked for, and where it comes from.
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

// origin says which layer set a key.
func (r Resolver) origin(key string) string {
	for _, v := range r.Config.Values() {
		if v.Key == key {
			return v.Origin
		}
	}
	return "configuration"
}

// state says whether an agent can be started. Otherwise, state returns the reason and the next step.
func (r Resolver) state(id string) (s State, why, hint string) {
	a, err := r.Named(id)
	if err == nil {
		_, err = r.Find(a.Command[0])
	}
	var e *Error
	switch {
	case err == nil:
		return Installed, "", ""
	case !r.Config.Provider(id).Enabled:
		return Disabled, err.Error(), ""
	case errors.As(err, &e) && e.State != "":
		return e.State, e.Why, e.Hint
	}
	return Missing, err.Error(), "see 'perlica provider show " + id + "'"
}
