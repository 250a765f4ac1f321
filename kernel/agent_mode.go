package kernel

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/coder/acp-go-sdk"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/message"
	"github.com/perlica/perlica/kernel/agents"
	"github.com/perlica/perlica/kernel/fact"
)

// A modeWatch finds the changes of the agent's mode that nobody requested.
type modeWatch struct {
	open    bool     // true after the session was opened and its mode was chosen
	now     string   // the chosen mode, or the mode that the agent reported last
	chosen  bool     // true if a person chose the mode in this conversation
	expect  string   // the mode that Perlica or the client is choosing; the agent may report it before it answers
	between []string // the modes to which the agent changed between two turns
}

// presentMode returns the mode that the agent reported last. Some agents offer their modes as a config option, and then
// the option's value is the mode. The caller holds mu.
func (s *agentSession) presentMode() string {
	for _, o := range s.state.Options {
		if s.session != nil && s.session.ModeOption != "" && o.Select != nil && string(o.Select.Id) == s.session.ModeOption {
			return string(o.Select.CurrentValue)
		}
	}
	return s.state.Mode
}

// presentModeNow is presentMode for a caller that does not hold mu.
func (s *agentSession) presentModeNow() string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.presentMode()
}

// expectMode announces the mode that Perlica or the client is choosing now. Without this, watchMode would take the
// agent's report of the mode for a change without a request.
func (s *agentSession) expectMode(mode string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.modes.expect, s.modes.chosen = mode, true
}

// watchMode compares the mode that the agent reports with its previous mode. If the agent changed the mode during the
// turn without a request, watchMode returns both modes. The caller holds mu.
func (s *agentSession) watchMode() (from, to string) {
	from, to = s.modes.now, s.presentMode()
	if s.modes.now = to; !s.modes.open || to == from || to == "" || to == s.modes.expect {
		return "", ""
	}
	if s.client == nil {
		s.modes.between = append(s.modes.between, to)
		return "", ""
	}
	return from, to
}

// modeChosen reports whether a person, the configuration or the registry chose the agent's mode. The caller
// holds mu.
func (s *agentSession) modeChosen() bool {
	asking := s.setup.Agent.Asking
	return s.modes.chosen || s.setup.Mode != agents.ModeNone &&
		(s.setup.Mode != "" || asking.Mode != "" || asking.Option != "")
}

// modesBetweenTurns returns events for the changes of the mode since the last turn, and forgets these changes.
func (s *agentSession) modesBetweenTurns() (events []event.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, to := range s.modes.between {
		events = append(events, event.NewFact(event.PolicyUnasked, "agent", s.base,
			fact.NewUnaskedTool(modeTool(agents.ModeName(s.state.Modes, to)), whyModeChanged)))
	}
	s.modes.between = nil
	return events
}

// modeTool describes a change to the mode as a completed tool call.
func modeTool(to string) fact.ToolSeen {
	return fact.ToolSeen{Title: "mode " + to, Kind: string(acp.ToolKindSwitchMode),
		Status: string(acp.ToolCallStatusCompleted)}
}

// otherModeName returns the agent's name for a mode. It returns "" if the name says the same as the id.
func (s *agentSession) otherModeName(id string) string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if name := agents.ModeName(s.state.Modes, id); name != id {
		return name
	}
	return ""
}

// Offers holds the modes, options and commands that an agent offers in its session, and the present choices.
type Offers struct {
	Mode     string // the id of the present mode
	Modes    []acp.SessionMode
	Options  []acp.SessionConfigOption
	Commands []acp.AvailableCommand
	Asking   []string // the configured mode, the asking mode and the stricter modes, if offered
	// Lost holds a sentence for each earlier choice that could not be made again.
	Lost []*message.Text
}

// enterState stores the offers of the session that was just opened.
func (s *agentSession) enterState() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m := s.session.Modes; m != nil {
		s.state.Mode, s.state.Modes = string(m.CurrentModeId), m.AvailableModes
	}
	if s.state.Options == nil {
		s.state.Options = s.session.Options
	}
}

// applyChoice stores the choice of the mode, and takes over the options of the session. If mode is empty, the mode does
// not change.
func (s *agentSession) applyChoice(mode string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if mode != "" {
		s.state.Mode = mode
	}
	s.state.Options = s.session.Options
	s.modes.now, s.modes.expect, s.modes.open = s.presentMode(), "", true
}

// offers returns a copy of the agent's present offers.
func (s *agentSession) offers() Offers {
	s.mu.RLock()
	defer s.mu.RUnlock()
	st := s.state
	st.Mode, st.Lost = s.presentMode(), s.lost
	a := s.setup.Agent
	for _, id := range append([]string{a.Mode, a.Asking.Mode}, a.Asking.Stricter...) {
		offered := slices.ContainsFunc(st.Modes, func(m acp.SessionMode) bool { return string(m.Id) == id })
		if offered && !slices.Contains(st.Asking, id) {
			st.Asking = append(st.Asking, id)
		}
	}
	st.Modes, st.Options, st.Commands = slices.Clone(st.Modes), slices.Clone(st.Options), slices.Clone(st.Commands)
	return st
}

// Models returns the id of the option that chooses a model, the possible values, and the present value. The id is empty
// if the agent has no such option.
func (o Offers) Models() (id string, values []string, now string) {
	if opt := agents.ModelSelect(o.Options); opt != nil {
		return string(opt.Id), agents.OptionValues(opt.Options), string(opt.CurrentValue)
	}
	return "", nil, ""
}

// earlierChoices returns the mode and the model for the new session. An earlier choice wins over the setup's mode if
// the agent still offers it. The earlier model is used only if the setup names no model.
func (s *agentSession) earlierChoices() (mode, model string) {
	mode, model = s.setup.Mode, s.setup.Model
	if e := s.setup.Earlier.Mode; e != "" {
		if agents.CheckMode(s.session, e) == nil {
			mode = e
		} else {
			s.lost = append(s.lost, modeGone.With(cmp.Or(s.setup.Earlier.ModeName, e)))
		}
	}
	if e := s.setup.Earlier.Model; e != "" && model == "" {
		if _, err := agents.ModelOption(s.session, e); err == nil {
			model = e
		} else {
			s.lost = append(s.lost, modelGone.With(e))
		}
	}
	return mode, model
}

// chooseOptions repeats the earlier choices of config options. If the agent refuses one, chooseOptions adds a sentence
// to lost.
func (s *agentSession) chooseOptions(ctx context.Context) {
	for _, id := range slices.Sorted(maps.Keys(s.setup.Earlier.Options)) {
		value := s.setup.Earlier.Options[id]
		err := agents.CheckOption(s.session, id, value)
		if err == nil {
			err = s.session.SetOption(ctx, id, value)
		}
		if err != nil {
			s.lost = append(s.lost, optionGone.With(id, value, err))
			continue
		}
		s.options[id] = value
	}
}

// extendSetup adds the setup's texts, directories and servers to the agent's session. If the agent cannot use one of
// them, the error is an *InputError. The prompt would otherwise reach another session than the requested one.
func (s *agentSession) extendSetup() error {
	refuse := func(what string) error {
		return &InputError{fmt.Errorf("%s does not take %s: nothing was sent", s.setup.Agent.ID, what)}
	}
	if text := s.setup.Append; text != "" && !s.conn.AppendSystem(text, s.setup.Agent.TakesAppend(s.info.AgentInfo)) {
		return refuse("a text for its system prompt")
	}
	if dirs := s.setup.AddDirs; len(dirs) > 0 && !s.conn.AddDirectories(dirs) {
		return refuse("further directories")
	}
	can := s.info.AgentCapabilities.McpCapabilities
	servers := slices.Clone(s.setup.Servers)
	for _, extra := range s.setup.Extra {
		switch {
		case s.setup.Agent.Model:
			return refuse("MCP servers, as a model without tools")
		case extra.Http != nil && !can.Http:
			return refuse("MCP servers over http")
		case extra.Sse != nil && !can.Sse:
			return refuse("MCP servers over sse")
		}
		servers = slices.DeleteFunc(servers, func(m acp.McpServer) bool { return serverName(m) == serverName(extra) })
		servers = append(servers, extra)
	}
	s.setup.Servers = servers
	return nil
}

func serverName(m acp.McpServer) string {
	switch {
	case m.Http != nil:
		return m.Http.Name
	case m.Sse != nil:
		return m.Sse.Name
	}
	return cmp.Or(m.Stdio, &acp.McpServerStdio{}).Name
}
