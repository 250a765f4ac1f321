package command

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/perlica/perlica/kernel/agents"
	"github.com/perlica/perlica/kernel/report"
)

var errNotYet = errors.New("the agent has not opened its session yet; it says what it offers when it has answered an input")

func (h *Host) provider(_ context.Context, args []string) (Output, error) {
	if len(args) > 1 {
		return Output{}, errUsage
	}
	if len(args) == 1 {
		a, err := h.Agents.Named(args[0])
		if err != nil {
			return Output{}, err
		}
		return Output{Effect: Switch, Provider: a.ID}, nil
	}
	var b strings.Builder
	for _, l := range h.Agents.List() {
		list(&b, false, l.ID, string(l.State))
	}
	return Output{Text: b.String()}, nil
}

func (h *Host) mode(ctx context.Context, args []string) (Output, error) {
	if len(args) > 1 {
		return Output{}, errUsage
	}
	if len(args) == 1 {
		if err := h.Conversation.SetMode(ctx, args[0]); err != nil {
			return Output{}, err
		}
		return Output{Text: "The agent is in the mode `" + args[0] + "`."}, nil
	}
	o, _, ok := h.offers()
	if !ok {
		return Output{}, errNotYet
	}
	var b strings.Builder
	for _, m := range o.Modes {
		text := m.Name
		if m.Description != nil {
			text = *m.Description
		}
		list(&b, string(m.Id) == o.Mode, string(m.Id), text)
	}
	if b.Len() == 0 {
		return Output{Text: "The agent has no modes."}, nil
	}
	return Output{Text: b.String()}, nil
}

func (h *Host) model(ctx context.Context, args []string) (Output, error) {
	if len(args) > 1 {
		return Output{}, errUsage
	}
	if len(args) == 1 {
		if err := h.Conversation.SetModel(ctx, args[0]); err != nil {
			return Output{}, err
		}
		return Output{Text: "The agent uses the model `" + args[0] + "`."}, nil
	}
	if h.Conversation != nil {
		if err := h.Conversation.ListModels(ctx); err != nil {
			return Output{}, err
		}
	}
	o, _, ok := h.offers()
	if !ok {
		return Output{}, errNotYet
	}
	id, values, now := o.Models()
	if id == "" {
		return Output{Text: "The agent lets no one choose a model."}, nil
	}
	var b strings.Builder
	for _, v := range values {
		list(&b, v == now, v, "")
	}
	return Output{Text: b.String()}, nil
}

func (h *Host) option(ctx context.Context, args []string) (Output, error) {
	switch len(args) {
	case 0:
	case 2:
		if err := h.Conversation.SetOption(ctx, args[0], args[1]); err != nil {
			return Output{}, err
		}
		return Output{Text: fmt.Sprintf("`%s` is `%s`.", args[0], args[1])}, nil
	default:
		return Output{}, errUsage
	}
	o, _, ok := h.offers()
	if !ok {
		return Output{}, errNotYet
	}
	var b strings.Builder
	for _, opt := range o.Options {
		switch {
		case opt.Select != nil:
			values := agents.OptionValues(opt.Select.Options)
			for i, v := range values {
				if v == string(opt.Select.CurrentValue) {
					values[i] += " (now)"
				}
			}
			list(&b, false, string(opt.Select.Id), opt.Select.Name+": "+strings.Join(values, ", "))
		case opt.Boolean != nil:
			list(&b, false, string(opt.Boolean.Id), fmt.Sprintf("%s: %t", opt.Boolean.Name, opt.Boolean.CurrentValue))
		}
	}
	if b.Len() == 0 {
		return Output{Text: "The agent has no options."}, nil
	}
	return Output{Text: b.String()}, nil
}

func (h *Host) policy(ctx context.Context, args []string) (Output, error) {
	approvals, err := h.Runner.Approvals(ctx)
	if err != nil {
		return Output{}, err
	}
	switch {
	case len(args) == 2 && args[0] == "revoke":
		a, err := report.FindApproval(approvals, args[1])
		if err != nil {
			return Output{}, err
		}
		if err := h.Runner.RevokeApprovals(ctx, append(approvals[:0:0], a), h.By); err != nil {
			return Output{}, err
		}
		return Output{Text: "Taken back: " + a.String()}, nil
	case len(args) > 0:
		return Output{}, errUsage
	case len(approvals) == 0:
		return Output{Text: "There are no standing approvals."}, nil
	}
	var b strings.Builder
	for _, a := range approvals {
		list(&b, false, short(a.ID), fmt.Sprintf("%s %s, by %s", a.Effect, a, a.By))
	}
	return Output{Text: b.String()}, nil
}
