package kernel

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/coder/acp-go-sdk"

	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/provider"
)

// choose puts a session into a mode and a model. Where mode is empty it is the one in which
// the agent asks.
func choose(ctx context.Context, s *provider.Session, asking provider.Asking, want, model string) (mode string, options map[string]string, err error) {
	if s.Modes != nil {
		mode = string(s.Modes.CurrentModeId)
	}
	options = map[string]string{}
	if want != "" {
		asking = provider.Asking{}
		if want != ModeNone {
			if err := checkMode(s, want); err != nil {
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
		id, err := modelOption(s, model)
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

// checkMode refuses a mode that the agent does not have; its names are in the error.
func checkMode(s *provider.Session, id string) error {
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
		return &InputError{fmt.Errorf("the agent has no modes, so it cannot be put into %q", id)}
	}
	return &InputError{fmt.Errorf("the agent has no mode %q; it has %s", id, strings.Join(names, ", "))}
}

func hasOption(s *provider.Session, id string) bool {
	return slices.ContainsFunc(s.Options, func(o acp.SessionConfigOption) bool {
		return o.Select != nil && string(o.Select.Id) == id || o.Boolean != nil && string(o.Boolean.Id) == id
	})
}

// checkOption refuses an option, or a value of it, that the agent does not have.
func checkOption(s *provider.Session, id, value string) error {
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
			return &InputError{fmt.Errorf("the agent's option %q has no value %q; it has %s", id, value, strings.Join(values, ", "))}
		}
	}
	if len(ids) == 0 {
		return &InputError{fmt.Errorf("the agent has no options, so %q cannot be set", id)}
	}
	return &InputError{fmt.Errorf("the agent has no option %q to choose a value of; it has %s", id, strings.Join(ids, ", "))}
}

// modelOption finds the config option by which the agent's model is chosen and checks
// that the model is among its values.
func modelOption(s *provider.Session, model string) (string, error) {
	for _, o := range s.Options {
		if o.Select == nil || !isModelOption(o.Select) {
			continue
		}
		values := OptionValues(o.Select.Options)
		if slices.Contains(values, model) {
			return string(o.Select.Id), nil
		}
		return "", &InputError{fmt.Errorf("the agent has no model %q; it has %s", model, strings.Join(values, ", "))}
	}
	return "", &InputError{fmt.Errorf("the agent lets nobody choose a model, so it cannot use %q", model)}
}

func isModelOption(o *acp.SessionConfigOptionSelect) bool {
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

// blocks is what the agent is asked: the system text and the transcript where they
// belong, then the input's text, then its attachments.
func (run *run) blocks(ctx context.Context, files []file) ([]acp.ContentBlock, *fact.Truncated, error) {
	var blocks []acp.ContentBlock
	var cut *fact.Truncated
	first := !run.agent.fed && !run.agent.how.native() // the agent knows nothing yet
	if first && run.t.System != "" {
		blocks = append(blocks, acp.TextBlock(run.t.System))
	}
	if first && !run.created {
		h, err := run.r.history(ctx, run.refs.Session, run.refs.Run, run.t.Budget)
		if err != nil {
			return nil, nil, err
		}
		if text := h.transcript(); text != "" {
			blocks = append(blocks, acp.TextBlock(text))
		}
		if h.dropped > 0 || h.gone > 0 {
			cut = &fact.Truncated{Kept: len(h.turns), Dropped: h.dropped, Gone: h.gone, Budget: run.t.Budget, Estimate: h.tokens}
		}
	}
	blocks = append(blocks, acp.TextBlock(run.t.Input.Text))
	for _, f := range files {
		blocks = append(blocks, run.attachment(f))
	}
	return blocks, cut, nil
}

// attachment makes of a file what the agent can take: an image, an embedded text, else a
// link.
func (run *run) attachment(f file) acp.ContentBlock {
	can := run.agent.info.AgentCapabilities.PromptCapabilities
	mime := http.DetectContentType(f.data)
	switch {
	case f.data == nil:
	case can.Image && strings.HasPrefix(mime, "image/"):
		return acp.ImageBlock(base64.StdEncoding.EncodeToString(f.data), mime)
	case can.EmbeddedContext && utf8.Valid(f.data):
		return acp.ResourceBlock(acp.EmbeddedResourceResource{TextResourceContents: &acp.TextResourceContents{Uri: f.uri, Text: string(f.data)}})
	}
	return acp.ResourceLinkBlock(f.name, f.uri)
}
