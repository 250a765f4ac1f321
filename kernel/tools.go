package kernel

import (
	"bytes"
	"context"
	"path/filepath"
	"slices"
	"sync"

	"github.com/coder/acp-go-sdk"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/message"
	"github.com/perlica/perlica/interaction"
	"github.com/perlica/perlica/kernel/agents"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/policy"
	"github.com/perlica/perlica/policy/shell"
	"github.com/perlica/perlica/provider"
	"github.com/perlica/perlica/provider/sandbox"
)

// toolSeen is a tool call with everything that was reported of it.
type toolSeen struct {
	fact.ToolSeen
	call     provider.ToolCall
	wasAsked bool
	refused  bool
	declined bool              // a question about it was refused before anyone could be asked
	begun    bool              // it was reported to be under way or completed
	approved []asking          // the questions about it with the answer yes
	ran      []policy.ToolCall // the different forms in which it was reported to run
	crowded  bool              // more forms came than maxForms
}

// maxForms is the number of forms of one tool call that are compared with the approved ones.
const maxForms = 1000

func (s *toolSeen) mergeReport(t provider.ToolCall) {
	if t.Title != "" {
		s.Title, s.call.Title = t.Title, t.Title
	}
	if t.Kind != "" {
		s.Kind, s.call.Kind = string(t.Kind), t.Kind
	}
	if t.Status != "" {
		s.Status = string(t.Status)
		s.begun = s.begun || t.Status == acp.ToolCallStatusInProgress || t.Status == acp.ToolCallStatusCompleted
	}
	// An unchanged input is kept once.
	if len(t.RawInput) > 0 && string(t.RawInput) != "{}" && !bytes.Equal(t.RawInput, s.call.RawInput) {
		s.call.RawInput = t.RawInput
	}
	if len(t.Content) > 0 {
		s.call.Content = t.Content
	}
	if len(t.Locations) > 0 {
		s.call.Locations = t.Locations
	}
}

// hasRun reports whether the status is that of a started tool.
func hasRun(status string) bool {
	switch acp.ToolCallStatus(status) {
	case acp.ToolCallStatusInProgress, acp.ToolCallStatusCompleted, acp.ToolCallStatusFailed:
		return true
	}
	return false
}

// addForm notes the form in which a tool is reported to run. The caller holds the accumulator's mu.
func (s *toolSeen) addForm(agent speaker) {
	if s.crowded || !hasRun(s.Status) {
		return
	}
	form := callOf(agent, s.call)
	if slices.ContainsFunc(s.ran, func(r policy.ToolCall) bool {
		return r.Title == form.Title && r.Kind == form.Kind && bytes.Equal(r.RawInput, form.RawInput) &&
			slices.Equal(r.Locations, form.Locations) && slices.Equal(r.Diffs, form.Diffs)
	}) {
		return
	}
	if s.crowded = len(s.ran) >= maxForms; !s.crowded {
		s.ran = append(s.ran, form)
	}
}

// speaker names an agent by its provider's id, and by the id of the known agent that it claims to be.
type speaker struct{ provider, known string }

// speaker returns the agent for the reading of the session's tool calls.
func (s *agentSession) speaker() speaker {
	return speaker{s.setup.Agent.ID, s.setup.Agent.Known(s.info.AgentInfo).ID}
}

// speaker returns the agent for the reading of the turn's tool calls. Before the agent has named itself, its
// id decides.
func (c *client) speaker() speaker {
	if c.run.agent == nil {
		return speaker{c.run.t.Agent.ID, c.run.t.Agent.ID}
	}
	return c.run.agent.speaker()
}

// callOf converts a tool call for policy.
func callOf(agent speaker, call provider.ToolCall) policy.ToolCall {
	out := policy.ToolCall{Provider: agent.provider, Agent: agent.known, Kind: string(call.Kind), Title: call.Title,
		RawInput: call.RawInput}
	for _, l := range call.Locations {
		out.Locations = append(out.Locations, l.Path)
	}
	for _, t := range call.Content {
		switch {
		case t.Type == "diff":
			out.Diffs = append(out.Diffs, policy.Diff{Path: t.Path, Old: t.OldText, New: t.NewText})
		case t.Text != "" && len(t.Text) < 4096: // longer text is output
			out.Text = append(out.Text, t.Text)
		}
	}
	return out
}

// judgeTools finds the tool calls that needed a question and had none.
func (c *client) judgeTools() {
	standing := sync.OnceValues(c.run.r.approvals) // many tools share it, and most runs do not need it
	place := c.place()
	var unasked []fact.UnaskedTool
	always := sync.OnceValue(func() []interaction.Question { return c.run.r.allowedForGood(c.run.refs.Session) })
	for _, t := range c.sums.listTools() {
		why := c.unasked(t, place)
		if why == nil {
			continue
		}
		u := fact.NewUnaskedTool(t.ToolSeen, why)
		if !t.wasAsked {
			req := c.readTool(t.call, nil, place).Request
			if list, err := standing(); err == nil && c.covered(list, req) {
				continue
			}
			u.FreedBy = freedBy(always(), req)
		}
		if u.FreedBy != "" {
			why = whyFreed
			if failed(t) {
				why = whyTriedFreed
			}
			u.Why, u.Coded = why.Text, why.Coded
		}
		unasked = append(unasked, u)
	}
	c.sums.setUnasked(unasked)
}

// covered reports whether a standing yes covers a request that was never made.
func (c *client) covered(standing []policy.Approval, req policy.Request) bool {
	return slices.ContainsFunc(standing, func(a policy.Approval) bool {
		return a.Effect == policy.Allow && a.Covers(req, c.sums.now())
	})
}

// unasked returns the reason why a tool call needed a question that was not asked, or nil.
func (c *client) unasked(t toolSeen, place shell.Place) *message.Text {
	switch {
	case (t.refused || t.declined && len(t.approved) == 0) && t.Status == string(acp.ToolCallStatusCompleted):
		return whyRefusedRan
	case t.crowded:
		return whyCrowded.With(maxForms)
	case t.wasAsked && len(t.approved) > 0:
		var approved []policy.Request
		for _, a := range t.approved {
			approved = append(approved, c.reading(a).Request)
		}
		for _, form := range t.ran {
			if what := policy.Differs(approved, form, place); what != nil {
				return whyOtherThanAllowed.With(what)
			}
		}
		return nil
	case t.wasAsked, !hasRun(t.Status) && len(t.ran) == 0, t.declined && !t.begun:
		return nil
	}
	switch {
	case !acts(c.readTool(t.call, nil, place).Request):
		return nil
	case failed(t):
		return whyTried
	}
	return whyRan
}

// failed reports whether the agent says that the tool call failed. A failed call may have had effects.
func failed(t toolSeen) bool { return t.Status == string(acp.ToolCallStatusFailed) }

// acts reports whether a tool call does more than read. If the kind does not tell, the content decides.
// Content that policy cannot read counts as an act.
func acts(r policy.Request) bool {
	switch acp.ToolKind(r.Kind) {
	case acp.ToolKindExecute, acp.ToolKindEdit, acp.ToolKindDelete, acp.ToolKindMove:
		return true
	case acp.ToolKindRead, acp.ToolKindSearch, acp.ToolKindThink, acp.ToolKindFetch:
		// Some agents report commands as reads and run them without a question.
		return r.Changes || len(r.Commands) > 0 && (r.Tier() != shell.Ordinary || r.Writes())
	case acp.ToolKindSwitchMode:
		return r.Tier() != shell.Ordinary
	}
	known := func(f policy.Field) bool { return f.Role != policy.Unread && f.Role != policy.Grave }
	return len(r.Commands) > 0 || len(r.Paths) > 0 || r.HasCommand ||
		!slices.ContainsFunc(r.Fields, known) || slices.ContainsFunc(r.Fields, func(f policy.Field) bool { return !known(f) })
}

// allowedForGood returns the questions of a session to which a person said yes for good.
func (r *Runner) allowedForGood(session event.SessionID) (list []interaction.Question) {
	ctx := context.Background()
	for e, err := range r.log.Events(ctx, event.Query{Session: session, Types: []event.Type{event.InteractionAnswered}}) {
		if err != nil {
			r.opt.Trail.Warn("questions of the session", "error", err.Error())
			return list
		}
		a, err := fact.Decode[interaction.Answer](e)
		if err != nil {
			continue
		}
		q, err := interaction.Find(ctx, &r.log.Reader, e.Interaction)
		if err == nil && slices.ContainsFunc(q.Options, func(o interaction.Option) bool {
			return o.ID == a.Option && o.Kind == string(acp.PermissionOptionKindAllowAlways)
		}) {
			list = append(list, q)
		}
	}
	return list
}

// freedBy returns the id of the question with a yes for good that also freed this request. The commands are of
// the same programs, and the request is not graver than that question.
func freedBy(always []interaction.Question, req policy.Request) event.InteractionID {
	for _, q := range always {
		then := policy.Request{Place: req.Place}
		for _, text := range q.Subject.Commands {
			then.Commands = append(then.Commands, shell.Command{Text: text})
		}
		if q.Subject.Provider == req.Provider && q.Subject.Kind == req.Kind &&
			req.SamePrograms(then) && !req.Tier().Above(shell.Tier(q.Subject.Tier)) {
			return q.ID
		}
	}
	return ""
}

// switchedMode notes that the agent changed its mode. The change is unasked unless an answer of this turn
// allowed the mode.
func (c *client) switchedMode(from, to string, modes []acp.SessionMode, chosen bool) {
	name := agents.ModeName(modes, to)
	why := whyModeChanged
	if from != "" {
		why = whyModeChangedFrom.With(agents.ModeName(modes, from))
	}
	if c.sums.switchMode(to, fact.NewUnaskedTool(modeTool(name), why)) && chosen {
		c.warn("mode_changed", otherMode.With(name))
	}
}

// readTool reads a tool call for policy and for the question.
func (c *client) readTool(call provider.ToolCall, options []acp.PermissionOption, place shell.Place) policy.Reading {
	read := policy.ReadToolCall(callOf(c.speaker(), call), place)
	req := &read.Request
	req.Session = string(c.run.refs.Session)
	req.Agent, _ = shell.Words(c.run.t.Agent.Command)
	for _, o := range options {
		req.Options = append(req.Options, policy.Option{ID: string(o.OptionId), Name: o.Name, Kind: string(o.Kind)})
	}
	return read
}

// asking is a question of the agent with the inputs of its reading. The reading repeats most of the question's
// bytes, so it is computed each time and not kept.
type asking struct {
	// Tool is the whole call, with everything that was reported before.
	*provider.PermissionRequest
	place shell.Place
	// dirs are the directories in which the commands start, if only the announcement named them.
	dirs []string
}

// reading returns the same result each time. It depends only on a and on the agent's name.
func (c *client) reading(a asking) policy.Reading {
	read := c.readTool(a.Tool, unambiguous(a.Options), a.place)
	for i, dir := range a.dirs {
		if dir != "" {
			read.Request.Commands[i].Dir = dir
			read.Request.Paths = append(read.Request.Paths, dir)
		}
	}
	return read
}

// startsWhere returns the directory of each command, if only the earlier announcement of the call names it.
func startsWhere(req, announced policy.Request) []string {
	dirs := make([]string, len(req.Commands))
	for i, cmd := range req.Commands {
		for _, before := range announced.Commands {
			dir := before.Dir
			if before.Dir = ""; cmd.Dir == "" && dir != "" && before.SameText(cmd) {
				dirs[i] = dir
				break
			}
		}
	}
	return dirs
}

// place returns the agent's directories with resolved links, because policy reads no disk for them.
func (c *client) place() shell.Place { return c.run.r.place(c.run.t.Setup) }

func (r *Runner) place(s Setup) shell.Place {
	p := shell.Place{Dir: realDir(s.Dir), Home: realDir(s.Home)}
	if box := s.Agent.Sandbox; box != nil {
		p.Sandboxed = sandbox.Stricter(box.Mode, sandbox.Project) == box.Mode
	}
	for _, t := range s.Temp {
		p.Temp = append(p.Temp, realDir(t))
	}
	for _, o := range r.opt.Own {
		p.Own = append(p.Own, realDir(o))
	}
	return p
}

func realDir(dir string) string {
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		return real
	}
	return dir
}
