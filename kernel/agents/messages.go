package agents

import "github.com/perlica/perlica/eventlog/message"

// These are the sentences of the package's errors and warnings.
var (
	allDisabled    = message.New("agents.all-disabled", "every agent is disabled by the configuration")
	disabledAgent  = message.New("agents.disabled-agent", "the agent %q is disabled by the configuration")
	modeNotOffered = message.New("agents.mode-not-offered",
		"the agent has no mode %q, which would make it ask before it acts; Perlica will report every "+
			"action that the agent takes without asking")
	noMode       = message.New("agents.no-mode", "the agent has no mode %q; it has %s")
	noModel      = message.New("agents.no-model", "the agent has no model %q; it has %s")
	noModels     = message.New("agents.no-models", "the agent has no models to choose from, so it cannot use %q")
	noModes      = message.New("agents.no-modes", "the agent has no modes, so it cannot be put into %q")
	noOption     = message.New("agents.no-option", "the agent has no option %q; it has %s")
	noOptions    = message.New("agents.no-options", "the agent has no options, so %q cannot be set")
	noProvider   = message.New("agents.no-provider", "there is no provider %q")
	noValue      = message.New("agents.no-value", "the agent's option %q has no value %q; it has %s")
	notInstalled = message.New("agents.not-installed", "%s is not installed: none of its programs is on PATH")
)
