package agents

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/perlica/perlica/kernel/config"
	"github.com/perlica/perlica/provider/model"
	"github.com/perlica/perlica/provider/registry"
)

// modelOf is the model of a provider, by the configuration and the registry; without an API it has none.
func modelOf(k registry.Known, c config.Provider) config.Model {
	m := c.Model
	if k.Model != nil {
		m.API, m.BaseURL = cmp.Or(m.API, k.Model.API), cmp.Or(m.BaseURL, k.Model.BaseURL)
		if m.Key == (config.Secret{}) {
			m.Key.Env = k.Model.KeyEnv
		}
	}
	return m
}

// UseModel has a model agent ask the model of this name; an empty one is the configured. The error says
// what is missing: a name, or the key, which is looked for and not kept.
func (r Resolver) UseModel(a *Agent, name string, dirs config.Dirs, getenv func(string) string) error {
	k, _ := registry.Lookup(a.ID)
	m := modelOf(k, r.Config.Provider(a.ID))
	if m.Name = cmp.Or(name, m.Name); m.Name == "" {
		return &Error{ID: a.ID, Why: fmt.Sprintf("the provider %q has no model", a.ID),
			Hint: fmt.Sprintf("name one with --model, or set providers.%s.model.name", a.ID)}
	}
	if m.Key != (config.Secret{}) {
		if _, err := m.Key.Read(dirs, "", getenv); err != nil {
			return &Error{ID: a.ID, Why: fmt.Sprintf("the key for the provider %q is missing: %v", a.ID, err),
				Hint: fmt.Sprintf("set the variable, or put the key into a file that only you can read and name it in providers.%s.model.key_file", a.ID)}
		}
	}
	a.Env, a.Command = slices.DeleteFunc(a.Env, func(n string) bool { return n == m.Key.Env }), nil
	return r.model(a, m)
}

// model makes an agent of a model: its process is Perlica's own. The key is read by that process; its
// command line holds no secret.
func (r Resolver) model(a *Agent, m config.Model) error {
	a.Model, a.Orderly, a.Asking.Mode = true, true, ""
	a.Command = []string{r.Self, "agent", "model", "--api", m.API, "--model", m.Name}
	add := func(flag, value string) {
		if value != "" {
			a.Command = append(a.Command, flag, value)
		}
	}
	add("--base-url", m.BaseURL)
	if m.Key.Env != "" {
		a.Env = append(a.Env, m.Key.Env)
		add("--key-env", m.Key.Env)
	} else {
		add("--key-file", m.Key.File)
	}
	settings := model.Settings{API: model.API(m.API), Model: cmp.Or(m.Name, "unnamed"), BaseURL: m.BaseURL}
	if len(m.Options) > 0 {
		b, err := json.Marshal(m.Options)
		if err == nil {
			err = json.Unmarshal(b, &settings.Options)
		}
		if err != nil {
			return &Error{ID: a.ID, Why: fmt.Sprintf("providers.%s.model.options cannot be sent: %v", a.ID, err)}
		}
		add("--options", string(b))
	}
	if m.Price != nil {
		b, err := json.Marshal(m.Price)
		if err != nil {
			return &Error{ID: a.ID, Why: fmt.Sprintf("providers.%s.model.price: %v", a.ID, err)}
		}
		add("--price", string(b))
	}
	if err := settings.Check(); err != nil {
		return &Error{ID: a.ID, Why: fmt.Sprintf("the provider %q cannot be asked: %v", a.ID, err), Hint: "see 'perlica provider show " + a.ID + "'"}
	}
	return nil
}
