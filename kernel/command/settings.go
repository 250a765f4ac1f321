package command

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/perlica/perlica/kernel"
	"github.com/perlica/perlica/kernel/agents"
	"github.com/perlica/perlica/kernel/report"
	"github.com/perlica/perlica/kernel/sessions"
)

// offered waits until the agent has opened its session, and returns the agent's offers.
func (h *Host) offered(ctx context.Context) (kernel.Offers, error) {
	if err := h.Conversation.Await(ctx); err != nil {
		return kernel.Offers{}, err
	}
	o, _, ok := h.offers()
	if !ok {
		return o, agentEnded
	}
	return o, nil
}

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
		h.writeItem(&b, false, l.ID, h.say().Word(string(l.State)))
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
		o, _, _ := h.offers()
		return Output{Text: fmt.Sprintf(h.say().InMode, agents.ModeName(o.Modes, args[0]))}, nil
	}
	o, err := h.offered(ctx)
	if err != nil {
		return Output{}, err
	}
	var b strings.Builder
	for _, m := range o.Modes {
		text := m.Name
		if called := agents.ModeName(o.Modes, string(m.Id)); m.Description != nil && called == string(m.Id) {
			text = *m.Description
		} else if m.Description != nil {
			text = called + ": " + *m.Description
		}
		h.writeItem(&b, string(m.Id) == o.Mode, string(m.Id), text)
	}
	if b.Len() == 0 {
		return Output{Text: h.say().NoModes}, nil
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
		return Output{Text: fmt.Sprintf(h.say().UsesModel, args[0])}, nil
	}
	if err := h.Conversation.ListModels(ctx); err != nil {
		return Output{}, err
	}
	o, err := h.offered(ctx)
	if err != nil {
		return Output{}, err
	}
	id, values, now := o.Models()
	if id == "" {
		return Output{Text: h.say().NoModels}, nil
	}
	var b strings.Builder
	for _, v := range values {
		h.writeItem(&b, v == now, v, "")
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
		return Output{Text: fmt.Sprintf(h.say().OptionIs, args[0], args[1])}, nil
	default:
		return Output{}, errUsage
	}
	o, err := h.offered(ctx)
	if err != nil {
		return Output{}, err
	}
	var b strings.Builder
	for _, opt := range o.Options {
		id, name, now, values := agents.DescribeOption(opt)
		for i, v := range values {
			if v == now {
				values[i] += h.say().Now
			}
		}
		h.writeItem(&b, false, id, name+": "+strings.Join(values, ", "))
	}
	if b.Len() == 0 {
		return Output{Text: h.say().NoOptions}, nil
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
		return Output{Text: fmt.Sprintf(h.say().Revoked, h.say().Say(a.Subject()))}, nil
	case len(args) > 0:
		return Output{}, errUsage
	case len(approvals) == 0:
		return Output{Text: h.say().NoApprovals}, nil
	}
	var b strings.Builder
	for _, a := range approvals {
		h.writeItem(&b, false, short(a.ID), fmt.Sprintf(h.say().ApprovalBy, h.say().Word(string(a.Effect)),
			h.say().Say(a.Subject()), a.By))
	}
	return Output{Text: b.String()}, nil
}

func (h *Host) status(ctx context.Context, _ []string) (Output, error) {
	o, err := h.offered(ctx)
	if err != nil {
		return Output{}, err
	}
	var b strings.Builder
	say := h.say()
	err = h.viewSessions(ctx, func(v *sessions.View) error {
		s, err := v.Find(ctx, string(h.Conversation.Session()))
		if errors.Is(err, sessions.ErrNoSession) { // the session has no turn yet
			s, err = sessions.Session{Provider: h.Conversation.Provider()}, nil
		}
		h.writeItem(&b, false, string(h.Conversation.Session()), say.TheSession+h.about(s))
		return err
	})
	if err != nil {
		return Output{}, err
	}
	h.writeItem(&b, false, h.Conversation.Provider(), say.ItsAgent)
	if _, _, model := o.Models(); model != "" {
		h.writeItem(&b, false, model, say.ItsModel)
	}
	if o.Mode != "" {
		h.writeItem(&b, false, agents.ModeName(o.Modes, o.Mode), say.ItsMode)
	}
	open, err := h.openQuestions(ctx)
	if err != nil {
		return Output{}, err
	}
	h.writeItem(&b, false, h.Workspace.Root, say.TheProject)
	h.writeItem(&b, false, h.Runner.Log().Path(), say.TheLog)
	if len(open) > 0 {
		fmt.Fprintf(&b, say.QuestionsWait, len(open))
	}
	return Output{Text: b.String()}, nil
}

// compact answers /compact if the agent has no command with this name.
func (h *Host) compact(context.Context, []string) (Output, error) {
	return Output{}, noCompact
}
