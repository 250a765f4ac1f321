package event

// Type names what happened. The names are a promise to readers of the log.
type Type string

const (
	MessageReceived Type = "inbound.message.received"
	// MessageQueued and MessageWithdrawn: an input waits for its turn, and was taken back before it.
	MessageQueued    Type = "inbound.message.queued"
	MessageWithdrawn Type = "inbound.message.withdrawn"
	Truncated        Type = "context.truncated"

	Requested      Type = "llm.requested"
	Responded      Type = "llm.responded"
	ProviderError  Type = "llm.provider_error"
	OutcomeUnknown Type = "llm.outcome_unknown"
	CallEnforced   Type = "llm.single_call.enforced"

	CancelRequested Type = "run.cancel_requested"
	ToolBlocked     Type = "tool.blocked"
	ToolResult      Type = "tool.result"

	RequestSent          Type = "acp.request.sent"
	NotificationSent     Type = "acp.notification.sent"
	ResponseSent         Type = "acp.response.sent"
	ClientReceived       Type = "acp.client.received"
	ClientSent           Type = "acp.client.sent"
	NotificationReceived Type = "acp.notification.received" // requests, too
	ResponseReceived     Type = "acp.response.received"
	LineMalformed        Type = "acp.line.malformed" // no JSON-RPC message
	LineOversized        Type = "acp.line.oversized" // a fact: length, hash, first 64 KiB
	RequestTimeout       Type = "acp.request.timeout"
	SessionStarted       Type = "acp.session.started"
	SessionClosed        Type = "acp.session.closed"
	LoginStarted         Type = "acp.login.started" // the agent's own command, in a terminal
	LoginEnded           Type = "acp.login.ended"
	ReplySent            Type = "acp.reply.sent"
	ReplyFailed          Type = "acp.reply.failed"

	InteractionRequested      Type = "interaction.requested"
	InteractionAnswered       Type = "interaction.answered"
	InteractionLapsed         Type = "interaction.lapsed" // closed without an answer
	InteractionAnswerRejected Type = "interaction.answer_rejected"
	InteractionResolved       Type = "interaction.resolved"

	PolicyDecided      Type = "policy.decided"
	PolicyUnasked      Type = "policy.unasked_tool"
	ApprovalRemembered Type = "approval.remembered"
	ApprovalRevoked    Type = "approval.revoked"

	SessionCreated  Type = "session.created"
	SessionRenamed  Type = "session.renamed"
	SessionSelected Type = "session.selected"
	// SessionConfigured: a mode, a model or an option was chosen in a session.
	SessionConfigured Type = "session.configured"
	SessionDeleted    Type = "session.deleted"

	ServiceStarted   Type = "service.started"
	ServiceStopped   Type = "service.stopped"
	ChannelFailed    Type = "service.channel_failed"   // it cannot be polled
	ChannelRestored  Type = "service.channel_restored" // it can again
	CursorMoved      Type = "service.cursor_moved"
	PairingOpened    Type = "service.pairing_opened"
	PairingAttempted Type = "service.pairing_attempted"
	ContactPaired    Type = "service.contact_paired"
	ContactUnpaired  Type = "service.contact_unpaired"
	ContactSession   Type = "service.contact_session" // the session in which a contact talks
	ContactChanged   Type = "service.contact_changed" // its rights, its language, what it follows
	StrangerIgnored  Type = "service.stranger_ignored"
	BridgeReceived   Type = "service.message_received"
	FilesFetched     Type = "service.files_fetched" // of a message that was received
	BridgeFinished   Type = "service.message_finished"
	BridgeQueued     Type = "service.message_queued" // to be sent
	SendStarted      Type = "service.send_started"
	BridgeSent       Type = "service.message_sent"
	SendFailed       Type = "service.send_failed"
	CardClosed       Type = "service.question_closed" // the contacts that were asked were sent how it ended

	TeamAsked Type = "service.team_question" // a question of a team's worker was put to contacts

	ProjectAdded   Type = "service.project_added" // these in the user's own log: of a bot that serves several projects
	ProjectRemoved Type = "service.project_removed"
	ProjectChosen  Type = "service.project_chosen" // by a contact
	MessageRouted  Type = "service.message_routed" // to one of the projects
	ChannelRead    Type = "service.channel_read"   // how far

	VoucherGiven   Type = "voucher.given"   // in the user's own log: a decision was made here
	VoucherRevoked Type = "voucher.revoked" // it counts no more

	WebPairingOpened    Type = "web.pairing_opened" // these, too, in the user's own log
	WebPairingAttempted Type = "web.pairing_attempted"
	WebPairingRequested Type = "web.pairing_requested"
	DevicePaired        Type = "web.device_paired"
	DeviceRevoked       Type = "web.device_revoked"
	WebRefused          Type = "web.refused"

	TeamJoined   Type = "team.joined" // these in the log of the context that is named after the team
	TeamMember   Type = "team.member"
	TeamClaimed  Type = "team.claimed"
	TeamRefused  Type = "team.refused"
	TeamCosigned Type = "team.cosigned"
	TeamAnswered Type = "team.answered"
	TeamStopped  Type = "team.stop_requested"

	RunResolved Type = "run.resolved" // a person's judgement of an outcome that is not known
	LogPruned   Type = "log.pruned"   // payloads are about to be removed: which, and why
	// LogRewritten says that nothing is left in the file of what earlier events log.pruned named.
	LogRewritten Type = "log.rewritten"
)
