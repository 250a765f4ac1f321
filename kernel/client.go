package kernel

import (
	"encoding/hex"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/acp-go-sdk"

	"github.com/perlica/perlica/eventlog"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/provider"
)

// reasonBlocked is why Perlica does nothing for an agent.
const reasonBlocked = "single_call_mode_local_tool_dispatch_disabled"

// client is a turn as the agent's session sees it: it records the turn's lines, gathers the
// answer, shows what happens and takes the agent's questions.
type client struct {
	run    *run
	show   *shower
	now    func() time.Time
	at     atomic.Pointer[event.Refs]
	active chan struct{} // capacity 1: a line has come

	answered bool // the last line was a response; the connection's reader's

	ready   chan struct{} // closed when conn is set: the connection speaks before Start returns
	conn    *provider.Conn
	asks    chan *provider.PermissionRequest // in wire order, to the asking goroutine
	asking  sync.WaitGroup                   // the asking goroutine, begun by the first question
	asked   sync.Once                        // begins it
	judging sync.Mutex                       // held while a question is put, and while the run waits for all
	open    sync.WaitGroup                   // one goroutine for each open question

	cancelled chan struct{} // closed when the turn is cancelled
	cancel    func()        // closes it: all open questions lapse, and every later one
	ended     chan struct{} // closed when the run ends
	end       func()        // closes it

	mu           sync.Mutex // guards what follows; never held while something blocks
	answer       provider.Answer
	live         bool // between Started and the outcome
	text         strings.Builder
	content      []provider.Block // without what they hold, which is on record
	joiner       joiner
	replayed     *replayed   // nil: the agent did not continue its session
	tools        []*toolSeen // in the order in which they were first heard of
	toolOf       map[acp.ToolCallId]*toolSeen
	cost         *fact.Cost
	started      time.Time
	first        time.Time
	perms        fact.Permissions
	agreed       map[string]bool    // modes to which somebody has said yes
	switched     []fact.UnaskedTool // changes of the mode without a question
	unaskedTools []fact.UnaskedTool
	blocked      int
	warnings     []string
}

func newClient(run *run) *client {
	c := &client{
		run: run, now: run.r.opt.Now,
		active:    make(chan struct{}, 1),
		ready:     make(chan struct{}),
		asks:      make(chan *provider.PermissionRequest, 4),
		toolOf:    map[acp.ToolCallId]*toolSeen{},
		agreed:    map[string]bool{},
		cancelled: make(chan struct{}),
		ended:     make(chan struct{}),
	}
	c.cancel = sync.OnceFunc(func() { close(c.cancelled) })
	c.end = sync.OnceFunc(func() { close(c.ended) })
	c.at.Store(&run.refs)
	var log *eventlog.Log
	if run.r.opt.StreamSync {
		log = run.r.log
	}
	c.show = newShower(run.t.Show, log, func(error) { c.kill() })
	return c
}

// attach begins to take the agent's questions.
func (c *client) attach(conn *provider.Conn) {
	c.conn = conn
	close(c.ready)
}

// detach ends what attach began. The connection must have ended, or have been taken from the
// turn.
func (c *client) detach() {
	close(c.asks)
	c.asking.Wait()
	c.open.Wait()
}

// gone is closed when the agent can be spoken to no more.
func (c *client) gone() <-chan struct{} {
	<-c.ready
	return c.conn.Gone()
}

// kill ends the agent without another byte to it: the record has failed. Of a turn that ends
// without an agent there is none to be ended.
func (c *client) kill() {
	select {
	case <-c.ready:
	case <-c.ended:
	}
	select {
	case <-c.ready:
		c.conn.Kill()
	default:
	}
}

// close ends the turn's part in what is shown, when all of it was.
func (c *client) close() {
	c.end()
	c.show.close()
}

func (c *client) refs() event.Refs { return *c.at.Load() }

// setConversation adds the agent's own session id to all later events.
func (c *client) setConversation(id string) {
	refs := c.refs()
	refs.Conversation = event.ConversationID(id)
	c.at.Store(&refs)
}

var sentTypes = map[provider.FrameKind]event.Type{
	provider.Request: event.RequestSent, provider.Notification: event.NotificationSent, provider.Response: event.ResponseSent,
}

func sentEvent(f provider.Frame, refs event.Refs) event.Event {
	return event.Event{Type: sentTypes[f.Kind], Class: event.Frame, Actor: "perlica", Refs: refs, Payload: f.Line}
}

var receivedTypes = map[provider.FrameKind]event.Type{
	provider.Request: event.NotificationReceived, provider.Notification: event.NotificationReceived,
	provider.Response: event.ResponseReceived, provider.Malformed: event.LineMalformed,
}

// received takes in that a line has come.
func (c *client) received(f provider.Frame) {
	select {
	case c.active <- struct{}{}:
	default:
	}
	c.answered = f.Kind == provider.Response
}

func (r *Runner) receivedEvent(f provider.Frame, refs event.Refs) event.Event {
	if f.Kind == provider.Oversized {
		head := f.Line
		if r.opt.RedactLog {
			head = r.opt.Redactor.Payload(head) // here: in the event it is base64
		}
		return event.NewFact(event.LineOversized, "agent", refs, fact.OversizedLine{
			Length: f.Length, SHA256: hex.EncodeToString(f.SHA256), Head: head,
		})
	}
	return event.Event{Type: receivedTypes[f.Kind], Class: event.Frame, Actor: "agent", Refs: refs, Payload: f.Line}
}

// start opens the turn. That it did is shown with what comes next, or when the prompt is written.
func (c *client) start(n Started) {
	c.show.hold(n) // first: what the agent says from here on comes behind it
	c.mu.Lock()
	c.live, c.started = true, c.now()
	c.mu.Unlock()
}

// Update takes in what the agent says. What it says before the prompt is set-up, what it
// says after the outcome is on record only.
func (c *client) Update(u provider.Update) {
	var called *provider.BlockedRequest
	c.mu.Lock()
	if !c.live {
		c.mu.Unlock()
		return
	}
	if c.replayed.has(u) {
		c.mu.Unlock()
		return
	}
	if c.first.IsZero() {
		c.first = c.now()
	}
	switch {
	case u.Kind == provider.AgentThoughtChunk:
		c.joiner.join(&u)
	case u.Kind == provider.AgentMessageChunk:
		c.joiner.join(&u)
		c.text.WriteString(u.Text)
		c.content = withBlock(c.content, u)
	case u.Tool != nil && c.run.t.Agent.Model:
		called = &provider.BlockedRequest{Method: u.Tool.Title, ID: string(u.Tool.ID), Params: u.Raw}
	case u.Tool != nil:
		c.mergeTool(*u.Tool).report(c.speaker())
	case u.Usage != nil && u.Usage.Cost != nil:
		c.cost = (*fact.Cost)(u.Usage.Cost)
	}
	c.mu.Unlock()
	if called != nil { // by a model that was offered no tool: nothing runs
		_ = c.run.r.log.Record(blockedEvents(*called, c.refs())...) // an error ends the log, and with it the run
		c.refused(*called)
		return
	}
	if c.run.carried == nil { // else the agent's own client has its line
		c.show.hold(Updated{u})
	}
}

// Drained has what came shown, unless the outcome follows at once: then one commit makes both
// durable.
func (c *client) Drained() {
	if !c.answered || !c.run.t.Agent.Orderly {
		c.show.flush()
	}
}

// refused takes in a request that was refused.
func (c *client) refused(b provider.BlockedRequest) {
	c.mu.Lock()
	c.blocked++
	c.mu.Unlock()
	c.show.add(Blocked{Method: b.Method})
}

// refusedTool takes in that a tool was asked about, and that nobody could say yes.
func (c *client) refusedTool(t provider.ToolCall) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mergeTool(t).declined = true
}

func blockedEvents(b provider.BlockedRequest, refs event.Refs) []event.Event {
	return []event.Event{
		event.NewFact(event.ToolBlocked, "agent", refs, fact.ToolBlocked{Method: b.Method, RequestID: b.ID, Reason: reasonBlocked, Params: b.Params}),
		event.NewFact(event.ToolResult, "perlica", refs, fact.ToolResult{Method: b.Method, RequestID: b.ID, Reason: reasonBlocked}),
	}
}

// maxWarnings is how many warnings a run keeps; an agent may give cause for thousands.
const maxWarnings = 20

// warn adds a warning to the result and shows it.
func (c *client) warn(subtype, detail string) {
	c.mu.Lock()
	if slices.Contains(c.warnings, subtype+": "+detail) {
		c.mu.Unlock() // an agent may give the same cause with each step; every line is on record
		return
	}
	n := len(c.warnings)
	if n < maxWarnings {
		c.warnings = append(c.warnings, subtype+": "+detail)
	}
	c.mu.Unlock()
	c.run.r.opt.Trail.Warn(subtype, "run", string(c.run.refs.Run), "detail", detail)
	if n < maxWarnings {
		c.show.add(Warned{Subtype: subtype, Detail: detail})
	}
}

// warnLate is warn for what happens after the outcome.
func (c *client) warnLate(subtype, detail string) {
	c.show.close()
	c.warn(subtype, detail)
	c.show.show(Warned{Subtype: subtype, Detail: detail}) // its goroutine has ended
}

func (c *client) takeWarnings() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.warnings)
}

// Agents may say something more after their answer. The turn is over when the agent has
// answered that its session is closed, or, where it offers no such thing, when nothing has
// come for drainIdle; at the latest after drainMost.
const (
	drainIdle = 5 * time.Millisecond
	drainMost = 250 * time.Millisecond
)

// drain waits for the last words of a turn.
func (c *client) drain(closed <-chan struct{}) {
	most := time.NewTimer(drainMost)
	defer most.Stop()
	for {
		var idle <-chan time.Time
		if closed == nil {
			idle = time.After(drainIdle)
		}
		select {
		case <-c.active:
		case <-idle:
			return
		case <-closed:
			return
		case <-c.gone():
			return
		case <-most.C:
			return
		}
	}
}

// endTurn ends the turn: nothing that comes now belongs to it. It returns when every
// question has its end on the log.
func (c *client) endTurn() {
	c.mu.Lock()
	c.live = false
	rest := c.joiner.rest()
	c.text.WriteString(rest.Text)
	c.mu.Unlock()
	if rest.Text != "" && c.run.carried == nil {
		c.show.hold(Updated{rest})
	}
	c.end()
	c.judging.Lock()
	defer c.judging.Unlock()
	c.open.Wait()
}

func (c *client) setAnswer(a provider.Answer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.answer = a
}

func (c *client) firstUpdate() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.first.IsZero() {
		return 0
	}
	return c.first.Sub(c.started)
}

func (c *client) toolsSeen() []fact.ToolSeen {
	c.mu.Lock()
	defer c.mu.Unlock()
	seen := []fact.ToolSeen{}
	for _, t := range c.tools {
		seen = append(seen, t.ToolSeen)
	}
	return seen
}

// fill adds what the client has gathered to a result.
func (c *client) fill(res *Result) {
	c.mu.Lock()
	defer c.mu.Unlock()
	res.Text, res.Content = c.text.String(), c.content
	res.StopReason, res.Usage, res.Cost = c.answer.StopReason, c.answer.Usage, c.cost
	res.OfSession = res.Usage != nil && c.run.agent.setup.Agent.CountsSession(c.run.agent.info.AgentInfo)
	res.Permissions, res.Blocked = c.perms, c.blocked
	res.Unasked = c.unaskedTools
}
