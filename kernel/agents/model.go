package agents

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/perlica/perlica/kernel/config"
	"github.com/perlica/perlica/provider/model"
	"github.com/perlica/perlica/provider/registry"
)

// withModel adds the registry's API, base URL and key variable to the configuration of a model provider. A provider
// with a configured command is an agent, and withModel does not change it.
func withModel(c config.Provider, k registry.Known) config.Provider {
	if m := k.Model; m != nil && c.Command == "" {
		c.Model.API, c.Model.BaseURL = cmp.Or(c.Model.API, m.API), cmp.Or(c.Model.BaseURL, m.BaseURL)
		if c.Model.Key == (config.Secret{}) && len(c.Model.KeyCommand) == 0 {
			c.Model.Key.Env = m.KeyEnv
		}
	}
	return c
}

// UseModel sets the model of a model agent and the JSON Schema for its answer. An empty name means the configured
// model, and a nil schema means any text. The error says whether the model's name or the key is missing. UseModel
// checks that the key exists and does not store it.
func (r Resolver) UseModel(a *Agent, name string, schema json.RawMessage, dirs config.Dirs,
	getenv func(string) string) error {
	k, _ := registry.Lookup(a.ID)
	c := withModel(r.Config.Provider(a.ID), k)
	if c.Model.Name = cmp.Or(name, c.Model.Name); c.Model.Name == "" {
		return &Error{ID: a.ID, Why: fmt.Sprintf("the provider %q has no model", a.ID),
			Hint: nameHint(a.ID)}
	}
	if key := c.Model.Key; key != (config.Secret{}) && len(c.Model.KeyCommand) == 0 {
		if _, err := key.Read(dirs, "", getenv); err != nil {
			return &Error{ID: a.ID, Why: fmt.Sprintf("the key for the provider %q is missing: %v", a.ID, err),
				Hint: keyHint(a.ID)}
		}
	}
	err := r.model(a, c)
	if schema != nil {
		a.Command = append(a.Command, "--schema", string(schema))
	}
	return err
}

// model turns a configured model into an agent. The agent's process is Perlica itself, and that process reads the key.
// Its command line holds no secret.
func (r Resolver) model(a *Agent, c config.Provider) error {
	m := c.Model
	a.Model, a.Orderly = true, true
	a.Command = []string{r.Self, "agent", "model", "--api", m.API, "--model", m.Name}
	settings := model.Settings{API: model.API(m.API), Model: cmp.Or(m.Name, "unnamed"), BaseURL: m.BaseURL, Proxy: m.Proxy}
	var command []byte
	if len(m.KeyCommand) > 0 { // only the agent's process runs the command that prints the key
		m.Key = config.Secret{}
		command, _ = json.Marshal(m.KeyCommand) // strings can always be encoded
	}
	if m.Key.Env != "" && !slices.Contains(a.Env, m.Key.Env) {
		a.Env = append(a.Env, m.Key.Env)
	}
	options, err := table(m.Options, &settings.Options)
	price, perr := table(m.Price, &settings.Price)
	if err = cmp.Or(err, perr, settings.Check()); err != nil {
		return &Error{ID: a.ID, Why: fmt.Sprintf("the provider %q cannot be asked: %v", a.ID, err),
			Hint: "see 'perlica provider show " + a.ID + "' and docs/models.md"}
	}
	if m.Blind {
		a.Command = append(a.Command, "--no-images")
	}
	for _, f := range [][2]string{{"--base-url", m.BaseURL}, {"--proxy", m.Proxy}, {"--key-env", m.Key.Env},
		{"--key-file", m.Key.File}, {"--key-command", string(command)}, {"--options", options}, {"--price", price}} {
		if f[1] != "" {
			a.Command = append(a.Command, f[0], f[1])
		}
	}
	return nil
}

// table converts a configured table to JSON, and decodes the JSON into the value that the parameter "into" points to.
// For an absent table it returns an empty string.
func table(m map[string]any, into any) (string, error) {
	if len(m) == 0 {
		return "", nil
	}
	b, err := json.Marshal(m)
	if err != nil {
		return "", err
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	return string(b), d.Decode(into)
}
