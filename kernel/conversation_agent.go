package kernel

import (
	"context"
	"errors"
	"maps"
	"time"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/kernel/agents"
)

// keptAgent is the agent session of a conversation. It exists as soon as the agent begins to start.
type keptAgent struct {
	*agentSession
	cancel context.CancelFunc // cancels the start
	ready  chan struct{}      // closed after err was set
	err    error              // the error of the start, or nil
}

// beginAgent returns the present agent, or starts one. The caller holds turnMu.
func (c *Conversation) beginAgent() (*keptAgent, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, ErrConversationClosed
	}
	if c.resting != nil {
		c.resting.Stop()
	}
	if c.agent != nil {
		return c.agent, nil
	}
	if err := c.RecordSession(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	l := &keptAgent{
		agentSession: newAgentSession(c.r, c.setup, event.Refs{Session: c.setup.Session}, nil),
		cancel:       cancel,
		ready:        make(chan struct{}),
	}
	c.agent = l
	go func() { // dropAgent waits until this goroutine has closed ready
		if l.err = l.startProcess(); l.err == nil {
			l.err = l.prepareSession(ctx, strategyKeep)
		}
		if l.err == nil {
			c.watches.Go(func() { c.watchAgent(l) }) // before ready is closed: Close waits for ready first
		}
		close(l.ready)
		if l.err == nil && c.turnMu.TryLock() { // otherwise an input holds turnMu, and its turn calls afterTurn
			c.afterTurn(ctx, l)
			c.turnMu.Unlock()
		}
	}()
	return l, nil
}

// Lost sets a function that is called when an idle agent ends by itself. The next input starts a new agent, which
// continues the session. The function f runs in its own goroutine and must not call methods of the conversation.
func (c *Conversation) Lost(f func(error)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lost = f
}

// watchAgent waits for the end of an agent and drops the agent, unless it was dropped before.
func (c *Conversation) watchAgent(l *keptAgent) {
	<-l.conn.Gone()
	c.turnMu.Lock()
	defer c.turnMu.Unlock()
	c.mu.Lock()
	mine, lost := c.agent == l, c.lost
	c.mu.Unlock()
	if !mine {
		return
	}
	why := l.conn.Err()
	c.dropAgent(context.Background(), l)
	if lost != nil {
		lost(why)
	}
}

// dropGone drops an agent that has ended. The caller then starts another one, which continues the session. The caller
// holds turnMu.
func (c *Conversation) dropGone(ctx context.Context) {
	l := c.present()
	if l == nil {
		return
	}
	select {
	case <-l.ready:
		if l.err == nil && l.conn.Err() != nil {
			c.dropAgent(ctx, l)
		}
	default: // the agent is being started
	}
}

// afterTurn ends an agent that cannot be used again, or starts the idle timer of the agent.
func (c *Conversation) afterTurn(ctx context.Context, l *keptAgent) {
	if l == nil {
		return
	}
	select {
	case <-l.ready:
	default:
		return // the agent is still being started
	}
	if l.err != nil || l.conn.Err() != nil {
		c.dropAgent(ctx, l)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.idle > 0 && !c.closed {
		c.rested = time.Now()
		c.resting = time.AfterFunc(c.idle, c.endIdle)
	}
}

// endIdle ends an agent after its idle time. It sends no session/close, because the next input continues the agent's
// session.
func (c *Conversation) endIdle() {
	c.turnMu.Lock()
	defer c.turnMu.Unlock()
	c.mu.Lock()
	l, idle := c.agent, time.Since(c.rested) >= c.idle // if not idle, an input has come in between
	c.mu.Unlock()
	if l != nil && idle {
		c.dropAgent(context.Background(), l)
	}
}

// Rest ends the agent now, unless a turn is running. It reports whether no agent runs any more. It sends no
// session/close, because the next input continues the agent's session.
func (c *Conversation) Rest() bool {
	if !c.turnMu.TryLock() {
		return false
	}
	defer c.turnMu.Unlock()
	l := c.present()
	if l != nil {
		c.dropAgent(context.Background(), l)
	}
	return true
}

// dropAgent ends the agent's process. If the agent was dropped before, it does nothing. The caller holds turnMu.
func (c *Conversation) dropAgent(ctx context.Context, l *keptAgent) {
	c.mu.Lock()
	mine := c.agent == l
	if mine {
		c.agent = nil
	}
	c.mu.Unlock()
	if !mine {
		return
	}
	l.cancel()
	<-l.ready
	if l.conn != nil {
		_ = l.endProcess(ctx) // the error is already recorded and changes no outcome
	}
}

// SetMode puts the agent into one of its modes. It waits for a running turn, and starts an agent if necessary. The mode
// applies until the conversation ends. The error is an *InputError if the agent does not offer the mode.
func (c *Conversation) SetMode(ctx context.Context, mode string) error {
	return c.setChoice(ctx, func(ctx context.Context, s *agentSession) error {
		if err := agents.CheckMode(s.session, mode); err != nil {
			return err
		}
		s.expectMode(mode)
		if err := s.session.SetMode(ctx, mode); err != nil {
			return err
		}
		c.setup.Mode, c.setup.Earlier.Mode, c.setup.Earlier.ModeName = mode, mode, s.otherModeName(mode)
		c.keepOption(s.session.ModeOption, "")
		s.applyChoice(mode)
		return c.recordChoice(ctx)
	})
}

// SetModel makes the agent use one of its models. It waits and starts an agent as SetMode does.
func (c *Conversation) SetModel(ctx context.Context, model string) error {
	return c.setChoice(ctx, func(ctx context.Context, s *agentSession) error {
		id, err := agents.ModelOption(s.session, model)
		if err != nil {
			return err
		}
		if err := s.session.SetOption(ctx, id, model); err != nil {
			return err
		}
		c.setup.Model, c.setup.Earlier.Model = model, model
		c.keepOption(id, "")
		return c.recordChoice(ctx)
	})
}

// ListModels makes a model agent ask its API for the list of models, which is not a call. After that, Offers returns
// the list. For other agents it does nothing, because Offers always returns their models.
func (c *Conversation) ListModels(ctx context.Context) error {
	if !c.setup.Agent.Model {
		return nil
	}
	return c.setChoice(ctx, func(ctx context.Context, s *agentSession) error {
		s.listing.Store(true)
		defer s.listing.Store(false)
		return s.session.ListModels(ctx)
	})
}

// SetOption sets one of the agent's config options. It waits and starts an agent as SetMode does.
func (c *Conversation) SetOption(ctx context.Context, id, value string) error {
	return c.setChoice(ctx, func(ctx context.Context, s *agentSession) error {
		if err := agents.CheckOption(s.session, id, value); err != nil {
			return err
		}
		if id == s.session.ModeOption {
			s.expectMode(value)
		}
		if err := s.session.SetOption(ctx, id, value); err != nil {
			return err
		}
		c.keepOption(id, value)
		return c.recordChoice(ctx)
	})
}

// keepOption stores the value of a config option for the agent's next session. If the value is empty, it removes the
// option. The caller holds turnMu.
func (c *Conversation) keepOption(id, value string) {
	options := maps.Clone(c.setup.Earlier.Options)
	delete(options, id)
	if value != "" {
		if options == nil {
			options = map[string]string{}
		}
		options[id] = value
	}
	c.setup.Earlier.Options = options
}

// recordChoice records all choices, so that the agent's next session can repeat them.
func (c *Conversation) recordChoice(ctx context.Context) error {
	_, err := c.r.log.Append(ctx, event.NewFact(event.SessionConfigured, "user", event.Refs{Session: c.setup.Session},
		c.setup.Earlier))
	return err
}

func (c *Conversation) setChoice(ctx context.Context, do func(context.Context, *agentSession) error) error {
	if err := c.turnMu.waitForLock(ctx, nil); err != nil {
		return err
	}
	defer c.turnMu.Unlock()
	if err := errors.Join(c.r.repairLog(ctx), c.forgetAgent(ctx)); err != nil {
		return err
	}
	c.dropGone(ctx)
	l, err := c.beginAgent()
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
