package budget

import "github.com/perlica/perlica/eventlog/message"

// ErrNotChecked means that the amounts of the budgets cannot be read. Nothing was sent.
var ErrNotChecked = message.New("budget.not-checked", "the budgets cannot be checked, so nothing was sent: %s")

// These are the package's other sentences.
var (
	refused   = message.New("budget.refused", "the budget (%s) refuses the call: %s. Nothing was sent; %s")
	nearly    = message.New("budget.nearly-used", "the budget (%s) is nearly used up: %s")
	unlimited = message.New("budget.no-limit", "the budget (%s) does not limit this provider: %s")
	exceeded  = message.New("budget.exceeded", "the budget (%s) is used up: %s")

	usedCalls  = message.New("budget.used-calls", "%s of %s calls are used")
	usedTokens = message.New("budget.used-tokens", "%s of %s tokens are used")
	usedMoney  = message.New("budget.used-money", "%s of %s is used")
	noCosts    = message.New("budget.no-costs", "%s reports no costs")
	otherCosts = message.New("budget.other-costs", "%s reports its costs in %s, not in %s")

	freeAt      = message.New("budget.free-at", "it is free again at %s")
	freeSession = message.New("budget.free-session", "a new session is free")
	freeRun     = message.New("budget.free-run", "a new run is free")
	freeOther   = message.New("budget.free-other", "a provider that reports its costs is free")

	renewedAt = message.New("budget.renewed-at", "renewed at %s")

	// leftOf are the sentences for the used amount, the limit and the remainder.
	leftOf = map[string]*message.Text{
		causeCalls:  message.New("budget.left-calls", "%s of %s calls used, %s left"),
		causeTokens: message.New("budget.left-tokens", "%s of %s tokens used, %s left"),
		causeMoney:  message.New("budget.left-money", "%s of %s used, %s left"),
	}

	// eachOf are the sentences for the limit of each session or run.
	eachOf = map[string]*message.Text{
		causeCalls:  message.New("budget.each-calls", "%s calls for each one"),
		causeTokens: message.New("budget.each-tokens", "%s tokens for each one"),
		causeMoney:  message.New("budget.each-money", "%s for each one"),
	}
)
