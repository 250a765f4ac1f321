package kernel

import (
	"encoding/hex"
	"sync/atomic"
	"time"

	"github.com/perlica/perlica/eventlog"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/message"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/kernel/record"
	"github.com/perlica/perlica/provider"
)

// reasonBlocked is the recorded reason of every refused request.
const reasonBlocked = "single_call_mode_local_tool_dispatch_disabled"

// client is the part of a turn that the agent's session calls. It records lines, adds up the answer, shows notices and
// answers the agent's questions.
type client struct {
	run    *run
	show   *shower
	at     atomic.Pointer[event.Refs]
	active chan struct{} // capacity 1: gets a value for each line of the agent

	answered bool // true if the last line was a response; only the connection's reader uses it

	sums      *accumulator
	questions *questions
	lifecycle *lifecycle
}

func newClient(run *run) *client {
	c := &client{
		run:       run,
		active:    make(chan struct{}, 1),
		sums:      newAccumulator(run.r.opt.Now),
		lifecycle: newLifecycle(),
	}
	c.questions = &questions{c: c, queue: make(chan *provider.PermissionRequest, 4)}
	c.at.Store(&run.refs)
	var log *eventlog.Log
	if run.r.opt.StreamSync {
		log = run.r.log
	}
	c.show = newShower(run.t.Show, log, func(error) { c.lifecycle.killAgent() })
	return c
}

// joinGoroutines waits for the goroutines of the turn. Before that, the caller ends the connection or takes it from the
// turn.
func (c *client) joinGoroutines() {
	c.questions.closeQueue()
	c.lifecycle.cancelling.Wait()
}

// closeTurn ends the turn, and waits until all its notices were shown.
func (c *client) closeTurn() {
	c.lifecycle.end()
	c.show.closeQueue()
}

func (c *client) refs() event.Refs { return *c.at.Load() }

// setConversation adds the agent's own session id to all later events.
func (c *client) setConversation(id string) {
	refs := c.refs()
	refs.Conversation = event.ConversationID(id)
	c.at.Store(&refs)
}

var sentTypes = map[provider.FrameKind]event.Type{
	provider.Request: event.RequestSent, provider.Notification: event.NotificationSent,
	provider.Response: event.ResponseSent,
}

var receivedTypes = map[provider.FrameKind]event.Type{
	provider.Request: event.NotificationReceived, provider.Notification: event.NotificationReceived,
	provider.Response: event.ResponseReceived, provider.Malformed: event.LineMalformed,
}

// received reports a line of the agent to the turn.
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
			head = r.opt.Redactor.Payload(head) // mask before the encoding, because base64 would hide the secrets
		}
		return event.NewFact(event.LineOversized, "agent", refs, fact.OversizedLine{
			Length: f.Length, SHA256: hex.EncodeToString(f.SHA256), Head: head,
		})
	}
	return event.Event{Type: receivedTypes[f.Kind], Class: event.Frame, Actor: "agent", Refs: refs, Payload: f.Line}
}

// startTurn opens the turn. The notice n is shown together with the next notice, or when the prompt is written.
func (c *client) startTurn(n record.Started) {
	c.show.holdNotice(n) // show the notice together with the agent's first update
	c.sums.startTurn()
}

// Update adds an update of the agent to the turn and shows it. An update before the prompt or after the outcome does
// not belong to the turn. It is only recorded.
func (c *client) Update(u provider.Update) {
	called := u.Tool != nil && c.run.t.Agent.Model // a model was offered no tool, so nothing runs
	if u.Usage != nil {
		c.run.addUsage(u.Usage)
	}
	switch {
	case !c.sums.addUpdate(&u, c.run.t.Agent.Model, c.speaker()):
	case called:
		b := provider.BlockedRequest{Method: u.Tool.Title, ID: string(u.Tool.ID), Params: u.Raw}
		_ = c.run.r.log.Record(blockedEvents(b, c.refs())...) // if the log fails, the agent's next line ends the run
		c.refused(b)
	case c.run.clientPrompt == nil: // otherwise the agent's own client has received the line itself
		c.show.holdNotice(record.Updated{Update: u})
	}
}

// Drained shows the updates so far. If the outcome follows at once, Drained does nothing: one commit then writes the
// updates and the outcome.
func (c *client) Drained() {
	if !c.answered || !c.run.t.Agent.Orderly {
		c.show.flushQueue()
	}
}

// refused counts a refused request and shows a notice about it.
func (c *client) refused(b provider.BlockedRequest) {
	c.sums.addBlocked()
	c.show.addNotice(record.Blocked{Method: b.Method})
}

func blockedEvents(b provider.BlockedRequest, refs event.Refs) []event.Event {
	return []event.Event{
		event.NewFact(event.ToolBlocked, "agent", refs, fact.ToolBlocked{Method: b.Method, RequestID: b.ID,
			Reason: reasonBlocked, Params: b.Params}),
		event.NewFact(event.ToolResult, "perlica", refs, fact.ToolResult{Method: b.Method, RequestID: b.ID,
			Reason: reasonBlocked}),
	}
}

// warn adds a warning to the result and shows it.
func (c *client) warn(subtype string, detail *message.Text) {
	warned := record.NewWarned(subtype, detail)
	added, kept := c.sums.addWarning(warned)
	if added {
		c.run.r.opt.Trail.Warn(subtype, "run", string(c.run.refs.Run), "detail", detail.Text)
	}
	if kept {
		c.show.addNotice(warned)
	}
}

// warnLate shows a warning after the outcome was shown.
func (c *client) warnLate(subtype string, detail *message.Text) {
	c.show.closeQueue()
	c.warn(subtype, detail)
	c.show.show(record.NewWarned(subtype, detail)) // closeQueue has ended showLoop, so show it here
}

// Agents may send updates after their answer to the prompt. If Perlica sent session/close, the turn ends with the
// agent's answer to it. Otherwise the turn ends when the agent has sent no line for drainIdle. The wait never exceeds
// drainMost.
const (
	drainIdle = 5 * time.Millisecond
	drainMost = 250 * time.Millisecond
)

// drainUpdates waits for the last updates of a turn. The channel "closed" is closed when session/close has ended. It
// is nil if Perlica did not send session/close.
func (c *client) drainUpdates(closed <-chan struct{}) {
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
		case <-c.lifecycle.gone():
			return
		case <-most.C:
			return
		}
	}
}

// endTurn ends the turn. Later updates do not belong to it. endTurn returns when the end of each question of the turn
// is on the log.
func (c *client) endTurn() {
	rest := c.sums.endTurn()
	if rest.Text != "" && c.run.clientPrompt == nil {
		c.show.holdNotice(record.Updated{Update: rest})
	}
	c.lifecycle.end()
	c.questions.awaitOpen()
}
