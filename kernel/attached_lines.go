package kernel

import (
	"slices"

	"github.com/coder/acp-go-sdk"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/policy"
	"github.com/perlica/perlica/policy/toolcall"
	"github.com/perlica/perlica/provider"
	"github.com/perlica/perlica/provider/jsonrpc"
)

// origins says in which turn a tool call or a message of the agent was first heard of.
type origins struct {
	refs  map[string]event.Refs
	order []string // the oldest first
}

// maxOrigins is how many of them are known; a line of an older one belongs to the turn under way.
const maxOrigins = 4096

// of returns the events' references for a line of the agent that comes now.
func (o *origins) of(f jsonrpc.Frame, now event.Refs) event.Refs {
	if f.Method != acp.ClientMethodSessionUpdate {
		return now
	}
	id := provider.UpdateID(f.Line)
	if id == "" {
		return now
	}
	id = f.Session + "\x00" + id
	if first, ok := o.refs[id]; ok {
		return first
	}
	if o.refs == nil {
		o.refs = map[string]event.Refs{}
	}
	o.refs[id] = now
	if o.order = append(o.order, id); len(o.order) > maxOrigins {
		delete(o.refs, o.order[0])
		o.order = slices.Clip(o.order[1:])
	}
	return now
}

// Received records a line of the agent: of a tool call or a message of an earlier turn with that.
func (a *Attached) Received(f jsonrpc.Frame) error {
	a.mu.RLock()
	defer a.mu.RUnlock()
	now := a.refsNow()
	refs := a.origins.of(f, now)
	a.earlier = refs.Run != now.Run
	if a.turn != nil {
		a.turn.received(f)
	}
	return a.r.log.Record(a.r.receivedEvent(f, refs))
}

// Update takes in what the agent says in the line that was received. What belongs to an earlier turn is
// on record only.
func (a *Attached) Update(u provider.Update) {
	if a.earlier {
		return
	}
	a.mu.RLock()
	prompted := a.turn != nil
	a.mu.RUnlock()
	if prompted {
		a.alone.tools = nil
	} else {
		a.unprompted(u)
	}
	a.agentSession.Update(u)
}

// alone is a turn that the agent has begun by itself.
type alone struct {
	began func()
	tools map[acp.ToolCallId]*toolSeen // nil: there is none
}

// unprompted takes in what the agent does while no prompt is under way. A tool that
// runs then was not asked for.
func (a *Attached) unprompted(u provider.Update) {
	if u.Tool == nil && u.Kind != provider.AgentMessageChunk && u.Kind != provider.AgentThoughtChunk || a.lock == nil {
		return
	}
	if a.alone.tools == nil {
		a.alone.tools = map[acp.ToolCallId]*toolSeen{}
		if a.alone.began != nil {
			a.alone.began()
		}
	}
	if u.Tool == nil {
		return
	}
	s := a.alone.tools[u.Tool.ID]
	if s == nil {
		s = &toolSeen{ToolSeen: fact.ToolSeen{ID: string(u.Tool.ID)}}
		s.call.ID = u.Tool.ID
		a.alone.tools[u.Tool.ID] = s
	}
	s.merge(*u.Tool)
	if s.asked || !hasRun(s.Status) || !acts(toolcall.Read(callOf(a.setup.Agent.ID, s.call), a.r.place(a.setup)).Request) {
		return
	}
	s.asked = true // once is enough
	_ = a.r.log.Record(event.NewFact(event.PolicyUnasked, "agent", a.refs(), fact.UnaskedTool{
		ToolSeen: s.ToolSeen, Why: "it ran in a turn that the agent began by itself, without a question",
	})) // a dead log ends the agent at its next line
}

// Refuses judges a request for approval that only the agent's own client can grant, and reports whether
// the policy refuses it: that is then on record. Between turns there is no run to judge it for, and it is
// refused.
func (a *Attached) Refuses(id string, tool provider.ToolCall) bool {
	a.mu.RLock()
	defer a.mu.RUnlock()
	return a.turn == nil || a.turn.refuses(&provider.PermissionRequest{ID: id, Tool: tool, Options: []acp.PermissionOption{
		{OptionId: "accept", Kind: acp.PermissionOptionKindAllowOnce}, {OptionId: "decline", Kind: acp.PermissionOptionKindRejectOnce},
	}})
}

func (c *client) refuses(p *provider.PermissionRequest) bool {
	a := asking{PermissionRequest: p, place: c.place()}
	req := c.reading(a).Request
	d := c.run.r.policy.Decide(req, c.run.t.Permissions)
	c.mu.Lock()
	c.perms.Asked++
	c.mergeTool(p.Tool).asked = true
	c.mu.Unlock()
	if d.Effect != policy.Deny {
		return false
	}
	_ = c.run.r.log.Record(event.NewFact(event.PolicyDecided, "policy", c.refs(), fact.PolicyDecided{
		Title: req.Title, Effect: string(d.Effect), By: string(d.By), Rule: d.Rule, Approval: d.ApprovalID(), Why: d.Why, Option: d.OptionID,
	})) // a dead log ends the agent at its next line
	c.count(a, false)
	c.show.add(Decided{Request: p.ID, Title: req.Title, Effect: string(d.Effect), By: string(d.By), Why: d.Why})
	return true
}
