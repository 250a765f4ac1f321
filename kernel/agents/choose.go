package agents

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/coder/acp-go-sdk"

	"github.com/perlica/perlica/provider"
)

// An OfferError says that the agent offers no such mode, option or model, and what it offers.
type OfferError struct{ Err error }

func (e *OfferError) Error() string { return e.Err.Error() }

// Unwrap returns what is wrong.
func (e *OfferError) Unwrap() error { return e.Err }

// CloseTimeout is how long an agent may take to free a session that is over.
const CloseTimeout = 3 * time.Second

// Choose puts a session into a mode and a model. Where mode is empty it is the one in which
// the agent asks.
func Choose(ctx context.Context, s *provider.Session, asking provider.Asking, want, model string) (mode string, options map[string]string, err error) {
	if s.Modes != nil {
		mode = string(s.Modes.CurrentModeId)
	}
	options = map[string]string{}
	if want != "" {
		asking = provider.Asking{}
		if want != ModeNone {
			if err := CheckMode(s, want); err != nil {
				return "", nil, err
			}
			asking.Mode = want
		}
	}
	switch {
	case asking.Mode != "" && asking.Mode != mode && hasMode(s, asking.Mode):
		if err := s.SetMode(ctx, asking.Mode); err != nil {
			return "", nil, err
		}
		mode = asking.Mode
	case asking.Option != "" && hasOption(s, asking.Option):
		if err := s.SetOption(ctx, asking.Option, asking.Value); err != nil {
			return "", nil, err
		}
		options[asking.Option] = asking.Value
	}
	if model != "" {
		id, err := ModelOption(s, model)
		if err != nil {
			return "", nil, err
		}
		if err := s.SetOption(ctx, id, model); err != nil {
			return "", nil, err
		}
		options[id] = model
	}
	return mode, options, nil
}

// Unoffered says that an agent which is left in mode does not offer the one in which it is known to ask. It is empty where
// nothing is amiss, or where a person wants a certain mode.
func Unoffered(asking provider.Asking, want, mode string) string {
	if want != "" || asking.Mode == "" || mode == asking.Mode || slices.Contains(asking.Stricter, mode) {
		return ""
	}
	return fmt.Sprintf("the agent does not offer the mode %q, in which it asks before it acts; what it does unasked is said", asking.Mode)
}

// ModeNone leaves an agent in the mode in which it starts.
const ModeNone = "none"

func hasMode(s *provider.Session, id string) bool {
	return s.Modes != nil && slices.ContainsFunc(s.Modes.AvailableModes, func(m acp.SessionMode) bool { return string(m.Id) == id })
}

// ModeName is what people read of a mode: what the agent calls it, whose id may be an address. It is the
// id if the name says no more than that, as "Accept Edits" for acceptEdits.
func ModeName(modes []acp.SessionMode, id string) string {
	letters := func(s string) string { return strings.NewReplacer(" ", "", "-", "", "_", "").Replace(s) }
	for _, m := range modes {
		if string(m.Id) == id && m.Name != "" && !strings.EqualFold(letters(m.Name), letters(id)) {
			return m.Name
		}
	}
	return id
}

// CheckMode refuses a mode that the agent does not have; its names are in the error.
func CheckMode(s *provider.Session, id string) error {
	if hasMode(s, id) {
		return nil
	}
	var names []string
	if s.Modes != nil {
		for _, m := range s.Modes.AvailableModes {
			names = append(names, string(m.Id))
		}
	}
	if len(names) == 0 {
		return &OfferError{fmt.Errorf("the agent has no modes, so it cannot be put into %q", id)}
	}
	return &OfferError{fmt.Errorf("the agent has no mode %q; it has %s", id, strings.Join(names, ", "))}
}

func hasOption(s *provider.Session, id string) bool {
	return slices.ContainsFunc(s.Options, func(o acp.SessionConfigOption) bool {
		return o.Select != nil && string(o.Select.Id) == id || o.Boolean != nil && string(o.Boolean.Id) == id
	})
}

// CheckOption refuses an option, or a value of it, that the agent does not have.
func CheckOption(s *provider.Session, id, value string) error {
	var ids []string
	for _, o := range s.Options {
		name, _, _, values := DescribeOption(o)
		if name != id {
			ids = append(ids, name)
			continue
		}
		if slices.Contains(values, value) {
			return nil
		}
		return &OfferError{fmt.Errorf("the agent's option %q has no value %q; it has %s", id, value, strings.Join(values, ", "))}
	}
	if len(ids) == 0 {
		return &OfferError{fmt.Errorf("the agent has no options, so %q cannot be set", id)}
	}
	return &OfferError{fmt.Errorf("the agent has no option %q; it has %s", id, strings.Join(ids, ", "))}
}

// ModelOption finds the config option by which the agent's model is chosen and checks
// that the model is among its values.
func ModelOption(s *provider.Session, model string) (string, error) {
	if o := ModelSelect(s.Options); o != nil {
		values := OptionValues(o.Options)
		if s.AnyModel || slices.Contains(values, model) {
			return string(o.Id), nil
		}
		return "", &OfferError{fmt.Errorf("the agent has no model %q; it has %s", model, strings.Join(values, ", "))}
	}
	return "", &OfferError{fmt.Errorf("the agent has no models to choose from, so it cannot use %q", model)}
}

// DescribeOption is a config option as people choose: its values, and the present one.
func DescribeOption(o acp.SessionConfigOption) (id, name, now string, values []string) {
	switch {
	case o.Select != nil:
		return string(o.Select.Id), o.Select.Name, string(o.Select.CurrentValue), OptionValues(o.Select.Options)
	case o.Boolean != nil && o.Boolean.CurrentValue:
		now = "on"
	case o.Boolean != nil:
		now = "off"
	default:
		return "", "", "", nil
	}
	return string(o.Boolean.Id), o.Boolean.Name, now, []string{"on", "off"}
}

// ModelSelect is the option that chooses the model, or nil. An agent may have several options of that
// category, such as one for who serves the models.
func ModelSelect(options []acp.SessionConfigOption) (found *acp.SessionConfigOptionSelect) {
	for _, o := range options {
		switch {
		case o.Select == nil:
		case o.Select.Id == "model":
			return o.Select
		case found == nil && o.Select.Category != nil && *o.Select.Category == acp.SessionConfigOptionCategoryModel:
			found = o.Select
		}
	}
	return found
}

// OptionValues are the values that an option can take.
func OptionValues(o acp.SessionConfigSelectOptions) []string {
	var values []string
	for _, v := range provider.OptionValues(o) {
		values = append(values, string(v.Value))
	}
	return values
}
