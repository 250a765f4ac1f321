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

// These say where a mistake is.
var (
	inPlace = message.New("flow.in-place", "%s: %s")
	inFlow  = message.New("flow.in-flow", "the flow: %s")
	inStep  = message.New("flow.in-step", "step %s: %s")
)

// These are the mistakes in a file, and in the inputs that a person gives.
var (
	errNotFile     = message.New("flow.not-file", "this is a folder or a device; name a file")
	errLargeFile   = message.New("flow.large-file", "the file has %d bytes, and the limit is %d; shorten it")
	errFileChanged = message.New("flow.file-changed", "the file %s changed while Perlica read the flow; try again")
	errNestedFlows = message.New("flow.nested-flows", "flows are nested more than %d times; remove an inner flow")
	errNotTOML     = message.New("flow.not-toml", "line %d: %s; correct the line")
	errUnknownKey  = message.New("flow.unknown-key", "line %d: unknown key %s; correct or remove it")
	errWrongType   = message.New("flow.wrong-type", "line %d: %s has a value of a wrong type; see docs/flows.md")
	errName        = message.New("flow.name",
		"the name %q is not 1 to 64 letters, digits, dots, dashes or underscores; change it")
	errNoSteps   = message.New("flow.no-steps", "there is no [[step]]; add one")
	errManySteps = message.New("flow.step-limit",
		"there are %d steps, and the limit is %d; move some to an inner flow")
	errInputName = message.New("flow.input-name",
		"the input %q is not a name of letters, digits and underscores; rename it")
	errStepID = message.New("flow.step-id",
		"step %d: the id %q is not a name of letters, digits and underscores; change it")
	errSameID    = message.New("flow.same-id", "two steps have the id %s; rename one")
	errCycle     = message.New("flow.cycle", "the steps need each other: %s; remove one of these needs")
	errOneKind   = message.New("flow.one-kind", "a step has exactly one of text, ask and flow; add or remove one")
	errOtherStep = message.New("flow.other-step", "%s: this belongs to a step with %s; remove it")
	errChoice    = message.New("flow.choice", "%s must be one of %s, not %q")
	errRange     = message.New("flow.range", "%s must be a number from 1 to %d")
	errOptions   = message.New("flow.options", "a question needs 1 to 20 options; change options")
	errOption    = message.New("flow.option",
		"the option %q is empty, repeated, longer than 100 bytes, or has a space at its beginning or end; change it")
	errNoStep       = message.New("flow.unknown-step", "there is no step %s; correct its name")
	errNotNeeded    = message.New("flow.not-needed", "the step does not need %s; add it to needs")
	errSingleCalls  = message.New("flow.single-calls", "both steps must be single calls; remove session or for_each")
	errSameProvider = message.New("flow.same-provider", "a session stays with its provider, %q; remove provider")
	errOtherInput   = message.New("flow.other-input", "the flow %s has no input %s; correct its name")
	errInputNeeded  = message.New("flow.input-needed", "the flow %s needs the input %s; give it")
	errLargeInputs  = message.New("flow.large-inputs", "the inputs have %d bytes, and the limit is %d; shorten them")
)

// These are the mistakes in an expression that a check finds before the flow starts.
var (
	errTemplateEnd    = message.New("flow.template-end", "{{ %s has no }}; add it")
	errLongExpression = message.New("flow.long-expression",
		"the expression has %d bytes, and the limit is %d; shorten it")
	errDeepExpression = message.New("flow.deep-expression", "the expression is nested more than %d times; simplify it")
	errUnexpected     = message.New("flow.unexpected", "unexpected %q; remove it, or write an operator before it")
	errEscape         = message.New("flow.escape", `unknown escape %s; write \\ for a backslash`)
	errStringEnd      = message.New("flow.string-end", "the string that begins with %s has no end; add its quote")
	errExpected       = message.New("flow.expected", "expected %q before %s; write it")
	errExpectedName   = message.New("flow.expected-name", "expected a name before %s; write one")
	errExpectedValue  = message.New("flow.expected-value", "expected a value before %s; write one")
	errExpectedEnd    = message.New("flow.expected-end", "expected %q at the end; write it")
	errEarlyEnd       = message.New("flow.early-end", "the expression ends too early; complete it")
	errElement        = message.New("flow.element",
		"# and .name belong into the second argument of a function such as map; move them")
	errNoFunction = message.New("flow.no-function", "there is no function %s; the functions are %s")
	errArguments  = message.New("flow.arguments", "%s has %d arguments, and it takes %d to %d")
	errItem       = message.New("flow.item", "%s can be used only in the text of a step with for_each; add for_each")
	errBareName   = message.New("flow.bare-name", "%s needs a name; write %s.NAME")
	errNoVariable = message.New("flow.no-variable", "there is no %s; there are inputs, steps, item and index")
	errNoInput    = message.New("flow.no-input", "there is no input %s; declare it with [inputs.%s]")
	errStepMember = message.New("flow.step-member", "a step has no %s; it has %s")
)

// These are the errors of an evaluation.
var (
	inExpression = message.New("flow.in-expression", "%s: in {{ %s }}")
	inFunction   = message.New("flow.in-function", "%s: %s")
	errSteps     = message.New("flow.many-steps",
		"the expression needs more than %d operations; simplify it").With(maxSteps)
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
	errStepNotJSON = message.New("flow.step-no-json", "a whole step cannot become JSON; name one of its members")
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
