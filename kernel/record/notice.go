package record

import (
	"strings"
	"time"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/message"
	"github.com/perlica/perlica/interaction"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/kernel/filelock"
	"github.com/perlica/perlica/policy"
	"github.com/perlica/perlica/provider"
)

// Notice is something that a front end shows during a run. It is one of the types below. Everything in it is already
// recorded.
type Notice interface{ notice() }

// These are the notices.
type (
	// Started says that the agent has a session and that the prompt is about to be sent.
	Started struct {
		Result // only Run, Input, Session and Provider
		Agent  string
		Mode   string // the id of the agent's mode, or ""
	}
	// Updated is an update of the agent.
	Updated struct{ provider.Update }
	// Asked is a question for a person. If it is not Answerable, it is closed at once.
	Asked struct {
		interaction.Question
		Request    string // the id of the agent's request, as the agent wrote it
		Answerable bool
	}
	// Closed is the end of a question. Its Question has no Subject.
	Closed struct {
		Question interaction.Question
		Request  string
		Answer   *interaction.Answer // nil if no answer came
		Reason   interaction.Reason  // the reason why no answer came
	}
	// Decided says that a rule or a mode answered instead of a person.
	Decided struct {
		fact.PolicyDecided
		Request string // the id of the agent's request, as the agent wrote it
	}
	// Blocked is a request of the agent that was refused.
	Blocked struct{ Method string }
	// Warned is a warning about a fault that does not end the run.
	Warned struct {
		Subtype string `json:"subtype"`
		Detail  string `json:"detail"`
		message.Coded
	}
)

// NewWarned returns a Warned with a sentence as its detail.
func NewWarned(subtype string, detail *message.Text) Warned {
	return Warned{Subtype: subtype, Detail: detail.Text, Coded: detail.Coded}
}

func (Started) notice() {}
func (Updated) notice() {}
func (Asked) notice()   {}
func (Closed) notice()  {}
func (Decided) notice() {}
func (Blocked) notice() {}
func (Warned) notice()  {}

// These notices come only from Follow and Reading. The process that runs a turn does not need them.
type (
	// Received is an input.
	Received struct {
		Run     event.RunID
		Session event.SessionID
		Input   event.InputID
		fact.MessageReceived
		At     time.Time
		Pruned bool   // true if the log has only the input's ids
		Damage string // the line of text that a list shows for a damaged input, or ""
	}
	// Stopping says that a person or a limit has asked to stop a turn.
	Stopping struct {
		Run event.RunID
		fact.Stop
	}
	// Finished is the result of an input.
	Finished struct {
		Result
		At time.Time
	}
	// Held says that a process holds the session's lock. This process has the agent and runs the session's turns.
	Held struct{ *filelock.BusyError }
	// Freed says that no process holds the session's lock. If a turn was running, Run is the turn's run: its process
	// has ended. The next process that may make calls then records the outcome.
	Freed struct{ Run event.RunID }
	// FlowChanged says that a flow run began or ended, or that a step or an item of it was decided.
	FlowChanged struct {
		Type event.Type
		Flow string // the id of the flow run
		Step string
		Item int
		// Decision is the decision about the step, or the outcome of the flow run.
		Decision string
	}
)

func (Received) notice() {}
func (Stopping) notice() {}
func (Finished) notice() {}
func (Held) notice()     {}
func (Freed) notice()    {}

func (FlowChanged) notice() {}

// flowNotice returns the notice of an event of a flow run. For another event it returns nil.
func flowNotice(e event.Event) Notice {
	n := FlowChanged{Type: e.Type, Flow: strings.TrimPrefix(string(e.Run), event.FlowPrefix)}
	switch e.Type {
	case event.FlowStarted:
		return n
	case event.FlowStepDecided:
		// If the payload cannot be read, the notice only says that something was decided.
		d, _ := fact.Decode[fact.FlowDecided](e)
		n.Step, n.Item, n.Decision = d.Step, d.Item, d.Decision
		return n
	case event.FlowFinished:
		f, _ := fact.Decode[fact.FlowFinished](e)
		n.Decision = f.Outcome
		return n
	}
	return nil
}

// Notice applies an event of the run, and returns its notice or nil. The caller passes all events of the run in their
// order, from any log. A question is Answerable if a person was asked. It may already have an answer. For a pruned
// payload, the notice only says that something happened.
func (r *Record) Notice(e event.Event) Notice {
	switch err := r.Apply(e); {
	case e.Damage() != nil && e.Type != event.MessageReceived && e.Type != event.Requested && e.Type != event.CallEnforced:
		_ = r.factNotice(e) // the notice is not shown, but the event's type counts for later notices
		return NewWarned("damaged", e.Damage().Row())
	case err != nil:
		return NewWarned("unreadable", unreadable.With(string(e.Type)))
	case e.Class != event.Frame:
		return r.factNotice(e)
	case r.prompted && (e.Type == event.NotificationReceived || e.Type == event.ResponseReceived) && r.Update.Kind != "":
		return Updated{r.Update}
	}
	return nil
}

// factNotice returns the notice of a fact that was already applied.
func (r *Record) factNotice(e event.Event) Notice {
	switch e.Type {
	case event.MessageReceived:
		received := Received{Run: e.Run, Session: e.Session, Input: e.Input, MessageReceived: r.Received, At: e.Time,
			Pruned: e.Payload == nil}
		if damage := e.Damage(); damage != nil {
			received.Pruned, received.Damage = false, damage.Row().Text
		}
		return received
	case event.Requested:
		r.prompted = true
		return Started{Result: r.Result}
	case event.InteractionRequested:
		q := r.Question(e.Interaction)
		return Asked{Question: q.Question, Answerable: q.Expires.After(q.Asked)}
	case event.InteractionAnswered, event.InteractionLapsed:
		q := r.Question(e.Interaction)
		return Closed{Question: q.Question, Answer: q.Answer, Reason: q.Reason}
	case event.PolicyDecided, event.ReplySent:
		return r.decided(e)
	case event.ToolBlocked:
		return Blocked{Method: r.Refused[len(r.Refused)-1].Method}
	case event.CancelRequested:
		return Stopping{Run: e.Run, Stop: *r.Stopped}
	case event.Responded, event.ProviderError, event.OutcomeUnknown:
		r.prompted, r.ended = false, e.Time
	case event.CallEnforced: // the last event of the commit that writes the outcome
		if r.Outcome != "" {
			return Finished{Result: r.Result, At: r.ended}
		}
	}
	return nil
}

// decided returns the notice of the newest decision, or nil. If the decision was a yes, the notice comes only after the
// reply to the agent, because the agent may have withdrawn the request.
func (r *Record) decided(e event.Event) Notice {
	if len(r.Decisions) == 0 {
		return nil
	}
	p := r.Decisions[len(r.Decisions)-1]
	if yes := p.Effect == string(policy.Allow); e.Interaction != "" || yes != (e.Type == event.ReplySent) {
		return nil
	}
	return Decided{PolicyDecided: p}
}
