package agents

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/coder/acp-go-sdk"

	"github.com/perlica/perlica/eventlog/message"
	"github.com/perlica/perlica/provider"
)

// An OfferError means that the agent does not offer a mode, an option or a model. Its text lists the agent's offers.
type OfferError struct{ Err error }

func (e *OfferError) Error() string { return e.Err.Error() }

// Unwrap returns the underlying error.
func (e *OfferError) Unwrap() error { return e.Err }

// CloseTimeout is the time limit for an agent's answer to session/close.
const CloseTimeout = 3 * time.Second

// Choose sets the mode and the model of a session. An empty parameter "want" means the asking mode. An empty model
// means the agent's own choice. Choose returns the mode and the options that it set.
func Choose(ctx context.Context, s *provider.Session, asking provider.Asking, want,
	model string) (mode string, options map[string]string, err error) {
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

// Unoffered returns a warning if an agent is in neither its asking mode nor a stricter mode. Such an agent does not
// offer its asking mode. If the caller wanted a certain mode, Unoffered returns nil.
func Unoffered(asking provider.Asking, want, mode string) *message.Text {
	if want != "" || asking.Mode == "" || mode == asking.Mode || slices.Contains(asking.Stricter, mode) {
		return nil
	}
	return modeNotOffered.With(asking.Mode)
}

// ModeNone is the choice of no mode: the agent stays in its first mode.
const ModeNone = "none"

func hasMode(s *provider.Session, id string) bool {
	return s.Modes != nil && slices.ContainsFunc(s.Modes.AvailableModes,
		func(m acp.SessionMode) bool { return string(m.Id) == id })
}

// ModeName returns the agent's name for a mode, because an id may be unreadable, such as a URL. ModeName returns the id
// if both say the same, such as "Accept Edits" and acceptEdits.
func ModeName(modes []acp.SessionMode, id string) string {
	letters := func(s string) string { return strings.NewReplacer(" ", "", "-", "", "_", "").Replace(s) }
	for _, m := range modes {
		if string(m.Id) == id && m.Name != "" && !strings.EqualFold(letters(m.Name), letters(id)) {
			return m.Name
		}
	}
	return id
}

// CheckMode returns an error if the agent does not have the mode. The error lists the agent's modes.
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
		return &OfferError{noModes.With(id)}
	}
	return &OfferError{noMode.With(id, strings.Join(names, ", "))}
}

func hasOption(s *provider.Session, id string) bool {
	return slices.ContainsFunc(s.Options, func(o acp.SessionConfigOption) bool {
		return o.Select != nil && string(o.Select.Id) == id || o.Boolean != nil && string(o.Boolean.Id) == id
	})
}

// CheckOption returns an error if the agent does not have the option or the option does not have the value.
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
		return &OfferError{noValue.With(id, value, strings.Join(values, ", "))}
	}
	if len(ids) == 0 {
		return &OfferError{noOptions.With(id)}
	}
	return &OfferError{noOption.With(id, strings.Join(ids, ", "))}
}

// ModelOption returns the id of the option that chooses the agent's model. It returns an error if the option does not
// have the value model.
func ModelOption(s *provider.Session, model string) (string, error) {
	if o := ModelSelect(s.Options); o != nil {
		values := OptionValues(o.Options)
		if s.AnyModel || slices.Contains(values, model) {
			return string(o.Id), nil
		}
		return "", &OfferError{noModel.With(model, strings.Join(values, ", "))}
	}
	return "", &OfferError{noModels.With(model)}
}

// DescribeOption returns the id, the name, the present value and the possible values of an option.
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

// ModelSelect returns the option that chooses the model, or nil. An agent may have several options of the category
// "model", for example one for the company that runs the models. So the id "model" wins.
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

// OptionValues returns the possible values of an option.
func OptionValues(o acp.SessionConfigSelectOptions) []string {
	var values []string
	for _, v := range provider.OptionValues(o) {
		values = append(values, string(v.Value))
	}
	return values
}
