package record

import (
	"time"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/message"
	"github.com/perlica/perlica/interaction"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/kernel/filelock"
	"github.com/perlica/perlica/policy"
	"github.com/perlica/perlica/provider"
)

// Notice is something to show during a run. It is one of the types below. Its content is already on record.
type Notice interface{ notice() }

// The notices.
type (
	// Started says that the agent has a session and the prompt is about to leave.
	Started struct {
		Result // Run, Input, Session and Provider
		Agent  string
		Mode   string // the agent's mode, if it has modes
	}
	// Updated is an update of the agent.
	Updated struct{ provider.Update }
	// Asked is a question for a person. If no person can answer, the question is closed at once.
	Asked struct {
		interaction.Question
		Request    string // the id of the agent's request in the agent's spelling
		Answerable bool
	}
	// Closed is the end of a question. The question lacks its Subject.
	Closed struct {
		Question interaction.Question
		Request  string
		Answer   *interaction.Answer // nil without an answer
		Reason   interaction.Reason  // the reason for the lack of an answer
	}
	// Decided says that a rule or a mode answered instead of a person.
	Decided struct {
		fact.PolicyDecided
		Request string // the id of the agent's request in the agent's spelling
	}
	// Blocked is a request of the agent that was refused.
	Blocked struct{ Method string }
	// Warned is a fault that does not end the run.
	Warned struct {
		Subtype, Detail string
		message.Coded
	}
)

// NewWarned returns a warning with a sentence as its detail.
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

// These notices come only from Follow and Reading, because the process that runs a turn knows these things.
type (
	// Received is an input that was accepted.
	Received struct {
		Run     event.RunID
		Session event.SessionID
		Input   event.InputID
		fact.MessageReceived
		At     time.Time
		Pruned bool   // the log has only the ids
		Damage string // the row of a damaged input
	}
	// Stopping says that a person or a limit stops a turn.
	Stopping struct {
		Run event.RunID
		fact.Stop
	}
	// Finished has the result of an input.
	Finished struct {
		Result
		At time.Time
	}
	// Held names the holder of the session, which has the agent and the right to run turns in it.
	Held struct{ *filelock.BusyError }
	// Freed says that no process holds the session. During a turn, Run names the turn's run: its process is
	// gone, and the next start that may make calls records the outcome.
	Freed struct{ Run event.RunID }
)

func (Received) notice() {}
func (Stopping) notice() {}
func (Finished) notice() {}
func (Held) notice()     {}
func (Freed) notice()    {}

// Notice applies an event of the run and returns its notice, or nil. The caller passes the run's events in
// their order, from the first one on, from any log. A question is Answerable if a person was asked; it may
// have an answer by now. For a removed payload, the notice says only that something happened.
func (r *Record) Notice(e event.Event) Notice {
	switch err := r.Apply(e); {
	case e.Damage() != nil && e.Type != event.MessageReceived && e.Type != event.Requested && e.Type != event.CallEnforced:
		_ = r.factNotice(e) // the type alone counts
		return Warned{Subtype: "damaged", Detail: e.Damage().Row()}
	case err != nil:
		return NewWarned("unreadable", unreadable.With(string(e.Type)))
	case e.Class != event.Frame:
		return r.factNotice(e)
	case r.prompted && (e.Type == event.NotificationReceived || e.Type == event.ResponseReceived) && r.Update.Kind != "":
		return Updated{r.Update}
	}
	return nil
}

// factNotice is Notice for an applied fact.
func (r *Record) factNotice(e event.Event) Notice {
	switch e.Type {
	case event.MessageReceived:
		received := Received{Run: e.Run, Session: e.Session, Input: e.Input, MessageReceived: r.Received, At: e.Time,
			Pruned: e.Payload == nil}
		if damage := e.Damage(); damage != nil {
			received.Pruned, received.Damage = false, damage.Row()
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
	case event.CallEnforced: // the last event of the commit with the outcome
		if r.Outcome != "" {
			return Finished{Result: r.Result, At: r.ended}
		}
	}
	return nil
}

// decided returns the notice of the newest decision, or nil. The notice of a yes follows the reply to the
// agent, because the agent may have withdrawn the request.
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
