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

// client is the turn's part of the agent's session. It records lines, adds up the answer, shows notices and
// answers the agent's questions.
type client struct {
	run    *run
	show   *shower
	at     atomic.Pointer[event.Refs]
	active chan struct{} // capacity 1: a line has come

	answered bool // the last line was a response; owned by the connection's reader

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

// joinGoroutines waits for the goroutines of the turn. The connection must have ended, or must have been taken from
// the turn.
func (c *client) joinGoroutines() {
	c.questions.closeQueue()
	c.lifecycle.cancelling.Wait()
}

// closeTurn ends the turn's notices after all of them were shown.
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

// received notes a line of the agent.
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
			head = r.opt.Redactor.Payload(head) // before base64 hides the text
		}
		return event.NewFact(event.LineOversized, "agent", refs, fact.OversizedLine{
			Length: f.Length, SHA256: hex.EncodeToString(f.SHA256), Head: head,
		})
	}
	return event.Event{Type: receivedTypes[f.Kind], Class: event.Frame, Actor: "agent", Refs: refs, Payload: f.Line}
}

// startTurn opens the turn. The notice is shown with the next one, or when the prompt is written.
func (c *client) startTurn(n record.Started) {
	c.show.holdNotice(n) // Updates of the agent are shown after this notice.
	c.sums.startTurn()
}

// Update adds an update of the agent to the turn and shows it. An update before the prompt belongs to the
// set-up, and an update after the outcome is on record only.
func (c *client) Update(u provider.Update) {
	called := u.Tool != nil && c.run.t.Agent.Model // the model was offered no tool: nothing runs
	switch {
	case !c.sums.addUpdate(&u, c.run.t.Agent.Model, c.speaker()):
	case called:
		b := provider.BlockedRequest{Method: u.Tool.Title, ID: string(u.Tool.ID), Params: u.Raw}
		_ = c.run.r.log.Record(blockedEvents(b, c.refs())...) // an error ends the log, and with it the run
		c.refused(b)
	case c.run.clientPrompt == nil: // otherwise the agent's own client has its line
		c.show.holdNotice(record.Updated{Update: u})
	}
}

// Drained shows the updates so far, unless the outcome follows at once. Then one commit makes both durable.
func (c *client) Drained() {
	if !c.answered || !c.run.t.Agent.Orderly {
		c.show.flushQueue()
	}
}

// refused counts and shows a request that was refused.
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
	added, kept := c.sums.addWarning(subtype + ": " + detail.Text)
	if added {
		c.run.r.opt.Trail.Warn(subtype, "run", string(c.run.refs.Run), "detail", detail.Text)
	}
	if kept {
		c.show.addNotice(record.NewWarned(subtype, detail))
	}
}

// warnLate shows a warning after the outcome.
func (c *client) warnLate(subtype string, detail *message.Text) {
	c.show.closeQueue()
	c.warn(subtype, detail)
	c.show.show(record.NewWarned(subtype, detail)) // its goroutine has ended
}

// Agents may send updates after their answer. The turn is over when the agent has answered session/close. An
// agent without session/close is done when no line has come for drainIdle. drainMost limits both.
const (
	drainIdle = 5 * time.Millisecond
	drainMost = 250 * time.Millisecond
)

// drainUpdates waits for the last updates of a turn.
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

// endTurn ends the turn: an update that comes now does not belong to it. It returns when every question has
// its end on the log.
func (c *client) endTurn() {
	rest := c.sums.endTurn()
	if rest.Text != "" && c.run.clientPrompt == nil {
		c.show.holdNotice(record.Updated{Update: rest})
	}
	c.lifecycle.end()
	c.questions.awaitOpen()
}
