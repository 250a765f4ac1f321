package kernel

import (
	"context"
	"errors"
	"github.com/perlica/perlica/kernel/agents"
	"maps"
)

// SetMode puts the agent into one of its modes, SetModel makes it use a model, and SetOption
// sets one of its config options; each waits for a turn that is under way, and starts an agent
// if there is none. They hold as long as the conversation. An *InputError says that the agent
// offers no such thing.
func (c *Conversation) SetMode(ctx context.Context, mode string) error {
	return c.set(ctx, func(ctx context.Context, s *agentSession) error {
		if err := agents.CheckMode(s.session, mode); err != nil {
			return err
		}
		s.expectMode(mode)
		if err := s.session.SetMode(ctx, mode); err != nil {
			return err
		}
		c.setup.Mode = mode
		c.keep(s.session.ModeOption, "")
		s.applyChoice(mode)
		return nil
	})
}

// SetModel makes the agent use one of its models.
func (c *Conversation) SetModel(ctx context.Context, model string) error {
	return c.set(ctx, func(ctx context.Context, s *agentSession) error {
		id, err := agents.ModelOption(s.session, model)
		if err != nil {
			return err
		}
		if err := s.session.SetOption(ctx, id, model); err != nil {
			return err
		}
		c.setup.Model = model
		c.keep(id, "")
		return nil
	})
}

// SetOption sets one of the agent's config options.
func (c *Conversation) SetOption(ctx context.Context, id, value string) error {
	return c.set(ctx, func(ctx context.Context, s *agentSession) error {
		if err := agents.CheckOption(s.session, id, value); err != nil {
			return err
		}
		if id == s.session.ModeOption {
			s.expectMode(value)
		}
		if err := s.session.SetOption(ctx, id, value); err != nil {
			return err
		}
		c.keep(id, value)
		return nil
	})
}

// keep remembers a value of a config option for the agent's next session; an empty one forgets
// it. The caller holds turns.
func (c *Conversation) keep(id, value string) {
	options := maps.Clone(c.setup.options)
	delete(options, id)
	if value != "" {
		if options == nil {
			options = map[string]string{}
		}
		options[id] = value
	}
	c.setup.options = options
}

func (c *Conversation) set(ctx context.Context, do func(context.Context, *agentSession) error) error {
	if err := c.turns.wait(ctx, nil); err != nil {
		return err
	}
	defer c.turns.Unlock()
	if err := errors.Join(c.r.repair(ctx), c.forget(ctx)); err != nil {
		return err
	}
	c.dropGone(ctx)
	l, err := c.begin()
	if err != nil {
		return err
	}
	select {
	case <-l.ready:
		err = l.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if err == nil {
		err = offered(do(ctx, l.agentSession))
	}
	if err == nil {
		l.applyChoice("")
	}
	c.afterTurn(ctx, l)
	return err
}
