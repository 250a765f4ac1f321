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
		"the agent was answered, and neither a person nor a rule had decided")
)

// Audit checks a log against the contract. An input and a run have at most one call, and an intent has exactly one
// outcome. Nothing is sent before its intent. Every answer names its giver, and every reply follows its answer. The
// events of a run carry only the run's ids. Audit is a verify.Auditor. The zero value is ready.
//
// Audit reports nothing about events of unknown types. It reports nothing that depends on a missing payload or on
// missing events.
type Audit struct {
	// gap says that events were missing. They may have held any fact.
	gap       bool
	runs      map[event.RunID]*auditedRun
	inputs    map[event.InputID]*auditedInput
	questions map[event.InteractionID]*auditedQuestion
	// last is the run of the previous event, which is mostly the run of the next one.
	last *auditedRun
	// broken holds the rules that the current event breaks.
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
	decided int // questions that a rule answered
	replied int // replies to these
	// uncertain says that events are missing before its first event or after its intent.
	uncertain bool
}

type auditedInput struct {
	intent, prompt event.Seq
}

type auditedQuestion struct {
	run   event.RunID
	asked event.Seq
	ended event.Seq // answered, or lapsed

	resolved event.Seq
}

// NewAuditor returns a new Audit as a verify.Auditor.
func NewAuditor() verify.Auditor { return &Audit{} }

// Wants returns true for events whose payload the Audit reads: the method of a request and the giver of an answer.
func (a *Audit) Wants(t event.Type) bool {
	return t == event.RequestSent || t == event.InteractionAnswered
}

// Gap records that events are missing.
func (a *Audit) Gap() {
	a.gap = true
	for _, r := range a.runs {
		if r.outcome == 0 {
			r.uncertain = true
		}
	}
}

// Open returns the runs whose intent has no outcome, in the order of their intents. An open run is not damage: it
// is still running, or the next start records its outcome.
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

// Event processes an event and returns the rules that it breaks.
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

// runOf finds the event's run and compares its ids. An id that does not apply is empty.
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

// known returns the entry for an id, and creates it with begun if necessary.
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

// isPrompt reports whether a line is the request that makes a call.
func isPrompt(line []byte) bool {
	if !bytes.Contains(line, []byte("prompt")) { // most lines fail this cheap test
		return false
	}
	return member(line, "method") == acp.AgentMethodSessionPrompt
}

// member returns the text of a JSON object's member by its exact name. It returns the last of several, and "" if
// the member is absent.
func member(object []byte, name string) (text string) {
	var members map[string]json.RawMessage // a struct's fields would match in any case
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

// ended checks an outcome. A provider may fail before an intent exists.
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

// resolved checks the last event of a question.
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
