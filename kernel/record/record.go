// Package record derives everything about a run from its events alone. That is its result, its questions, its notices,
// and the earlier turns of its session.
//
// A Record adds up the events of one run. Follow and Reading convert the events of a log to notices, during a turn and
// after it. Any process may run the turn. The package reads logs of this machine and copies of other machines' logs. It
// writes nothing, decides nothing and calls no agent. It checks the lock of a run or a session to find out whether a
// process is alive.
//
// An iteration runs in the caller's goroutine. The package starts no goroutines.
package record

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"iter"
	"slices"
	"time"

	"github.com/coder/acp-go-sdk"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/message"
	"github.com/perlica/perlica/interaction"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/policy"
	"github.com/perlica/perlica/provider"
)

// Record has everything that follows from the events of a run. Only Apply decodes these events: results, stories,
// statistics and recovery all use a Record. The zero value is a run without events. If only some events are applied,
// for example only the facts, the Record knows less.
type Record struct {
	Result
	Refs     event.Refs // the references of the run; with the agent's session after it is known
	First    event.Seq  // the number of the first applied event
	At       time.Time  // the time of the input, or of the first event without an input
	Withheld bool       // true if the payload of an applied event is missing; Pruned concerns the facts alone

	Received    fact.MessageReceived
	Intended    bool // true if the intent was applied
	FirstUpdate time.Duration
	NoticedBy   string // NoticedBy and Known are copied from fact.Failed
	Known       string
	// KnownMessage is the code of the sentence in Known, with the inserted values.
	KnownMessage message.Coded

	Sent     bool            // true if the prompt is recorded; it is recorded right before it is sent
	Lines    int             // the number of the agent's lines after the prompt
	Answered bool            // true if one of these lines is a response
	Said     Messages        // the agent's messages after the prompt
	Update   provider.Update // the update in the newest applied event, or the zero value

	Questions  []Question // in the order of the events
	Decisions  []fact.PolicyDecided
	Withdrawn  int                // the number of requests that the agent withdrew before a rule's or a mode's answer
	Refused    []fact.ToolBlocked // refused requests of the agent
	Unreadable int                // the number of tools that ran without a question and have an unreadable payload

	questionIndex map[event.InteractionID]int // indexes into Questions
	prompted      bool                        // true while the agent's updates belong to the run; used by Notice
	ended         time.Time                   // the time of the outcome; used by Notice
}

// Question is a question of a run, together with its end.
type Question struct {
	interaction.Question
	Answer *interaction.Answer // nil if no answer came
	Reason interaction.Reason  // the reason why no answer came
	Closed time.Time           // the time of the question's end; zero if the question is open
	Unsent bool                // true if the answer came after the agent had stopped waiting
}

// Read applies the events of a run that q selects. An event that cannot be decoded comes from a later version, and only
// its type is used. The error comes from the log.
func Read(ctx context.Context, log event.Reader, run event.RunID, q event.Query) (*Record, error) {
	r := &Record{Result: Result{Run: run}, Refs: event.Refs{Run: run}}
	q.Run = run
	for e, err := range log.Events(ctx, q) {
		if err != nil {
			return nil, err
		}
		_ = r.Apply(e)
	}
	return r, nil
}

// ReadResult returns the result of a run. If the run has no outcome yet, Outcome is empty. The error comes from the
// log, or from Apply for a fact that the result needs.
func ReadResult(ctx context.Context, log event.Reader, run event.RunID) (Result, error) {
	r := Record{Result: Result{Run: run, Replayed: true}}
	for e, err := range log.Events(ctx, event.Query{Run: run, Class: event.Fact}) {
		if err != nil {
			return r.Result, err
		}
		if err := r.Apply(e); err != nil && slices.Contains(resulting, e.Type) {
			return r.Result, err
		}
	}
	return r.Result, nil
}

// Content yields the parts of a run's messages that are not text, with their data, in the order of Result.Content. It
// omits pruned parts.
func Content(ctx context.Context, log event.Reader, run event.RunID) iter.Seq2[provider.Block, error] {
	return func(yield func(provider.Block, error) bool) {
		rec := Record{Result: Result{Run: run}}
		for e, err := range log.Events(ctx, event.Query{Run: run, Class: event.Frame}) {
			if err != nil {
				yield(provider.Block{}, err)
				return
			}
			known := len(rec.Said.Blocks)
			_ = rec.Apply(e) // Apply returns no error for a line
			if len(rec.Said.Blocks) > known && !yield(*rec.Update.Block, nil) {
				return
			}
		}
	}
}

// Pictures yields the pictures in the results of a run's tools, in the order of the lines. An agent may report the same
// picture several times. Pruned pictures are omitted.
func Pictures(ctx context.Context, log event.Reader, run event.RunID) iter.Seq2[provider.Block, error] {
	return func(yield func(provider.Block, error) bool) {
		rec := Record{Result: Result{Run: run}}
		for e, err := range log.Events(ctx, event.Query{Run: run, Class: event.Frame}) {
			if err != nil {
				yield(provider.Block{}, err)
				return
			}
			// Most lines have no picture, and decoding all of them would take longer than reading them.
			if e.Type != event.RequestSent && !bytes.Contains(e.Payload, []byte(`"image"`)) {
				continue
			}
			_ = rec.Apply(e) // Apply returns no error for a line
			if !rec.Sent || rec.Update.Tool == nil {
				continue
			}
			for _, b := range rec.Update.Tool.Pictures() {
				if !yield(b, nil) {
					return
				}
			}
		}
	}
}

// resulting has the types of the facts that a result needs.
var resulting = []event.Type{
	event.MessageReceived, event.CancelRequested, event.PolicyUnasked,
	event.Responded, event.ProviderError, event.OutcomeUnknown, event.CallEnforced,
}

// Apply adds an event of the run. Many types of events change nothing. The error means that the payload cannot be
// decoded. In that case, or if the payload is missing, Apply uses only the event's type.
func (r *Record) Apply(e event.Event) error {
	if r.First == 0 {
		r.First, r.At = e.Seq, e.Time
	}
	r.Session, r.Input = cmp.Or(r.Session, e.Session), cmp.Or(r.Input, e.Input)
	if e.Conversation != "" || r.Refs.Trace == "" {
		r.Refs = e.Refs
		r.Refs.Interaction = ""
	}
	r.Withheld = r.Withheld || e.Payload == nil
	damage := e.Damage()
	if damage != nil && r.Damage == "" {
		r.Damage = damage.Row().Text
	}
	r.Update = provider.Update{}
	if e.Class == event.Frame {
		r.frame(e)
		return nil
	}
	r.Pruned = r.Pruned || e.Payload == nil && damage == nil
	if read := readers[e.Type]; read != nil {
		return read(r, e)
	}
	return nil
}

// readers maps each type of fact to the function that applies it.
var readers = map[event.Type]func(*Record, event.Event) error{
	event.MessageReceived: reader(func(r *Record, e event.Event, p *fact.MessageReceived) {
		r.At, r.Received, r.Provider = e.Time, *p, p.Provider
	}),
	event.Requested: reader(func(r *Record, _ event.Event, p *fact.Requested) {
		r.Intended, r.Provider = true, cmp.Or(r.Provider, p.Provider)
	}),
	event.CancelRequested: reader(func(r *Record, e event.Event, p *fact.Stop) {
		if e.Payload == nil {
			*p = fact.NewStop(e.Actor, reasonPruned)
			if damage := e.Damage(); damage != nil {
				*p = fact.NewStop(e.Actor, damage.Row())
			}
		}
		r.Stopped = p
	}),
	event.InteractionRequested: reader(func(r *Record, e event.Event, p *interaction.Question) {
		p.ID, p.Refs, p.Asked, p.Writer = e.Interaction, e.Refs, e.Time, e.Writer
		r.question(e).Question = *p
	}),
	event.InteractionAnswered: reader(func(r *Record, e event.Event, p *interaction.Answer) {
		q := r.question(e)
		q.Answer, q.Closed = p, e.Time
	}),
	event.InteractionLapsed: reader(func(r *Record, e event.Event, p *interaction.Resolution) {
		q := r.question(e)
		q.Reason, q.Closed = p.Reason, e.Time
	}),
	event.PolicyDecided: reader(func(r *Record, _ event.Event, p *fact.PolicyDecided) {
		r.Decisions = append(r.Decisions, *p)
	}),
	event.ReplyFailed: reader(func(r *Record, e event.Event, p *fact.ReplySent) {
		n := len(r.Decisions)
		switch {
		case p.Error != provider.ErrReplied.Error():
		case e.Interaction != "":
			r.question(e).Unsent = true
		case n > 0: // the newest decision is the one whose reply failed
			r.Decisions, r.Withdrawn = r.Decisions[:n-1], r.Withdrawn+1
		}
	}),
	event.PolicyUnasked: reader(func(r *Record, e event.Event, p *fact.UnaskedTool) {
		if e.Payload == nil {
			r.Unreadable++
			return
		}
		r.Unasked = append(r.Unasked, *p)
	}),
	event.ToolBlocked: reader(func(r *Record, _ event.Event, p *fact.ToolBlocked) {
		p.Params = nil // params may be large
		r.Refused = append(r.Refused, *p)
	}),
	event.Responded: reader(func(r *Record, _ event.Event, p *fact.Responded) {
		r.Provider = cmp.Or(r.Provider, p.Provider)
		r.Outcome, r.Text, r.Content, r.StopReason, r.Usage, r.Cost, r.Calls = OutcomeResponded, p.Text, p.Content,
			p.StopReason, p.Usage, p.Cost, 1
		r.OfSession = p.OfSession
		r.Duration, r.FirstUpdate = milliseconds(p.DurationMS), milliseconds(p.FirstMS)
	}),
	event.ProviderError: reader(func(r *Record, _ event.Event, p *fact.Failed) { r.failed(OutcomeProviderError, *p) }),
	event.OutcomeUnknown: reader(func(r *Record, _ event.Event, p *fact.Failed) {
		r.Calls = 1
		r.failed(OutcomeUnknown, *p)
	}),
	event.CallEnforced: reader(func(r *Record, e event.Event, p *fact.Enforced) {
		if e.Payload != nil {
			r.Calls, r.Blocked, r.Permissions = p.Calls, p.Blocked, p.Permissions
		}
	}),
}

// reader returns a function that decodes the payload and calls the function "read" with P, a pointer to it. If the
// payload is missing or cannot be decoded, P points to an empty payload.
func reader[P any](read func(*Record, event.Event, P)) func(*Record, event.Event) error {
	return func(r *Record, e event.Event) error {
		p, err := fact.DecodeNew[P](e)
		read(r, e, p)
		if e.Payload == nil {
			return nil
		}
		return err
	}
}

func milliseconds(n int64) time.Duration { return time.Duration(n) * time.Millisecond }

func (r *Record) failed(outcome Outcome, p fact.Failed) {
	r.Outcome, r.Text, r.Content, r.Err, r.NoticedBy, r.Known = outcome, p.Text, p.Content, p.Error, p.NoticedBy, p.Known
	r.KnownMessage = p.KnownMessage
	r.Duration = milliseconds(p.DurationMS)
}

// question returns the question that an event belongs to. If the question is new, question adds it to the record.
func (r *Record) question(e event.Event) *Question {
	i, known := r.questionIndex[e.Interaction]
	if !known {
		if i = len(r.Questions); i == 0 {
			r.questionIndex = map[event.InteractionID]int{}
		}
		r.questionIndex[e.Interaction] = i
		r.Questions = append(r.Questions, Question{Question: interaction.Question{ID: e.Interaction, Refs: e.Refs}})
	}
	return &r.Questions[i]
}

// Question returns the question with this id.
func (r *Record) Question(id event.InteractionID) Question {
	if i, known := r.questionIndex[id]; known {
		return r.Questions[i]
	}
	return Question{Question: interaction.Question{ID: id}}
}

func (r *Record) frame(e event.Event) {
	switch e.Type {
	case event.RequestSent:
		var v struct{ Method string }
		r.Sent = r.Sent || json.Unmarshal(e.Payload, &v) == nil && v.Method == acp.AgentMethodSessionPrompt
	case event.NotificationReceived, event.ResponseReceived:
		u, ok := provider.ParseUpdate(e.Payload, string(e.Conversation))
		if r.Sent {
			r.Said.Add(&u)
		}
		if ok {
			r.Update = u
		}
		if !r.Sent {
			return
		}
		if e.Type == event.ResponseReceived {
			r.Update = r.Said.End()
		}
		r.Lines++
		r.Answered = r.Answered || e.Type == event.ResponseReceived
	}
}

// Counted counts the run's questions, as fact.Enforced does.
func (r *Record) Counted() (p fact.Permissions) {
	decided := func(yes bool) {
		if yes {
			p.Allowed++
		} else {
			p.Denied++
		}
	}
	for _, q := range r.Questions {
		if !q.Asked.IsZero() {
			p.Asked++
		}
		switch {
		case q.Unsent:
		case q.Answer != nil:
			for _, o := range q.Options {
				if o.ID == q.Answer.Option {
					decided(o.Allows())
				}
			}
		case q.Reason == interaction.Unattended || q.Reason == interaction.TimeUp:
			p.Unanswered++
		}
	}
	p.Asked += r.Withdrawn
	for _, d := range r.Decisions {
		p.Asked++
		if d.Effect != "" { // an empty effect means that the payload could not be decoded
			decided(d.Effect == string(policy.Allow))
		}
	}
	return p
}

// Progress returns a sentence that says how far a run without an outcome came.
func (r *Record) Progress() *message.Text {
	switch {
	case !r.Sent && r.Withheld:
		return intentPruned
	case !r.Sent:
		return intentOnly
	case r.Answered:
		return answerUnused.With(lines(r.Lines))
	}
	return beingSent.With(lines(r.Lines))
}
