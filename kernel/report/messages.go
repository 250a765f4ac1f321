package report

import "github.com/perlica/perlica/eventlog/message"

// These are the titles of events.
var (
	titleInput      = message.New("report.title-input", "the input")
	titleQueued     = message.New("report.title-queued", "queued")
	titleTakenBack  = message.New("report.title-taken-back", "taken back")
	titleHistory    = message.New("report.title-history", "history cut")
	titleCall       = message.New("report.title-call", "the call is on record")
	titleAnswer     = message.New("report.title-answer", "the answer")
	titleError      = message.New("report.title-error", "provider error")
	titleUnknown    = message.New("report.title-unknown", "outcome unknown")
	titleInAll      = message.New("report.title-in-all", "in all")
	titleStopped    = message.New("report.title-stopped", "stopped")
	titleRefused    = message.New("report.title-refused", "refused")
	titleLimit      = message.New("report.title-limit", "over the limit")
	titleTimeout    = message.New("report.title-timeout", "timeout")
	titleReady      = message.New("report.title-ready", "the agent is ready")
	titleSandbox    = message.New("report.title-sandbox", "the agent's sandbox")
	titleConnection = message.New("report.title-connection", "a connection of the agent")
	titleSession    = message.New("report.title-session", "the agent's session")
	titleToAgent    = message.New("report.title-to-agent", "told the agent")
	titleQuestion   = message.New("report.title-question", "a question")
	titleReply      = message.New("report.title-reply", "an answer to a question")
	titleLate       = message.New("report.title-late", "a late or wrong answer")
	titlePolicy     = message.New("report.title-policy", "policy")
	titleHookFailed = message.New("report.title-hook-failed", "a program of yours failed")
	titleTree       = message.New("report.title-tree", "the work tree")
	titleUnasked    = message.New("report.title-unasked", "ran unasked")
	titleRemembered = message.New("report.title-remembered", "remembered")
	titleForgotten  = message.New("report.title-forgotten", "no longer remembered")
	titleNewSession = message.New("report.title-new-session", "a new session")
	titleChosen     = message.New("report.title-chosen", "chosen")
	titleJudged     = message.New("report.title-judged", "judged")
	titleNoMessage  = message.New("report.title-no-message", "a line that is no message")
	titleFlow       = message.New("report.title-flow", "a flow begins")
	titleStep       = message.New("report.title-step", "a step of a flow")
	titleFlowEnd    = message.New("report.title-flow-end", "the flow ends")
	titleSends      = message.New("report.title-sends", "the agent sends")
)

// These are the summaries of events, and their parts.
var (
	withheld    = message.New("report.withheld", "payload withheld (%d bytes)")
	inputFrom   = message.New("report.input-from", "%s (%s) to %s: %s")
	byPerson    = message.New("report.by", "by %s")
	byBecause   = message.New("report.by-because", "by %s: %s")
	historyKept = message.New("report.history-kept",
		"%s of history kept, %d left out; the budget is %d tokens")
	historyGone   = message.New("report.history-gone", "; %s no longer on record")
	promptNext    = message.New("report.prompt-next", "%s is about to get a prompt, %s on the wire")
	answeredAfter = message.New("report.answered-after", "%s after %s: %s")
	noStopReason  = message.New("report.no-stop-reason", "no stop reason")
	nothingAsked  = message.New("report.nothing-asked",
		"%s; no questions, no refusals, and nothing ran without a question")
	callsAsked = message.New("report.calls-asked",
		"%s, %s asked (%d allowed, %d denied, %d unanswered), %s refused, %d ran without asking")
	callsFreed        = message.New("report.calls-freed", ", %d allowed by an earlier permanent yes")
	nothingRuns       = message.New("report.nothing-runs", "%s: Perlica runs nothing for an agent")
	notCarriedOut     = message.New("report.not-carried-out", "%s was not carried out")
	longLine          = message.New("report.long-line", "a line of %s")
	sandboxBy         = message.New("report.sandbox-by", "%s, by %s")
	furtherHosts      = message.New("report.further-hosts", "further hosts")
	manyTimes         = message.New("report.many-times", " (%d times)")
	connectionRefused = message.New("report.connection-refused", "%s refused: %s")
	connectionOver    = message.New("report.connection-over", "%s, %s sent, %s received, in %s")
	inSandbox         = message.New("report.in-sandbox", ", in the sandbox %s")
	closeFailed       = message.New("report.close-failed", "closing it failed: %s")
	sessionClosed     = message.New("report.session-closed", "closed")
	endedWithProcess  = message.New("report.ended-with-process", "ended with its process")
	replyLost         = message.New("report.reply-lost", "%s could not be sent to the agent: %s")
	useTool           = message.New("report.use-tool", "use a tool")
	aTool             = message.New("report.a-tool", "a tool")
	notCounted        = message.New("report.not-counted", "%s, which does not count: %s")
	resolvedCancelled = message.New("report.cancelled", "cancelled")
	notSent           = message.New("report.not-sent", ", not sent")
	modeIs            = message.New("report.mode", "mode %s")
	noKind            = message.New("report.no-kind", "without a type")
	ofQuestion        = message.New("report.of-question", ", question %s")
	saidBy            = message.New("report.said-by", "%s %s, decided by %s")
	revokedBy         = message.New("report.revoked-by", "%s by %s")
	withAgent         = message.New("report.with-agent", "with %s")
	nameWithAgent     = message.New("report.name-with-agent", "%s with %s")
	asItIs            = message.New("report.as-it-is", "as it is")
	modelIs           = message.New("report.model", "model %s")
	renamedTo         = message.New("report.renamed-to", "to %s")
	isCurrent         = message.New("report.is-current", "is the current one")
	offLists          = message.New("report.off-lists", "was removed from the lists")
	flowItem          = message.New("report.flow-item", "%s, item %d: %s")
	flowItems         = message.New("report.flow-items", "%s: items: %d")
	flowStep          = message.New("report.flow-step", "%s: %s")
	flowRetry         = message.New("report.flow-retry", "%s: %s wants a new call")
	wasNotSent        = message.New("report.prompt-not-sent", "%s says that the prompt was not sent: %s")
	wasSent           = message.New("report.prompt-sent", "%s says that the prompt was sent: %s")
	milliseconds      = message.New("report.ms", "%d ms")
	nothingElse       = message.New("report.nothing-else", "nothing else is known")
	noticedLater      = message.New("report.noticed-later", "; noticed when Perlica started again")
	strategyIs        = message.New("report.strategy", "strategy %s")
	optionBy          = message.New("report.option-by", "%s (%s), by %s")
	noOutcome         = message.New("report.no-outcome", "no outcome on record yet")
	turnFailed        = message.New("report.turn-failed", "failed: %s")
	turnUnknown       = message.New("report.turn-unknown", "outcome unknown: %s")
)

// noun has the singular and the plural of a counted thing.
type noun struct{ one, many *message.Text }

// These are the counted things.
var (
	nounTurn     = noun{message.New("report.turn", "%d turn"), message.New("report.turns", "%d turns")}
	nounByte     = noun{message.New("report.byte", "%d byte"), message.New("report.bytes", "%d bytes")}
	nounCall     = noun{message.New("report.call", "%d call"), message.New("report.calls", "%d calls")}
	nounQuestion = noun{message.New("report.question", "%d question"), message.New("report.questions", "%d questions")}
	nounRequest  = noun{message.New("report.request", "%d request"), message.New("report.requests", "%d requests")}
)
