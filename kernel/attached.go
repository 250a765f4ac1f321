package kernel

import (
	"context"
	"encoding/json"
	"slices"
	"sync/atomic"

	"github.com/coder/acp-go-sdk"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/kernel/agents"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/kernel/filelock"
	"github.com/perlica/perlica/kernel/record"
	"github.com/perlica/perlica/policy"
	"github.com/perlica/perlica/provider"
)

// Attachment describes an agent session that the agent's own client, such as an editor, has opened. Perlica relays the
// lines between the client and the agent.
type Attachment struct {
	// Setup.Session is the Perlica session to continue. Empty means a new session.
	Setup
	Conn      *provider.Conn
	Opened    *provider.Session
	Agent     acp.InitializeResponse
	Continued string // "load" or "resume" if the client continued the agent's session in this way, otherwise ""
	By        string // the name of the lock's owner, for the errors of other processes that want the session
	Alone     func() // called when the agent begins a turn without a prompt
}

// Attached is the Perlica session of an Attachment. Each prompt of the client is a turn. An Attached records the lines
// of the agent's session, and handles updates and questions as in any turn. Several goroutines may call its methods.
// The caller closes the Attached before the Runner.
type Attached struct {
	*agentSession
	lock   *filelock.Lock
	turnMu queue // held during a turn
	fresh  bool  // true if the session has no earlier turns; guarded by turnMu

	// Only the connection's reader uses these fields.
	origins origins
	earlier bool // true if the current line belongs to an earlier turn
	alone   alone

	loads atomic.Int32 // the number of unanswered requests to load this session
	// retelling is true from the loading of the session until the end of the next turn. The agent may repeat earlier
	// turns before it gets the prompt.
	retelling atomic.Bool
}

// Attach connects a Perlica session with an agent's session. The error is a *filelock.BusyError if another process or
// conversation holds the lock of the Perlica session.
func (r *Runner) Attach(ctx context.Context, a Attachment) (*Attached, error) {
	fresh := a.Session == ""
	if fresh {
		a.Session = newSessionID()
	}
	lock, err := filelock.AcquireSession(ctx, filelock.Session(r.opt.Paths.Locks, string(a.Session)), false)
	if err != nil {
		return nil, err
	}
	lock.Sign(a.By, r.opt.Now())
	if err := r.questions.Reachable(); err != nil {
		r.opt.Trail.Warn("other processes cannot reach this one", "error", err.Error())
	}
	a.Setup.Agent.Asking = a.Setup.Agent.AskingOf(a.Agent.AgentInfo)
	a.Setup.Agent.Orderly = true // late lines are relayed, too, so no turn waits for them
	s := newAgentSession(r, a.Setup, event.Refs{Session: a.Session, Conversation: event.ConversationID(a.Opened.ID)}, nil)
	s.conn, s.session, s.info, s.how, s.prompted = a.Conn, a.Opened, a.Agent, continuation(a.Continued), true
	if fresh {
		err = r.log.Record(newSessionFact(a.Session, fact.SessionCreated{Provider: a.Setup.Agent.ID}))
	}
	if err != nil {
		lock.Release()
		return nil, err
	}
	s.enterState()
	attached := &Attached{agentSession: s, lock: lock, turnMu: make(queue, 1), fresh: fresh, alone: alone{began: a.Alone}}
	attached.retelling.Store(s.how == continuedLoad)
	return attached, nil
}

// Loading says that the client asks the agent to load this session again. The caller calls the function loaded when the
// agent has answered. Until then all updates belong to earlier turns.
func (a *Attached) Loading() (loaded func()) {
	a.loads.Add(1)
	a.retelling.Store(true)
	return func() { a.loads.Add(-1) }
}

// Session returns the id of the Perlica session.
func (a *Attached) Session() event.SessionID { return a.setup.Session }

// Choose puts the agent into the mode of the setup, or into its asking mode. It also records the start of the session.
// The result "asked" reports whether Choose sent a request to the agent. The caller calls Choose once, before the first
// Prompt.
func (a *Attached) Choose(ctx context.Context) (mode string, asked bool, err error) {
	before := a.presentModeNow()
	a.mode, a.options, err = agents.Choose(ctx, a.session, a.setup.Agent.Asking, a.setup.Mode, a.setup.Model)
	if err != nil {
		return "", true, offered(a.recordTimeout(err))
	}
	a.applyChoice(a.mode)
	can, err := json.Marshal(a.info.AgentCapabilities)
	if err != nil {
		return "", false, err
	}
	started := event.NewFact(event.SessionStarted, "perlica", a.refs(), fact.SessionStarted{
		Strategy: strategyKeep, Continued: string(a.how), Agent: (*fact.AgentName)(a.info.AgentInfo), Capabilities: can,
		Mode: a.mode, ModeName: a.otherModeName(a.mode), Options: a.options,
	})
	return a.mode, a.mode != before || len(a.options) > 0, a.r.log.Record(a.sandboxFact(), started)
}

// Offers returns a copy of the agent's present offers.
func (a *Attached) Offers() Offers { return a.offers() }

// ChosenMode announces that the client is choosing a mode.
func (a *Attached) ChosenMode(mode string) { a.expectMode(mode) }

// ClientPrompt is a session/prompt of the agent's own client.
type ClientPrompt struct {
	Line   []byte // the client's request line
	Cancel func() error
}

// Prompt answers an input with at most one call, like Runner.Run. The line in c holds the text of the input. A stop
// calls c.Cancel, which asks the agent to cancel the turn. Perlica does not end an agent that ignores the cancellation.
func (a *Attached) Prompt(ctx context.Context, t Turn, c ClientPrompt) (record.Result, error) {
	if err := a.turnMu.waitForLock(ctx, t.Stop); err != nil {
		return record.Result{}, err
	}
	defer a.turnMu.Unlock()
	t.Setup = a.setup
	return a.r.answerInput(ctx, &t, attachedAgent{a, &c})
}

// attachedAgent is the agent of an Attached for one prompt of the client.
type attachedAgent struct {
	*Attached
	clientPrompt *ClientPrompt
}

// acceptRun creates the run and locks it. The Attached already holds the session's lock, and the caller holds turnMu.
func (a attachedAgent) acceptRun(ctx context.Context, t *Turn) (*run, error) {
	run := a.r.newRun(*t, nil)
	run.kept, run.created, run.clientPrompt = true, a.fresh, a.clientPrompt
	if err := run.unlessStopped(ctx, run.takeLock); err != nil {
		run.releaseLocks()
		return nil, err
	}
	return run, nil
}

func (a attachedAgent) provideAgent(ctx context.Context, run *run) error {
	a.fresh = false
	run.agent = a.agentSession
	if a.retelling.Load() {
		if err := run.expectReplay(ctx); err != nil {
			return err
		}
	}
	a.beginTurn(run.client)
	run.client.lifecycle.attachConn(a.conn)
	return nil
}

func (a attachedAgent) takeBackAgent(_ context.Context, run *run) {
	a.retelling.Store(false)
	a.finishTurn()
	run.client.joinGoroutines()
}

func (a attachedAgent) releaseRun(run *run) { run.releaseLocks() }

// ClosedByClient says that the client has closed the agent's session.
func (a *Attached) ClosedByClient() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closing = make(chan struct{})
}

// Close records the end of the agent's session and unlocks the Perlica session. No turn may be under way.
func (a *Attached) Close() {
	a.betweenTurns.Wait()
	if a.lock == nil {
		return
	}
	_ = a.r.log.Record(append(a.modesBetweenTurns(), a.closedFact())...) // the log's Close returns this error, too
	a.lock.Release()
}

// Unattached returns an Attached for lines of an agent that belong to no Perlica session. conversation is the id of the
// agent's session, or empty. The Attached accepts no prompt.
func (r *Runner) Unattached(conversation string) *Attached {
	return &Attached{agentSession: newAgentSession(r, Setup{},
		event.Refs{Conversation: event.ConversationID(conversation)}, nil)}
}

// ClientLine records a line that Perlica does not relay unchanged between the client and the agent. If "sent" is true,
// Perlica sent the line to the client. Otherwise the client sent it.
func (a *Attached) ClientLine(sent bool, line []byte) error {
	e := event.Event{Type: event.ClientReceived, Class: event.Frame, Actor: "client", Refs: a.refs(), Payload: line}
	if sent {
		e.Type, e.Actor = event.ClientSent, "perlica"
	}
	return a.r.log.Record(e)
}

// Durable returns a function that waits until all events recorded before the call of Durable are on disk. If
// stream_sync is off, the function does not wait.
func (a *Attached) Durable() func() error {
	if !a.r.opt.StreamSync {
		return a.r.log.Err
	}
	mark := a.r.log.Mark()
	return func() error { return a.r.log.SyncTo(mark) }
}

// origins remembers the turn in which each tool call or message of the agent began. A turn is stored as the
// references of its events.
type origins struct {
	refs  map[string]event.Refs
	order []string // the ids, oldest first
}

// maxOrigins is the number of tool calls and messages that origins stores. A line of an older, forgotten tool call
// gets the references of the present turn.
const maxOrigins = 4096

// of returns the references for the event of an agent's line. The parameter "now" has the references of the present
// turn.
func (o *origins) of(f provider.Frame, now event.Refs) event.Refs {
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

// Received records a line of the agent. A line of an earlier turn's tool call or message gets that turn's
// references.
func (a *Attached) Received(f provider.Frame) error {
	a.mu.RLock()
	defer a.mu.RUnlock()
	now := a.refsNow()
	refs := a.origins.of(f, now)
	a.earlier = refs.Run != now.Run
	if a.client != nil {
		a.client.received(f)
	}
	return a.r.log.Record(a.r.receivedEvent(f, refs))
}

// Update handles the update in the line that Received has just recorded. It ignores an update of an earlier turn,
// because the record is enough.
func (a *Attached) Update(u provider.Update) {
	if a.earlier || a.loads.Load() > 0 && u.Mode == "" && u.Commands == nil && u.Options == nil {
		return
	}
	a.mu.RLock()
	prompted := a.client != nil && a.client.sums.hasStarted() // the agent gets the prompt after that
	a.mu.RUnlock()
	if prompted {
		a.alone.tools, a.alone.announced = nil, false
	} else {
		a.unprompted(u, a.retelling.Load())
	}
	a.agentSession.Update(u)
}

// alone describes a turn that the agent began without a prompt.
type alone struct {
	began     func()
	announced bool // true after began was called
	tools     map[acp.ToolCallId]*toolSeen
}

// unprompted handles an update between two prompts. A tool that runs between prompts ran without a question.
func (a *Attached) unprompted(u provider.Update, retelling bool) {
	if u.Tool == nil && u.Kind != provider.AgentMessageChunk && u.Kind != provider.AgentThoughtChunk || a.lock == nil {
		return
	}
	if retelling && (u.Tool == nil || a.alone.tools[u.Tool.ID] == nil && isOver(u.Tool.Status)) {
		return // this call belongs to an earlier turn: a new tool is reported before it ends
	}
	if !a.alone.announced && a.alone.began != nil {
		a.alone.began()
	}
	a.alone.announced = true
	if u.Tool == nil {
		return
	}
	s := a.alone.tool(u.Tool.ID)
	s.mergeReport(*u.Tool)
	if s.declined && s.Status != string(acp.ToolCallStatusCompleted) {
		return // the agent asked and the answer was no
	}
	if s.wasAsked || !hasRun(s.Status) || !acts(policy.ReadToolCall(callOf(a.speaker(), s.call),
		a.r.place(a.setup)).Request) {
		return
	}
	s.wasAsked = true // report the call once
	why := whyByItself
	if s.declined {
		why = whyByItselfRefused
	}
	// The error may be ignored: if the log cannot be written, the agent's next line ends the agent.
	_ = a.r.log.Record(event.NewFact(event.PolicyUnasked, "agent", a.refs(), fact.NewUnaskedTool(s.ToolSeen, why)))
}

// tool returns the collected reports of a tool call, and creates an empty collection for a new id.
func (a *alone) tool(id acp.ToolCallId) *toolSeen {
	s := a.tools[id]
	if s == nil {
		s = &toolSeen{ToolSeen: fact.ToolSeen{ID: string(id)}}
		s.call.ID = id
		if a.tools == nil {
			a.tools = map[acp.ToolCallId]*toolSeen{}
		}
		a.tools[id] = s
	}
	return s
}

// isOver reports whether a tool with this status has ended.
func isOver(status acp.ToolCallStatus) bool {
	return status == acp.ToolCallStatusCompleted || status == acp.ToolCallStatusFailed
}

// RequestPermission passes a question to the present turn. Between turns the answer is no, and the tool call is marked
// as refused.
func (a *Attached) RequestPermission(p *provider.PermissionRequest) {
	a.mu.RLock()
	prompted := a.client != nil
	a.mu.RUnlock()
	if !prompted {
		a.refusedAlone(p.Tool)
	}
	a.agentSession.RequestPermission(p)
}

// RefusedPermission reports a question that the connection refused before a person or a rule could judge it.
func (a *Attached) RefusedPermission(t provider.ToolCall) {
	a.mu.RLock()
	prompted := a.client != nil
	a.mu.RUnlock()
	if !prompted {
		a.refusedAlone(t)
	}
	a.agentSession.RefusedPermission(t)
}

func (a *Attached) refusedAlone(t provider.ToolCall) {
	if t.ID == "" {
		return
	}
	s := a.alone.tool(t.ID)
	s.mergeReport(t)
	s.declined = true
}

// Refuses judges a request for approval that only the agent's own client can grant. It returns true and records the
// decision if the policy refuses the request. Between turns it returns true, because no run can judge the request.
// texts are the form's texts, which describe the action of a form that does not name a tool call.
func (a *Attached) Refuses(id string, tool provider.ToolCall, texts []string) bool {
	a.mu.RLock()
	defer a.mu.RUnlock()
	if a.client == nil {
		return true
	}
	if len(texts) > 0 {
		tool = a.client.approved(tool, texts)
	}
	return a.client.refuses(&provider.PermissionRequest{ID: id, Tool: tool, Options: []acp.PermissionOption{
		{OptionId: "accept", Kind: acp.PermissionOptionKindAllowOnce},
		{OptionId: "decline", Kind: acp.PermissionOptionKindRejectOnce},
	}})
}

func (c *client) refuses(p *provider.PermissionRequest) bool {
	a := asking{PermissionRequest: p, place: c.place()}
	req := c.reading(a).Request
	d := c.run.r.policy.Decide(req, c.run.t.Permissions)
	c.sums.addQuestion(p.Tool)
	if d.Effect != policy.Deny {
		return false
	}
	made := decision(p.ID, req, d)
	// The error may be ignored: if the log cannot be written, the agent's next line ends the agent.
	_ = c.run.r.log.Record(event.NewFact(event.PolicyDecided, "policy", c.refs(), made))
	c.sums.addDecision(a, false)
	c.show.addNotice(record.Decided{PolicyDecided: made, Request: p.ID})
	return true
}
