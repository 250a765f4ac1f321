package agents

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/perlica/perlica/kernel/config"
	"github.com/perlica/perlica/provider/model"
	"github.com/perlica/perlica/provider/registry"
)

// Requirement is something that a model provider needs, such as a key. It says whether the need is met.
type Requirement struct {
	// Name is "model", "key" or "address".
	Name   string `json:"name"`
	OK     bool   `json:"ok"`
	Detail string `json:"detail"`
	// Hint is the next step.
	Hint string `json:"hint,omitempty"`
}

// Requirements returns the needs of a model provider. For any other provider, and for an unusable one, it returns nil.
// It checks that the model's address accepts connections, but a remote address only if reach is true. It sends no
// request.
func (r Resolver) Requirements(ctx context.Context, id string, reach bool, dirs config.Dirs,
	getenv func(string) string) []Requirement {
	k, _ := registry.Lookup(id)
	c := withModel(r.Config.Provider(id), k)
	if _, err := r.Named(id); err != nil || c.Command != "" || c.Model.API == "" {
		return nil
	}
	name := Requirement{Name: "model", OK: c.Model.Name != "", Detail: c.Model.Name}
	if !name.OK {
		name.Detail, name.Hint = "none is named", nameHint(id)
	}
	key := Requirement{Name: "key", OK: true, Detail: "none is needed"}
	if command := c.Model.KeyCommand; len(command) > 0 {
		key.Detail = command[0] + " prints it; it was not run"
	} else if s := c.Model.Key; s != (config.Secret{}) {
		if key.Detail = "in " + cmp.Or(s.File, s.Env); s.File == "" {
			key.Detail = s.Env + " is set"
		}
		if _, err := s.Read(dirs, "", getenv); err != nil {
			key = Requirement{Name: "key", Detail: err.Error(), Hint: keyHint(id)}
			if s.File == "" && errors.Is(err, config.ErrNoSecret) {
				key.Detail = s.Env + " is not set"
			}
		}
	}
	settings := model.Settings{API: model.API(c.Model.API), Model: cmp.Or(c.Model.Name, "unnamed"),
		BaseURL: c.Model.BaseURL, Proxy: c.Model.Proxy}
	address := Requirement{Name: "address", OK: true, Detail: settings.Address()}
	if reach || settings.Local() {
		where, err := settings.Reach(ctx)
		if address.Detail += ", reachable"; where != "" && err != nil {
			address = Requirement{Name: "address", Detail: fmt.Sprintf("%s: %v", settings.Address(), err),
				Hint: "is its server running, and providers." + id + ".model.base_url right?"}
		}
	}
	return []Requirement{name, key, address}
}

func nameHint(id string) string {
	return fmt.Sprintf("name one with --model, or set providers.%s.model.name", id)
}

func keyHint(id string) string {
	return fmt.Sprintf(
		"set the variable, or put the key into a file that only you can read and name it in providers.%s.model.key_file", id)
}
