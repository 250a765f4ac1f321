package kernel

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/coder/acp-go-sdk"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/kernel/agents"
	"github.com/perlica/perlica/kernel/fact"
)

// A modeWatch finds the changes of an agent's mode that were not asked for.
type modeWatch struct {
	open    bool     // the session is open and its mode was chosen
	now     string   // the mode as it was chosen, or as the agent last reported it
	chosen  bool     // a person has chosen it in this conversation
	expect  string   // the mode that is being chosen; the agent may report it before it answers
	between []string // to which it changed while no turn was under way
}

// presentMode is the mode that the agent last said it is in. The caller holds mu.
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

// expectMode says that the mode is about to be chosen.
func (s *agentSession) expectMode(mode string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.modes.expect, s.modes.chosen = mode, true
}

// watchMode looks at the mode that the agent has just reported, and returns a change of the
// turn under way. The caller holds mu.
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

// modeChosen says whether a person, the configuration, or what is known of the agent chose its
// mode. The caller holds mu.
func (s *agentSession) modeChosen() bool {
	asking := s.setup.Agent.Asking
	return s.modes.chosen || s.setup.Mode != agents.ModeNone && (s.setup.Mode != "" || asking.Mode != "" || asking.Option != "")
}

// strayModes are the changes of the mode that came after the last turn.
func (s *agentSession) strayModes() (events []event.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, to := range s.modes.between {
		events = append(events, event.NewFact(event.PolicyUnasked, "agent", s.base, fact.UnaskedTool{
			ToolSeen: modeTool(agents.ModeName(s.state.Modes, to)), Why: "the agent changed its mode and nobody was asked",
		}))
	}
	s.modes.between = nil
	return events
}

// modeTool stands for a change of the mode among the tools that ran.
func modeTool(to string) fact.ToolSeen {
	return fact.ToolSeen{Title: "mode " + to, Kind: string(acp.ToolKindSwitchMode), Status: string(acp.ToolCallStatusCompleted)}
}

// otherModeName is what the agent calls a mode, if that is not its id.
func (s *agentSession) otherModeName(id string) string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if name := agents.ModeName(s.state.Modes, id); name != id {
		return name
	}
	return ""
}

// Offers is what an agent offers in its session, and what is chosen.
type Offers struct {
	Mode     string // the present one
	Modes    []acp.SessionMode
	Options  []acp.SessionConfigOption
	Commands []acp.AvailableCommand
	Asking   []string // of the modes those that loosen nothing: in which the agent asks, is to be, or does less
	Lost     []string // what was chosen in the session before and could not be taken up again, in words
}

// enterState takes in what the agent offers.
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

// applyChoice takes in what was chosen; an empty mode is none.
func (s *agentSession) applyChoice(mode string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if mode != "" {
		s.state.Mode = mode
	}
	s.state.Options = s.session.Options
	s.modes.now, s.modes.expect, s.modes.open = s.presentMode(), "", true
}

// offers returns what the agent offers now.
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

// Models returns the id of the option by which a model is chosen, its values and the present
// one; the id is empty if the agent has no such option.
func (o Offers) Models() (id string, values []string, now string) {
	if opt := agents.ModelSelect(o.Options); opt != nil {
		return string(opt.Id), agents.OptionValues(opt.Options), string(opt.CurrentValue)
	}
	return "", nil, ""
}

// earlier is the mode and the model to choose: those of before, if the agent still offers them.
func (s *agentSession) earlier() (mode, model string) {
	mode, model = s.setup.Mode, s.setup.Model
	if e := s.setup.Earlier.Mode; e != "" {
		if agents.CheckMode(s.session, e) == nil {
			mode = e
		} else {
			s.lost = append(s.lost, "the agent offers the mode "+cmp.Or(s.setup.Earlier.ModeName, e)+" no more")
		}
	}
	if e := s.setup.Earlier.Model; e != "" && model == "" {
		if _, err := agents.ModelOption(s.session, e); err == nil {
			model = e
		} else {
			s.lost = append(s.lost, "the agent offers the model "+e+" no more")
		}
	}
	return mode, model
}

// chooseOptions sets again what was chosen in the session before. What the agent offers no more is
// left as it is.
func (s *agentSession) chooseOptions(ctx context.Context) {
	for _, id := range slices.Sorted(maps.Keys(s.setup.Earlier.Options)) {
		value := s.setup.Earlier.Options[id]
		err := agents.CheckOption(s.session, id, value)
		if err == nil {
			err = s.session.SetOption(ctx, id, value)
		}
		if err != nil {
			s.lost = append(s.lost, "the agent's option "+id+" is not "+value+" again: "+err.Error())
			continue
		}
		s.options[id] = value
	}
}

// extend adds to the agent's session what the setup has beside the usual. What the agent does not take is an
// InputError: it would be prompted in another session than was asked for.
func (s *agentSession) extend() error {
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
