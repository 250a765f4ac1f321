package report

import (
	"cmp"
	"context"
	"iter"
	"strings"
	"time"

	"github.com/coder/acp-go-sdk"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/message"
	"github.com/perlica/perlica/interaction"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/kernel/language"
	"github.com/perlica/perlica/kernel/record"
	"github.com/perlica/perlica/provider"
)

// Step is one thing that happened in a run, for a story.
type Step struct {
	// Seq is the number of the step's first event.
	Seq  event.Seq
	At   time.Time
	What any // one of the types below
}

// These are the types of steps.
type (
	// StepInput is an input and its sender.
	StepInput struct {
		Run         event.RunID
		Session     event.SessionID
		Input       event.InputID
		Text        string
		Attachments []string
		Source      string
		Sender      string
		Dir         string
		Provider    string
		// Rules are the policy rules of this run alone.
		Rules []string
		// Pruned means that the log has only the ids.
		Pruned bool
		// Damage is a line of text that replaces everything but the ids of a damaged input.
		Damage *message.Text
	}
	// StepSaid is a text or a thought of the agent without interruption.
	StepSaid struct {
		Text    string
		Thought bool
	}
	// StepTool is the first report or the end of a tool call.
	StepTool struct {
		fact.ToolSeen
		// Call has everything that the agent has reported about the tool call so far.
		Call provider.ToolCall
	}
	// StepAsked is a question to a person.
	StepAsked struct{ interaction.Question }
	// StepClosed is the end of a question. Took is the time from the question to its end.
	StepClosed struct {
		Question interaction.Question
		Answer   *interaction.Answer // nil if no answer came
		// Reason is the reason why no answer came.
		Reason interaction.Reason
		Took   time.Duration
	}
	// StepOutcome is the outcome of the run.
	StepOutcome struct {
		record.Result // Cost is the cost of this run
		// Shown means that earlier steps already have the whole text.
		Shown bool
		First time.Duration
		// Known is a sentence about an unknown outcome.
		Known        string
		KnownMessage message.Coded
		// Damage is a line of text that replaces the text of a damaged outcome.
		Damage  *message.Text
		in, out int64 // the run's own numbers of tokens
	}
	// StepNote is any other fact, in words, or a part of the answer that is not text.
	StepNote struct {
		Type    event.Type
		Text    string
		Bad     bool
		Unasked *unasked // details of policy.unasked_tool
		// Sandbox is the sandbox of the agent that gets the prompt. Only the note of llm.requested has it.
		Sandbox string

		// of is the described event. It is nil if Text comes from the agent.
		of *event.Event
	}
)

// unasked is a tool call that ran without a question, although a person should have been asked.
type unasked struct {
	// Call is the tool call as the agent reported it. It is empty if the agent changed its mode.
	Call provider.ToolCall
	// Always is the earlier question with the permanent yes that allowed the call. Its ID is empty if no such
	// question is recorded.
	Always interaction.Question
	// Yes is that permanent yes. YesAt is its time.
	Yes   *interaction.Answer
	YesAt time.Time
}

// Story yields the steps of a run from its events, in the order of the log. q may limit the events. Story translates
// protocol lines to steps. It omits lines that mean nothing to readers, such as the start of the agent.
func Story(ctx context.Context, log event.Reader, run event.RunID, q event.Query) iter.Seq2[Step, error] {
	q.Run = run
	return func(yield func(Step, error) bool) {
		n := narrator{
			yield: yield, used: usedIn(ctx, log), run: record.Record{Result: record.Result{Run: run}},
			tools:   map[acp.ToolCallId]provider.ToolCall{},
			always:  func(u *unasked, id event.InteractionID) { u.findAlways(ctx, log, id) },
			sandbox: func(e event.Event) string { return sandboxOf(ctx, log, e) },
		}
		for e, err := range log.Events(ctx, q) {
			if err != nil {
				yield(Step{}, err)
				return
			}
			if !n.tellEvent(e) {
				return
			}
		}
		n.flushText()
	}
}

// usedIn returns a function that replaces the agent's report in an outcome with the usage of the run itself.
func usedIn(ctx context.Context, log event.Reader) func(event.Event, *StepOutcome) error {
	return func(e event.Event, o *StepOutcome) error {
		used, err := fact.UsedBy(ctx, log, e, o.Report())
		o.in, o.out = used.In, used.Out
		if o.Cost != nil {
			o.Cost = &fact.Cost{Amount: used.Cost, Currency: o.Cost.Currency}
		}
		return err
	}
}

type narrator struct {
	yield func(Step, error) bool
	used  func(event.Event, *StepOutcome) error
	run   record.Record
	// said is the agent's current text or thought, which may continue.
	said strings.Builder
	// thought means that said is a thought.
	thought bool
	saidAt  Step
	// spoken has the text of all messages so far.
	spoken strings.Builder
	tools  map[acp.ToolCallId]provider.ToolCall
	always func(*unasked, event.InteractionID)
	// sandbox returns the agent's sandbox at an event of its session.
	sandbox func(event.Event) string
}

// sandboxOf returns the mode of the sandbox in which an event's session ran, or "". An agent's process may have
// started in an earlier run of the session.
func sandboxOf(ctx context.Context, log event.Reader, at event.Event) string {
	q := event.Query{Session: at.Session, Types: []event.Type{event.SandboxEntered}, Until: at.Seq, Newest: true, Limit: 1}
	for e, err := range log.Events(ctx, q) {
		if err != nil {
			return ""
		}
		if entered, err := fact.Decode[fact.SandboxEntered](e); err == nil {
			return entered.Mode
		}
	}
	return ""
}

// findAlways reads the earlier question with the permanent yes that allowed the tool, and the answer. If the question
// is unreadable, it stays empty and the story continues.
func (u *unasked) findAlways(ctx context.Context, log event.Reader, id event.InteractionID) {
	q, err := interaction.Find(ctx, log, id)
	if err != nil {
		return
	}
	u.Always = q
	for e, err := range log.Events(ctx, event.Query{Interaction: q.ID, Types: []event.Type{event.InteractionAnswered}}) {
		if a, aerr := fact.Decode[interaction.Answer](e); err == nil && aerr == nil {
			u.Yes, u.YesAt = &a, e.Time
		}
		break
	}
}

// flushText yields the current text. It returns false if the caller has left the loop.
func (n *narrator) flushText() bool {
	if n.said.Len() == 0 {
		return true
	}
	step := n.saidAt
	step.What = StepSaid{Text: n.said.String(), Thought: n.thought}
	n.said.Reset()
	return n.yield(step, nil)
}

func (n *narrator) yieldStep(e event.Event, what any) bool {
	return n.flushText() && n.yield(Step{Seq: e.Seq, At: e.Time, What: what}, nil)
}

func (n *narrator) tellEvent(e event.Event) bool {
	err := n.run.Apply(e)
	damage := e.Damage()
	if damage != nil && e.Type != event.MessageReceived && !e.Type.Outcome() {
		step := note(e)
		step.Bad = true
		return n.yieldStep(e, step)
	}
	if e.Class == event.Frame && e.Type != event.LineMalformed {
		switch u := n.run.Update; {
		case u.Kind == provider.AgentMessageChunk && u.Block != nil:
			return n.yieldStep(e, StepNote{Type: e.Type, Text: u.Block.String()})
		case u.Kind == provider.AgentMessageChunk || u.Kind == provider.AgentThoughtChunk:
			return n.addText(e, StepSaid{Text: u.Text, Thought: u.Kind == provider.AgentThoughtChunk})
		case u.Tool != nil:
			return n.tellTool(e, *u.Tool)
		case u.Saying() != "":
			return n.yieldStep(e, StepNote{Type: e.Type, Text: u.Saying()})
		}
		return true
	}
	what := n.factStep(e)
	if damage != nil {
		what = damaged(what, damage.Row())
	}
	if err != nil {
		what = note(e)
	}
	if o, ok := what.(StepOutcome); ok {
		if err := n.used(e, &o); err != nil {
			n.yield(Step{}, err)
			return false
		}
		what = o
	}
	return what == nil || n.yieldStep(e, what)
}

// damaged replaces the text of an input or an outcome with a line of text about the damage.
func damaged(what any, row *message.Text) any {
	switch w := what.(type) {
	case StepInput:
		w.Pruned, w.Damage = false, row
		return w
	case StepOutcome:
		w.Pruned, w.Damage = false, row
		return w
	}
	return what
}

// Tokens returns the run's own numbers of tokens, even if the agent reports only the numbers of its whole session.
func (o StepOutcome) Tokens() (in, out int64, ok bool) {
	_, _, ok = o.Result.Tokens()
	return o.in, o.out, ok
}

func note(e event.Event) StepNote {
	return StepNote{Type: e.Type, Text: Summarize(e, nil), Bad: badNews[e.Type], of: &e}
}

// In returns the result of Words and the text of the note, in the language of the parameter "say". It does not
// translate the agent's own text.
func (n StepNote) In(say *language.Sentences) (words, text string) {
	if text = n.Text; n.of != nil {
		text = Summarize(*n.of, say)
	}
	if n.Sandbox != "" {
		text += fill(say, inSandbox, n.Sandbox)
	}
	return say.Say(Title(n.Type)), text
}

// Words returns the title of the note.
func (n StepNote) Words() string { return Title(n.Type).Text }

// Title returns the words for a type of events. A type without a title is its own word, without a code.
func Title(t event.Type) *message.Text {
	switch t { // events that are not facts
	case event.LineMalformed:
		return titleNoMessage
	case event.NotificationReceived:
		return titleSends
	}
	return cmp.Or(summaries[t].title, &message.Text{Text: string(t)})
}

// badNews has the types of facts that a reader must not overlook.
var badNews = map[event.Type]bool{
	event.PolicyUnasked: true, event.ReplyFailed: true, event.RequestTimeout: true,
	event.LineMalformed: true, event.LineOversized: true, event.ToolBlocked: true,
}

// factStep returns the step for a fact. It returns nil if another fact already says the same.
func (n *narrator) factStep(e event.Event) any {
	q := n.run.Question(e.Interaction)
	switch {
	case e.Type == event.MessageReceived:
		m := n.run.Received
		return StepInput{
			Run: e.Run, Session: e.Session, Input: e.Input, Text: m.Text, Attachments: m.Attachments,
			Source: m.Source, Sender: m.Sender, Dir: m.Dir, Provider: m.Provider, Rules: m.Rules, Pruned: e.Payload == nil,
		}
	case e.Type.Outcome():
		o := StepOutcome{Result: n.run.Result, First: n.run.FirstUpdate, Known: n.run.Known,
			KnownMessage: n.run.KnownMessage}
		o.Pruned = e.Payload == nil
		o.Shown = strings.TrimSpace(n.spoken.String()) == strings.TrimSpace(o.Text)
		return o
	case e.Payload == nil:
	case e.Type == event.PolicyUnasked:
		if u, err := fact.Decode[fact.UnaskedTool](e); err == nil {
			step := note(e)
			step.Unasked = &unasked{Call: n.tools[acp.ToolCallId(u.ID)]}
			if u.FreedBy != "" {
				n.always(step.Unasked, u.FreedBy)
			}
			return step
		}
	case e.Type == event.Requested:
		step := note(e)
		step.Sandbox = n.sandbox(e)
		_, step.Text = step.In(language.English.Sentences())
		return step
	case e.Type == event.InteractionRequested:
		return StepAsked{q.Question}
	case e.Type == event.InteractionAnswered, e.Type == event.InteractionLapsed:
		return StepClosed{Question: q.Question, Answer: q.Answer, Reason: q.Reason, Took: e.Time.Sub(q.Asked)}
	case e.Type == event.SessionClosed:
		if c, err := fact.Decode[fact.SessionClosed](e); err == nil && c.Error == "" {
			return nil
		}
	case e.Type == event.ToolResult, e.Type == event.InteractionResolved:
		return nil // tool.blocked and acp.reply.* say the same
	}
	return note(e)
}

func (n *narrator) addText(e event.Event, s StepSaid) bool {
	if s.Text == "" {
		return true
	}
	if n.thought != s.Thought && !n.flushText() {
		return false
	}
	if !s.Thought {
		n.spoken.WriteString(s.Text)
	}
	if n.said.Len() == 0 {
		n.saidAt, s.Text = Step{Seq: e.Seq, At: e.Time}, strings.TrimPrefix(s.Text, "\n") // \n of a later message
	}
	n.thought = s.Thought
	n.said.WriteString(s.Text)
	return true
}

// tellTool yields a step at the first report of a tool call and at the end of the call.
func (n *narrator) tellTool(e event.Event, t provider.ToolCall) bool {
	call, known := n.tools[t.ID]
	call.Merge(t)
	n.tools[t.ID] = call
	if known && !t.Over() {
		return true
	}
	return n.yieldStep(e, StepTool{
		ToolSeen: fact.ToolSeen{ID: string(call.ID), Title: call.Title, Kind: string(call.Kind), Status: string(call.Status)},
		Call:     call,
	})
}
