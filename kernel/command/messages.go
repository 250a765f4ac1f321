package command

import "github.com/perlica/perlica/eventlog/message"

// These are the sentences of the commands' errors. Each has a code.
var (
	agentEnded    = message.New("command.agent-ended", "the agent has just ended; the next input starts it again")
	cancelledBy   = message.New("command.cancelled-by", "/cancel by %s from the %s")
	inThisSession = message.New("command.in-this-session",
		"this is the session that you are in; /discard takes it off the lists and leaves it")
	needsText   = message.New("command.needs-text", "that option asks for a text: write it after the number")
	noAllowOnce = message.New("command.no-allow-once",
		"the agent offers no way to allow this once; /choose takes any of its options")
	noCompact = message.New("command.no-compact",
		"this agent has no /compact of its own; agents shorten their context by themselves when it is full, and "+
			"/clear goes on in a new session")
	noQuestion      = message.New("command.no-question", "no question waits")
	noQuestionShown = message.New("command.no-question-shown", "no question waits that /pending has shown")
	noRejectOnce    = message.New("command.no-reject-once",
		"the agent offers no way to reject this once; /choose takes any of its options, /cancel stops the turn")
	noTurnHere = message.New("command.no-turn-here",
		"no turn is under way here; /cancel RUN stops one elsewhere")
	nothingToName = message.New("command.nothing-to-name",
		"nothing was said in this session that could name it; /save NAME does")
)
