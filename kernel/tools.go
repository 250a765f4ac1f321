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

// toolSeen is a tool call with everything that the agent reported about it.
type toolSeen struct {
	fact.ToolSeen
	call     provider.ToolCall
	wasAsked bool
	late     bool // true if the agent asked after it had reported the end of the call
	refused  bool
	declined bool              // true if no person could get a question about the call
	begun    bool              // true if the agent reported the call as running or completed
	approved []asking          // the questions about the call that were answered with yes
	ran      []policy.ToolCall // the different versions of the call that were reported to run
	crowded  bool              // true if there were more than maxForms versions
}

// maxForms is the maximum number of versions of one tool call that are compared with the approved ones.
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
	// keep the earlier slice if the input is unchanged, because inputs may be large
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

// hasRun reports whether a tool with this status has started.
func hasRun(status string) bool {
	switch acp.ToolCallStatus(status) {
	case acp.ToolCallStatusInProgress, acp.ToolCallStatusCompleted, acp.ToolCallStatusFailed:
		return true
	}
	return false
}

// addForm stores the present version of the call if the tool has started. The caller holds the accumulator's mu.
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

// speaker identifies an agent by its provider's id, and by the registry's id for the name in its introduction.
type speaker struct{ provider, known string }

// speaker returns the agent's identity, which policy needs to understand the session's tool calls.
func (s *agentSession) speaker() speaker {
	return speaker{s.setup.Agent.ID, s.setup.Agent.Known(s.info.AgentInfo).ID}
}

// speaker returns the agent's identity, which policy needs to understand the turn's tool calls. Before the agent has
// introduced itself, it uses the provider's id.
func (c *client) speaker() speaker {
	if c.run.agent == nil {
		return speaker{c.run.t.Agent.ID, c.run.t.Agent.ID}
	}
	return c.run.agent.speaker()
}

// callOf converts a tool call to the type that policy judges.
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
		case t.Text != "" && len(t.Text) < 4096: // longer texts are output of the tool
			out.Text = append(out.Text, t.Text)
		}
	}
	return out
}

// judgeTools finds the tool calls that needed a question and ran without one.
func (c *client) judgeTools() {
	standing := sync.OnceValues(c.run.r.approvals) // read once, and only if a tool call needs it
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

// covered reports whether a standing approval allows a request that the agent did not make.
func (c *client) covered(standing []policy.Approval, req policy.Request) bool {
	return slices.ContainsFunc(standing, func(a policy.Approval) bool {
		return a.Effect == policy.Allow && a.Covers(req, c.sums.now())
	})
}

// unasked returns the reason why a tool call is reported as unasked. It returns nil if the call needed no question, or
// if its question was answered.
func (c *client) unasked(t toolSeen, place shell.Place) *message.Text {
	switch {
	case (t.refused || t.declined && len(t.approved) == 0) && t.Status == string(acp.ToolCallStatusCompleted):
		return whyRefusedRan
	case t.crowded:
		return whyCrowded.With(maxForms)
	case t.late:
		return whyAskedLater
	case t.wasAsked && len(t.approved) > 0:
		var approved []policy.Reading
		for _, a := range t.approved {
			approved = append(approved, c.reading(a))
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

// failed reports whether the agent reported that the tool call failed. A failed call may still have had effects.
func failed(t toolSeen) bool { return t.Status == string(acp.ToolCallStatusFailed) }

// acts reports whether a tool call does more than read. The kind of the call decides. If the kind says nothing about
// this, the content decides. Content that policy cannot understand counts as more than reading.
func acts(r policy.Request) bool {
	switch acp.ToolKind(r.Kind) {
	case acp.ToolKindExecute, acp.ToolKindEdit, acp.ToolKindDelete, acp.ToolKindMove:
		return true
	case acp.ToolKindRead, acp.ToolKindSearch, acp.ToolKindThink, acp.ToolKindFetch:
		// Look at the content, because some agents report commands as reads and run them without a question.
		return r.Changes || len(r.Commands) > 0 && (r.Tier() != shell.Ordinary || r.Writes())
	case acp.ToolKindSwitchMode:
		return r.Tier() != shell.Ordinary
	}
	known := func(f policy.Field) bool { return f.Role != policy.Unread && f.Role != policy.Grave }
	return len(r.Commands) > 0 || len(r.Paths) > 0 || r.HasCommand ||
		!slices.ContainsFunc(r.Fields, known) || slices.ContainsFunc(r.Fields, func(f policy.Field) bool { return !known(f) })
}

// allowedForGood returns the session's questions that a person answered with a permanent yes.
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

// freedBy returns the id of an earlier question if its permanent yes probably also allowed this request. Otherwise it
// returns "". The commands of both must run the same programs, and the request must not have a higher tier.
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

// switchedMode reports that the agent changed its mode. If an answer of this turn allowed the mode, it reports nothing.
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

// asker has the data about an agent and its session that the policy needs to judge a question.
type asker struct {
	speaker
	session event.SessionID
	command []string // the agent's program and its arguments
}

// asker returns the asker for the agent of this turn.
func (c *client) asker() asker { return asker{c.speaker(), c.run.refs.Session, c.run.t.Agent.Command} }

// readTool returns a tool call as policy understands it, for a decision and for a question.
func (c *client) readTool(call provider.ToolCall, options []acp.PermissionOption, place shell.Place) policy.Reading {
	return c.asker().readTool(call, options, place)
}

func (k asker) readTool(call provider.ToolCall, options []acp.PermissionOption, place shell.Place) policy.Reading {
	read := policy.ReadToolCall(callOf(k.speaker, call), place)
	req := &read.Request
	req.Session = string(k.session)
	req.Agent, _ = shell.Words(k.command)
	for _, o := range options {
		req.Options = append(req.Options, policy.Option{ID: string(o.OptionId), Name: o.Name, Kind: string(o.Kind)})
	}
	return read
}

// asking is a question of the agent, with everything that the method reading needs. The result of this method is
// not stored, because it repeats most of the question's bytes.
type asking struct {
	// Tool is the whole call, including everything that was reported earlier.
	*provider.PermissionRequest
	place shell.Place
	// dirs are the start directories of the commands, if only an earlier report of the call names them. An empty string
	// means that the question itself names the directory.
	dirs []string
}

// reading returns the question's tool call as policy understands it. The result depends only on a and the agent's
// identity.
func (c *client) reading(a asking) policy.Reading { return c.asker().reading(a) }

// readQuestion adds the changed files and the start directories to a question, and returns its reading. The question
// belongs to a running turn or is recorded. "announced" is the tool call as the agent described it before the question.
// "changed" returns the files that the session has changed.
func (k asker) readQuestion(a *asking, announced provider.ToolCall,
	changed func() (shell.Changed, error)) (policy.Reading, error) {
	unplaced := k.reading(*a).Request
	if len(unplaced.Commands) > 0 && a.place.Sandbox == nil {
		var err error
		if a.place.Changed, err = changed(); err != nil {
			return policy.Reading{}, err
		}
	}
	a.dirs = startsWhere(unplaced, k.readTool(announced, nil, a.place).Request)
	return k.reading(*a), nil
}

func (k asker) reading(a asking) policy.Reading {
	read := k.readTool(a.Tool, unambiguous(a.Options), a.place)
	for i, dir := range a.dirs {
		if dir != "" {
			read.Request.Commands[i].Dir = dir
			read.Request.Paths = append(read.Request.Paths, dir)
		}
	}
	return read
}

// startsWhere returns the start directory of each command if only the earlier report of the call names it, and
// otherwise "".
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

// place returns the agent's directories with resolved symbolic links, because policy does not read the disk for that.
func (c *client) place() shell.Place { return c.run.r.place(c.run.t.Setup) }

// placeOf returns the place of a request, with the sandbox of the process that would act.
func (c *client) placeOf(p *provider.PermissionRequest) shell.Place {
	at := c.place()
	if box := p.Sandbox(); box != nil && box.Mode != sandbox.Protect {
		at.Sandbox = &shell.Sandbox{Mode: string(box.Mode), Writes: box.Writes, Reads: box.Reads, Connects: box.Connects}
	}
	return at
}

func (r *Runner) place(s Setup) shell.Place {
	return realPlace(shell.Place{Dir: s.Dir, Home: s.Home, Temp: s.Temp, Own: r.opt.Own})
}

// realPlace returns the place with resolved links in its directories.
func realPlace(at shell.Place) shell.Place {
	p := shell.Place{Dir: realDir(at.Dir), Home: realDir(at.Home)}
	for _, t := range at.Temp {
		p.Temp = append(p.Temp, realDir(t))
	}
	for _, o := range at.Own {
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
