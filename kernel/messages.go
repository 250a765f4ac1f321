package kernel

import "github.com/perlica/perlica/eventlog/message"

// These are the kernel's sentences: its errors, its warnings, and the reasons that it records.
var (
	agentUnsure      = message.New("kernel.agent-unsure", "the agent does not know the result of the prompt")
	ambiguousOptions = message.New("kernel.ambiguous-options",
		"%d options of this question share an id with another one, so nobody can choose them: %s")
	cancelUnconfirmed = message.New("kernel.cancel-unconfirmed",
		"the agent did not confirm the cancellation, so Perlica ended it")
	diskLow = message.New("kernel.disk-low",
		"only %s of disk space are free at %s: free some, because a run ends when its log cannot be written")
	emptyName    = message.New("kernel.empty-name", "a session's name cannot be empty")
	endedAtOnce  = message.New("kernel.ended-at-once", "ended at once")
	formDeclined = message.New("kernel.form-declined", "Perlica declined a form of the agent: %s")
	inputDiffers = message.New("kernel.input-differs",
		"the input %s was called before with another text or other attachments: sha256 %s is recorded, %s was "+
			"given")
	inputReserved = message.New("kernel.input-reserved",
		"the input id %s belongs to a flow or a schedule: give the input another id")
	intentsLost = message.New("kernel.intents-lost",
		"the event log no longer contains the calls of %s, which were made before; their outcome counts as "+
			"unknown")
	labelAgain       = message.New("kernel.label-again", "enter them again")
	labelGoOn        = message.New("kernel.label-go-on", "go on")
	labelGoOnAddress = message.New("kernel.label-go-on-address", "go on: I open the address myself")
	labelSend        = message.New("kernel.label-send", "send these values")
	logFailed        = message.New("kernel.log-failed",
		"the event log failed while the input waited; nothing was sent")
	longName = message.New("kernel.long-name",
		"a session's name can have at most 200 bytes and no control characters")
	mayHaveLeft  = message.New("kernel.may-have-left", "the prompt may have been sent, but no answer came")
	modeGone     = message.New("kernel.mode-gone", "the agent no longer offers the mode %s")
	modelGone    = message.New("kernel.model-gone", "the agent no longer offers the model %s")
	noDelete     = message.New("kernel.no-delete", "%s does not support the deletion of its sessions")
	noStopReason = message.New("kernel.no-stop-reason", "the agent gave no reason for the end of its turn")
	noSuchOption = message.New("kernel.no-such-option",
		"the answer of %s is not one of the options, so Perlica told the agent that the question was "+
			"cancelled")
	noTurn      = message.New("kernel.no-turn", "no turn is under way")
	notCompared = message.New("kernel.not-compared",
		"the record does not show whether the earlier call with this input id had this text")
	notRegular    = message.New("kernel.not-regular", "it is not a regular file")
	optionGone    = message.New("kernel.option-gone", "the agent's option %s could not be set back to %s: %s")
	otherMode     = message.New("kernel.other-mode", "the agent is now in the mode %s, which nobody chose")
	processesLeft = message.New("kernel.processes-left",
		"processes of the agent kept running after its end, and Perlica ended them: %s")
	programFailed = message.New("kernel.program-failed", "the policy program %s failed, so a person is asked: %s")
	soundNotTaken = message.New("kernel.sound-not-taken",
		"the agent does not take sounds, so it gets the sound as a file")
	soundTooLarge = message.New("kernel.sound-too-large",
		"the sound is larger than 1 MiB, so the agent gets it as a file")
	stopped       = message.New("kernel.stopped", "stopped: %s")
	stoppedEarly  = message.New("kernel.stopped-early", "the turn was stopped before the prompt was sent: %s")
	turnCancelled = message.New("kernel.turn-cancelled", "the turn was cancelled")
	unreachable   = message.New("kernel.unreachable", "other processes cannot answer this question: %s")
	whyByItself   = message.New("kernel.by-itself",
		"it ran without a question, in a turn that the agent began by itself")
	whyByItselfRefused = message.New("kernel.by-itself-refused",
		"it ran although it was refused, in a turn that the agent began by itself")
	whyCrowded      = message.New("kernel.crowded", "the agent reported it in more than %d different versions")
	whyFormApproval = message.New("kernel.form-approval",
		"the agent asks for approval in a form, but rules cannot answer it")
	whyFreed = message.New("kernel.freed",
		"it ran without a question, because of an earlier 'always allow'")
	whyModeChanged     = message.New("kernel.mode-changed", "the agent changed its mode and nobody was asked")
	whyModeChangedFrom = message.New("kernel.mode-changed-from",
		"the agent changed its mode from %s and nobody was asked")
	whyModeDeny     = message.New("kernel.mode-deny", "the permission mode is deny")
	whyNoWebAddress = message.New("kernel.no-web-address", "its address is not a web address")
	whyOpenAddress  = message.New("kernel.open-address",
		"the agent wants you to open this address: Perlica does not open it")
	whyOtherThanAllowed = message.New("kernel.other-than-allowed", "it differs from the call that was allowed: %s")
	whyRan              = message.New("kernel.ran", "it ran and nobody was asked")
	whyAskedLater       = message.New("kernel.asked-later", "it ran before the agent asked about it")
	whyRefusedRan       = message.New("kernel.refused-ran", "it ran although it was refused")
	whyReview           = message.New("kernel.review", "these values go to the agent; nothing has been sent yet")
	whyTried            = message.New("kernel.tried", "it was tried and failed, and nobody was asked")
	whyTriedFreed       = message.New("kernel.tried-freed",
		"it was tried without a question, because of an earlier 'always allow', and failed")
	whyValue   = message.New("kernel.value", "the agent asks for a value; your answer stays on record")
	whyValueOf = message.New("kernel.value-of",
		"the agent asks for a value, %d of %d; your answer stays on record")
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
