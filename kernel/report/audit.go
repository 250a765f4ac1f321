package report

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/coder/acp-go-sdk"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/message"
	"github.com/perlica/perlica/eventlog/verify"
)

// These are the broken rules that an Audit reports.
var (
	unknownClass = message.New("report.unknown-class", "%s is of the class %q, which does not exist")
	otherIDs     = message.New("report.other-ids",
		"%s has other ids than its run: trace %q instead of %q, session %q instead of %q, input %q instead of %q")
	intentNoRun       = message.New("report.intent-no-run", "an intent to call belongs to no run")
	secondIntent      = message.New("report.second-intent", "run %s has a second intent to call; the first is event %d")
	intentAfterPrompt = message.New("report.intent-after-prompt",
		"the intent comes after its prompt, which is event %d")
	intentAfterOutcome = message.New("report.intent-after-outcome",
		"the intent comes after its outcome, which is event %d")
	intentNoInput       = message.New("report.intent-no-input", "an intent to call has no input")
	secondIntentOfInput = message.New("report.second-intent-of-input",
		"input %s has a second intent to call; the first is event %d")
	promptNoRun        = message.New("report.prompt-no-run", "a prompt was sent that belongs to no run")
	secondPrompt       = message.New("report.second-prompt", "run %s sent a second prompt; the first is event %d")
	promptBeforeIntent = message.New("report.prompt-before-intent",
		"a prompt was sent before the intent to call was on record")
	secondPromptOfInput = message.New("report.second-prompt-of-input",
		"a second prompt was sent for input %s; the first is event %d")
	noRun            = message.New("report.no-run", "%s belongs to no run")
	secondOutcome    = message.New("report.second-outcome", "run %s has a second outcome; the first is event %d")
	outcomeNoIntent  = message.New("report.outcome-no-intent", "run %s has an outcome without an intent to call")
	noQuestion       = message.New("report.of-no-question", "%s belongs to no question")
	otherRun         = message.New("report.other-run", "%s belongs to another run than its question")
	askedTwice       = message.New("report.asked-twice", "the question was asked before, in event %d")
	beforeQuestion   = message.New("report.before-question", "%s comes before its question")
	endedTwice       = message.New("report.ended-twice", "the question had ended already, in event %d")
	answerNoName     = message.New("report.answer-no-name", "an answer does not name the person who gave it")
	resolvedTwice    = message.New("report.resolved-twice", "the question was resolved already, in event %d")
	repliedEarly     = message.New("report.replied-early", "the agent got the answer before the question ended")
	repliedUndecided = message.New("report.replied-undecided",
		"the agent got an answer although neither a person nor a rule had decided")
)

// Audit checks a log against Perlica's promises. An input and a run have at most one call, and an intent has exactly
// one outcome. No prompt is sent before its intent. Every answer has the name of its giver, and every reply follows its
// answer. The events of a run have only the run's ids. Audit is a verify.Auditor. The zero value is ready.
//
// Audit reports nothing about events of unknown types. If a payload or events are missing, it does not report faults
// that may come from the loss.
type Audit struct {
	// gap means that events were missing. They could have been of any type.
	gap       bool
	runs      map[event.RunID]*auditedRun
	inputs    map[event.InputID]*auditedInput
	questions map[event.InteractionID]*auditedQuestion
	// last is the run of the previous event. It often saves a lookup in runs, because the next event mostly has the
	// same run.
	last *auditedRun
	// broken has the rules that the current event breaks.
	broken []*message.Text
}

type auditedRun struct {
	id      event.RunID
	trace   event.TraceID
	session event.SessionID
	input   event.InputID

	intent  event.Seq
	prompt  event.Seq
	outcome event.Seq
	decided int // the number of questions that a rule or a mode answered
	replied int // the number of replies to such questions
	// uncertain means that events are missing before the run's first event or after its intent.
	uncertain bool
}

type auditedInput struct {
	intent, prompt event.Seq
}

type auditedQuestion struct {
	run   event.RunID
	asked event.Seq
	ended event.Seq // the event with the answer, or with the end without an answer

	resolved event.Seq
}

// NewAuditor returns a new Audit as a verify.Auditor.
func NewAuditor() verify.Auditor { return &Audit{} }

// Wants reports whether the Audit needs the payloads of a type. It needs the method of a request and the person of an
// answer.
func (a *Audit) Wants(t event.Type) bool {
	return t == event.RequestSent || t == event.InteractionAnswered
}

// Gap tells the Audit that events are missing.
func (a *Audit) Gap() {
	a.gap = true
	for _, r := range a.runs {
		if r.outcome == 0 {
			r.uncertain = true
		}
	}
}

// Open returns the runs with an intent and no outcome, in the order of the intents. Such a run is not damage: it is
// still running, or the next process records its outcome.
func (a *Audit) Open() []event.RunID {
	var list []*auditedRun
	for _, r := range a.runs {
		if r.intent > 0 && r.outcome == 0 && !r.uncertain {
			list = append(list, r)
		}
	}
	slices.SortFunc(list, func(x, y *auditedRun) int { return int(x.intent - y.intent) })
	ids := make([]event.RunID, len(list))
	for i, r := range list {
		ids[i] = r.id
	}
	return ids
}

// Event checks an event and returns the rules that it breaks.
func (a *Audit) Event(e *event.Event) []*message.Text {
	a.broken = a.broken[:0]
	if e.Class != event.Fact && e.Class != event.Frame {
		a.breaks(unknownClass.With(e.Type, e.Class))
	}
	var r *auditedRun
	if e.Run != "" {
		r = a.runOf(e)
	}
	switch e.Type {
	case event.Requested:
		a.requested(e, r)
	case event.RequestSent:
		if isPrompt(e.Payload) {
			a.prompted(e, r)
		}
	case event.Responded, event.ProviderError, event.OutcomeUnknown:
		a.ended(e, r)
	case event.InteractionRequested, event.InteractionAnswered, event.InteractionLapsed:
		a.question(e)
	case event.InteractionResolved:
		a.resolved(e)
	case event.PolicyDecided:
		if r != nil {
			r.decided++
		}
	case event.ReplySent, event.ReplyFailed:
		a.replied(e, r)
	}
	return a.broken
}

func (a *Audit) breaks(rule *message.Text) { a.broken = append(a.broken, rule) }

// runOf returns the event's run, and checks that the event has the same ids as the run. An empty id is not compared.
func (a *Audit) runOf(e *event.Event) *auditedRun {
	r := a.last
	if r == nil || r.id != e.Run {
		r = known(&a.runs, e.Run, auditedRun{id: e.Run, uncertain: a.gap})
		a.last = r
	}
	if same(&r.trace, e.Trace) && same(&r.session, e.Session) && same(&r.input, e.Input) {
		return r
	}
	a.breaks(otherIDs.With(e.Type, e.Trace, r.trace, e.Session, r.session, e.Input, r.input))
	return r
}

func same[T ~string](have *T, is T) bool {
	if *have == "" {
		*have = is
	}
	return is == "" || *have == is
}

// known returns the entry for an id. If the id is new, known first adds an entry with the value in the parameter
// "begun".
func known[K comparable, V any](all *map[K]*V, id K, begun V) *V {
	if *all == nil {
		*all = map[K]*V{}
	}
	if (*all)[id] == nil {
		(*all)[id] = &begun
	}
	return (*all)[id]
}

func (a *Audit) requested(e *event.Event, r *auditedRun) {
	if r == nil {
		a.breaks(intentNoRun)
		return
	}
	if r.intent > 0 {
		a.breaks(secondIntent.With(r.id, r.intent))
	} else {
		r.intent = e.Seq
	}
	if r.prompt > 0 {
		a.breaks(intentAfterPrompt.With(r.prompt))
	}
	if r.outcome > 0 {
		a.breaks(intentAfterOutcome.With(r.outcome))
	}
	if e.Input == "" {
		a.breaks(intentNoInput)
		return
	}
	in := known(&a.inputs, e.Input, auditedInput{})
	if in.intent > 0 {
		a.breaks(secondIntentOfInput.With(e.Input, in.intent))
		return
	}
	in.intent = e.Seq
}

// isPrompt reports whether a line is a session/prompt request.
func isPrompt(line []byte) bool {
	if !bytes.Contains(line, []byte("prompt")) { // a cheap test that most lines fail
		return false
	}
	return member(line, "method") == acp.AgentMethodSessionPrompt
}

// member returns the string value of an object's member with exactly this name. If the name occurs several times,
// member returns the last value. If the member is absent, it returns "".
func member(object []byte, name string) (text string) {
	var members map[string]json.RawMessage // a struct would also match names in another case
	if json.Unmarshal(object, &members) != nil || json.Unmarshal(members[name], &text) != nil {
		return ""
	}
	return text
}

func (a *Audit) prompted(e *event.Event, r *auditedRun) {
	if r == nil {
		a.breaks(promptNoRun)
		return
	}
	if r.prompt > 0 {
		a.breaks(secondPrompt.With(r.id, r.prompt))
	} else {
		r.prompt = e.Seq
	}
	if r.intent == 0 && !r.uncertain {
		a.breaks(promptBeforeIntent)
	}
	if r.input == "" {
		return
	}
	in := known(&a.inputs, r.input, auditedInput{})
	if in.prompt > 0 && in.prompt != r.prompt {
		a.breaks(secondPromptOfInput.With(r.input, in.prompt))
		return
	}
	in.prompt = e.Seq
}

// ended checks an outcome. An outcome with a provider's error may have no intent.
func (a *Audit) ended(e *event.Event, r *auditedRun) {
	switch {
	case r == nil:
		a.breaks(noRun.With(e.Type))
		return
	case r.outcome > 0:
		a.breaks(secondOutcome.With(r.id, r.outcome))
		return
	case r.intent == 0 && !r.uncertain && e.Type != event.ProviderError:
		a.breaks(outcomeNoIntent.With(r.id))
	}
	r.outcome = e.Seq
}

func (a *Audit) question(e *event.Event) {
	if e.Interaction == "" {
		a.breaks(noQuestion.With(e.Type))
		return
	}
	q := known(&a.questions, e.Interaction, auditedQuestion{run: e.Run})
	if q.run != e.Run {
		a.breaks(otherRun.With(e.Type))
	}
	if e.Type == event.InteractionRequested {
		if q.asked > 0 {
			a.breaks(askedTwice.With(q.asked))
		}
		q.asked = e.Seq
		return
	}
	if q.asked == 0 && !a.gap {
		a.breaks(beforeQuestion.With(e.Type))
	}
	if q.ended > 0 {
		a.breaks(endedTwice.With(q.ended))
	} else {
		q.ended = e.Seq
	}
	if e.Type == event.InteractionAnswered && e.Payload != nil && member(e.Payload, "by") == "" {
		a.breaks(answerNoName)
	}
}

// resolved checks the resolution of a question.
func (a *Audit) resolved(e *event.Event) {
	q := a.questions[e.Interaction]
	if q == nil {
		return
	}
	if q.resolved > 0 {
		a.breaks(resolvedTwice.With(q.resolved))
		return
	}
	q.resolved = e.Seq
}

// replied checks a reply to the agent. The reply to a question follows the question's end. Any other reply follows
// the decision of a rule.
func (a *Audit) replied(e *event.Event, r *auditedRun) {
	if e.Interaction != "" {
		if q := a.questions[e.Interaction]; (q == nil || q.ended == 0) && !a.gap {
			a.breaks(repliedEarly)
		}
		return
	}
	if r == nil {
		return
	}
	if r.replied++; r.replied > r.decided && !r.uncertain {
		a.breaks(repliedUndecided)
	}
}
