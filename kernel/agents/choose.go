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

// ModeNone leaves an agent in the mode in which it starts.
const ModeNone = "none"

func hasMode(s *provider.Session, id string) bool {
	return s.Modes != nil && slices.ContainsFunc(s.Modes.AvailableModes, func(m acp.SessionMode) bool { return string(m.Id) == id })
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
		switch {
		case o.Boolean != nil:
			ids = append(ids, string(o.Boolean.Id))
		case o.Select != nil && string(o.Select.Id) != id:
			ids = append(ids, string(o.Select.Id))
		case o.Select != nil:
			values := OptionValues(o.Select.Options)
			if slices.Contains(values, value) {
				return nil
			}
			return &OfferError{fmt.Errorf("the agent's option %q has no value %q; it has %s", id, value, strings.Join(values, ", "))}
		}
	}
	if len(ids) == 0 {
		return &OfferError{fmt.Errorf("the agent has no options, so %q cannot be set", id)}
	}
	return &OfferError{fmt.Errorf("the agent has no option %q whose value can be chosen; it has %s", id, strings.Join(ids, ", "))}
}

// ModelOption finds the config option by which the agent's model is chosen and checks
// that the model is among its values.
func ModelOption(s *provider.Session, model string) (string, error) {
	for _, o := range s.Options {
		if o.Select == nil || !IsModelOption(o.Select) {
			continue
		}
		values := OptionValues(o.Select.Options)
		if s.AnyModel || slices.Contains(values, model) {
			return string(o.Select.Id), nil
		}
		return "", &OfferError{fmt.Errorf("the agent has no model %q; it has %s", model, strings.Join(values, ", "))}
	}
	return "", &OfferError{fmt.Errorf("the agent lets no one choose a model, so it cannot use %q", model)}
}

// IsModelOption reports whether an option chooses the model.
func IsModelOption(o *acp.SessionConfigOptionSelect) bool {
	return o.Category != nil && *o.Category == acp.SessionConfigOptionCategoryModel || o.Id == "model"
}

// OptionValues are the values that an option can take.
func OptionValues(o acp.SessionConfigSelectOptions) []string {
	var values []string
	for _, v := range provider.OptionValues(o) {
		values = append(values, string(v.Value))
	}
	return values
}
