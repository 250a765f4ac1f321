package kernel

import "github.com/perlica/perlica/eventlog/message"

// These are the kernel's sentences: its errors, its warnings, and the reasons that it records.
var (
	agentUnsure      = message.New("kernel.agent-unsure", "the agent does not know what became of the prompt")
	ambiguousOptions = message.New("kernel.ambiguous-options",
		"%d of the agent's options share an id with another and cannot be chosen: %s")
	cancelUnconfirmed = message.New("kernel.cancel-unconfirmed",
		"the agent did not confirm the cancellation and was ended")
	diskLow = message.New("kernel.disk-low",
		"only %s free at %s: a run ends when its log cannot be written")
	emptyName    = message.New("kernel.empty-name", "a session's name cannot be empty")
	endedAtOnce  = message.New("kernel.ended-at-once", "ended at once")
	formDeclined = message.New("kernel.form-declined", "a form of the agent's was declined: %s")
	inputDiffers = message.New("kernel.input-differs",
		"the input %s was called before with another text or other attachments: sha256 %s is recorded, %s was "+
			"given")
	intentsLost = message.New("kernel.intents-lost",
		"the event log lost the intents of %s that were called before; their outcome counts as unknown")
	labelAgain       = message.New("kernel.label-again", "enter them again")
	labelGoOn        = message.New("kernel.label-go-on", "go on")
	labelGoOnAddress = message.New("kernel.label-go-on-address", "go on: I open the address myself")
	labelSend        = message.New("kernel.label-send", "send these values")
	logFailed        = message.New("kernel.log-failed",
		"the event log failed while the input waited; nothing was sent")
	longName = message.New("kernel.long-name",
		"a session's name is at most 200 bytes without control characters")
	mayHaveLeft  = message.New("kernel.may-have-left", "the prompt may have left; no answer came")
	modeGone     = message.New("kernel.mode-gone", "the agent no longer offers the mode %s")
	modelGone    = message.New("kernel.model-gone", "the agent no longer offers the model %s")
	noDelete     = message.New("kernel.no-delete", "%s does not offer to delete its sessions")
	noStopReason = message.New("kernel.no-stop-reason", "the agent gave no reason for the end of its turn")
	noSuchOption = message.New("kernel.no-such-option",
		"the answer of %s is not one of the options, so the agent got the answer cancelled")
	noTurn        = message.New("kernel.no-turn", "no turn is under way")
	notRegular    = message.New("kernel.not-regular", "it is not a regular file")
	optionGone    = message.New("kernel.option-gone", "the agent's option %s is not %s again: %s")
	otherMode     = message.New("kernel.other-mode", "the agent is in mode %s now, which was not chosen")
	processesLeft = message.New("kernel.processes-left",
		"the agent left processes without its mark, and Perlica ended them: %s")
	stopped       = message.New("kernel.stopped", "stopped: %s")
	stoppedEarly  = message.New("kernel.stopped-early", "stopped before the prompt was sent: %s")
	turnCancelled = message.New("kernel.turn-cancelled", "the turn was cancelled")
	unreachable   = message.New("kernel.unreachable", "other processes cannot answer this question: %s")
	whyByItself   = message.New("kernel.by-itself",
		"it ran in a turn that the agent began by itself, without a question")
	whyByItselfRefused = message.New("kernel.by-itself-refused",
		"it ran in a turn that the agent began by itself, although it was refused")
	whyCrowded      = message.New("kernel.crowded", "it was reported in more than %d forms")
	whyFormApproval = message.New("kernel.form-approval",
		"the agent asks for approval in a form, and no rule answers a form")
	whyFreed           = message.New("kernel.freed", "it ran and nobody was asked: a yes for good freed it")
	whyModeChanged     = message.New("kernel.mode-changed", "the agent changed its mode and nobody was asked")
	whyModeChangedFrom = message.New("kernel.mode-changed-from",
		"the agent changed its mode from %s and nobody was asked")
	whyModeDeny     = message.New("kernel.mode-deny", "the permission mode is deny")
	whyNoWebAddress = message.New("kernel.no-web-address", "its address is not a web address")
	whyOpenAddress  = message.New("kernel.open-address",
		"the agent wants you to open this address: Perlica does not open it")
	whyOtherThanAllowed = message.New("kernel.other-than-allowed", "not what was allowed: %s")
	whyRan              = message.New("kernel.ran", "it ran and nobody was asked")
	whyRefusedRan       = message.New("kernel.refused-ran", "it ran although it was refused")
	whyReview           = message.New("kernel.review", "these values go to the agent; nothing was sent yet")
	whyTried            = message.New("kernel.tried", "it was tried and failed, and nobody was asked")
	whyTriedFreed       = message.New("kernel.tried-freed",
		"it was tried and failed, and nobody was asked: a yes for good freed it")
	whyValue   = message.New("kernel.value", "the agent asks for a value; what you answer stays on record")
	whyValueOf = message.New("kernel.value-of",
		"the agent asks for a value, %d of %d; what you answer stays on record")
)

var (
	oneInput   = message.New("kernel.input", "1 input")
	manyInputs = message.New("kernel.inputs", "%d inputs")
)

// inputs returns "1 input" or a number of inputs, as a part of a sentence.
func inputs(n int) *message.Text {
	if n == 1 {
		return oneInput
	}
	return manyInputs.With(n)
}
