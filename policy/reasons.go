package policy

import "github.com/perlica/perlica/eventlog/message"

// These are the reasons of decisions, the subjects of approvals, and the differences between calls.
var (
	whyUnasked     = message.New("policy.unasked", "no one is asked in this mode")
	whyUnaskedBut  = message.New("policy.unasked-but", "no one is asked in this mode; %s")
	whyNoAllowOnce = message.New("policy.no-allow-once", "the agent offers no way to allow this once")
	whyMayBeMeant  = message.New("policy.may-be-meant",
		"%s; the rule may apply, because the request is not clear: %s")
	whyApprovalsUnread = message.New("policy.approvals-unread", "the standing approvals cannot be read")
	whyRule            = message.New("policy.rule", "a rule says %s")
	whyRuleOf          = message.New("policy.rule-of", "a rule says %s (%s)")
	whyProgram         = message.New("policy.program", "the policy program %s says %s: %s")
	whyOrdinary        = message.New("policy.ordinary", "the mode allows ordinary requests")
	whySandboxed       = message.New("policy.sandboxed", "the mode allows ordinary requests in the agent's sandbox")
	whyStoppedToo      = message.New("policy.stopped-too", "%s; %s")
	whyReading         = message.New("policy.reading", "the mode allows reading in the working directory")
	whyMayRead         = message.New("policy.may-read",
		"a shell may understand the request in a dangerous way: %s")
	whyField       = message.New("policy.field", "%s: the field %s has the value %s")
	whyUnknownLead = message.New("policy.unknown-lead",
		"Perlica cannot find out which file this path leads to: %s")
	whyPattern       = message.New("policy.pattern", "%s all files that match a pattern: %s")
	whyModeChange    = message.New("policy.mode-change", "the agent would change its mode")
	whyModeChangeTo  = message.New("policy.mode-change-to", "the agent would change its mode to %s")
	whyFieldUnknown  = message.New("policy.field-unknown", "Perlica does not know the meaning of the field %s")
	whyCommandUnread = message.New("policy.command-unread", "the request contains a command that cannot be read")
	whyNoFile        = message.New("policy.no-file", "the agent does not say which file it would %s")
	whyFieldAsks     = message.New("policy.field-asks", "a field asks the tool to %s")
	whyNameSays      = message.New("policy.name-says", "the tool's name contains the word %s")
	whyTitleSays     = message.New("policy.title-says", "the title contains the word %s")
	whyNothingSaid   = message.New("policy.nothing-said", "the agent does not name the input of the tool")
	whyRunsAs        = message.New("policy.runs-as", "this field changes the user or the limits of the command")
	whyMoreRights    = message.New("policy.more-rights", "this field gives the tool more rights")
	whyRunsAsOwner   = message.New("policy.runs-as-owner",
		"this field lets a program run with the rights of its owner")
	exactly      = message.New("policy.exactly", "exactly `%s`")
	commandsLike = message.New("policy.commands-like", "commands like `%s`")
	kindOf       = message.New("policy.kind-of", "%s of %s")
	anyOf        = message.New("policy.any-of", "every action on %s")
	withSettings = message.New("policy.with-settings", "%s with the settings %s")
	forSession   = message.New("policy.for-session", "%s, for this session")
	inProject    = message.New("policy.in-project", "%s, in this project")
	rememberYes  = message.New("policy.remember-yes", "yes, and remember: %s")
	ranOther     = message.New("policy.ran-other", "it ran %s")
	touchedOther = message.New("policy.touched-other", "it touched %s")
	otherContent = message.New("policy.other-content", "it wrote another content")
	otherField   = message.New("policy.other-field", "it got another value for %s")
	otherKind    = message.New("policy.other-kind", "it was of the kind %s")
)

// effects are the effects of rules as words in a reason.
var effects = map[Effect]*message.Text{
	Allow: message.New("effect.allow", "allow"),
	Deny:  message.New("effect.deny", "deny"),
	Ask:   message.New("effect.ask", "ask"),
}
