package command

import "github.com/perlica/perlica/eventlog/message"

// These are the sentences of the commands' errors. Each has a code.
var (
	agentEnded    = message.New("command.agent-ended", "the agent has just ended; the next input starts it again")
	cancelledBy   = message.New("command.cancelled-by", "%s sent /cancel from the %s")
	inThisSession = message.New("command.in-this-session",
		"you are in this session: to leave it and take it off the lists, send /discard")
	needsText   = message.New("command.needs-text", "this option needs a text: write it after the number")
	noAllowOnce = message.New("command.no-allow-once",
		"the agent offers no option that allows this only once: choose one of its options with /choose")
	noCompact = message.New("command.no-compact",
		"this agent has no /compact. Agents shorten a full context by themselves; to continue in a new "+
			"session, send /clear")
	noFlows         = message.New("command.no-flows", "the log has no flow runs")
	noBudgets       = message.New("command.no-budgets", "no budget is configured")
	noSchedules     = message.New("command.no-schedules", "no schedule is configured")
	noQuestion      = message.New("command.no-question", "no question waits")
	noQuestionShown = message.New("command.no-question-shown",
		"/pending has shown no question that still waits: send /pending")
	noRejectOnce = message.New("command.no-reject-once",
		"the agent offers no option that rejects this only once: choose one of its options with /choose, "+
			"or stop the turn with /cancel")
	noTurnHere = message.New("command.no-turn-here",
		"no turn is under way here: to stop one elsewhere, send /cancel RUN")
	nothingToName = message.New("command.nothing-to-name",
		"this session has no text yet that could be its name: send /save NAME")
)
