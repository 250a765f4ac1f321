package flow

import (
	"github.com/perlica/perlica/eventlog/message"
	"github.com/perlica/perlica/kernel/fact"
)

// These are the reasons why a step is skipped or has failed without an error of its call.
var (
	whyWhenFalse  = message.New("flow.when-false", "when is false")
	whyStepFailed = message.New("flow.step-failed", "step %s failed")
	whyStepSkip   = message.New("flow.step-skipped", "step %s was skipped")
	whyWhen       = message.New("flow.when", "when: %s")
	whyEmptyText  = message.New("flow.empty-text", "the text is empty")
	whyNoCall     = message.New("flow.no-call", "run %s has no call")
	whyInnerFail  = message.New("flow.inner-failed", "the flow %s: failed")
	whyInnerEnd   = message.New("flow.inner-cancelled", "the flow %s: cancelled")
	whySent       = message.New("flow.judged-sent", "the outcome is unknown; %s judged that the prompt was sent")
	whyNotSent    = message.New("flow.judged-not-sent", "the outcome is unknown; %s judged that the prompt was not sent")
	whyStopped    = message.New("flow.stopped", "stopped: %s")
	whyAgentStop  = message.New("flow.agent-stopped", "the agent stopped: %s")
	whyItem       = message.New("flow.item-fault", "item %d: %s")
)

// These are the errors of loops and of texts.
var (
	errNotRecorded = message.New("flow.other-item", "item %d is not the recorded one")
	errNoList      = message.New("flow.for-each-kind", "for_each needs a list, not %s")
	errManyItems   = message.New("flow.many-items", "for_each has %d items; max_items is %d")
	errOtherItems  = message.New("flow.other-items", "for_each has %d items, and %d are on record")
	errNoItems     = message.New("flow.no-items", "step %s has no for_each, and no items")
	errInItems     = message.New("flow.in-items", "step %s has for_each: its texts are in items")
	errPruned      = message.New("flow.pruned", "the answer of run %s was pruned")
	errLongText    = message.New("flow.long-text", "the text has more than %d MiB")
	errMissing     = message.New("flow.missing", "the value is missing")
	errStepNoText  = message.New("flow.step-no-text", "a step is not a text; name one of its members, such as text")
)

// These are the errors of an evaluation.
var (
	inExpression   = message.New("flow.in-expression", "%s: in {{ %s }}")
	inFunction     = message.New("flow.in-function", "%s: %s")
	errSteps       = message.New("flow.many-steps", "the expression takes more than %d steps").With(maxSteps)
	errBytes       = message.New("flow.many-bytes", "the expression makes more than %d MiB of text").With(maxBytes >> 20)
	errNoName      = message.New("flow.no-name", "there is no %s here")
	errKind        = message.New("flow.kind", "expected %s, not %s")
	errNeeds       = message.New("flow.needs", "%s needs %s, not %s")
	errNeedsTwo    = message.New("flow.needs-two", "%s needs two texts or two numbers")
	errNotThese    = message.New("flow.needs-two-not", "%s needs two texts or two numbers, not %s and %s")
	errNoNumbers   = message.New("flow.no-numbers", "%s does not take numbers")
	errNoTexts     = message.New("flow.no-texts", "%s does not take texts")
	errNoMember    = message.New("flow.no-member", "there is no member %s")
	errNotMember   = message.New("flow.not-member", "%s has no member %s")
	errPlace       = message.New("flow.place", "the place in a list must be a whole number")
	errNoElement   = message.New("flow.no-element", "the list has %d elements, and no element %s")
	errMemberName  = message.New("flow.member-name", "the name of a member must be a text")
	errNoElements  = message.New("flow.no-elements", "%s has no elements")
	errZero        = message.New("flow.zero", "division by zero")
	errContains    = message.New("flow.contains", "%s cannot contain %s")
	errNoLength    = message.New("flow.no-length", "%s has no length")
	errSeparator   = message.New("flow.separator", "the separator is empty")
	errNoNumber    = message.New("flow.no-number", "%s is not a number")
	errLongJSON    = message.New("flow.long-json", "the text has %d bytes; a text of JSON may have at most %d")
	errNotJSON     = message.New("flow.not-json", "the text is not JSON")
	errDeep        = message.New("flow.deep", "the value is nested too deeply")
	errStepNotJSON = message.New("flow.step-no-json", "a step has no JSON; name one of its members")
)

// These are the names of the kinds of values.
var (
	kindNil    = message.New("flow.kind-nil", "nil")
	kindTruth  = message.New("flow.kind-truth", "a truth value")
	kindNumber = message.New("flow.kind-number", "a number")
	kindText   = message.New("flow.kind-text", "a text")
	kindList   = message.New("flow.kind-list", "a list")
	kindObject = message.New("flow.kind-object", "an object")
	trueFalse  = message.New("flow.true-or-false", "true or false")
)

// because returns a decision with its reason.
func because(decision string, why error) fact.FlowDecided {
	t := message.Of(why)
	return fact.FlowDecided{Decision: decision, Error: t.Text, Coded: t.Coded}
}
