package event

// Flows is the value of Refs.Interaction in every FlowStarted and FlowFinished event. A query for this value finds all
// runs of flows. A flow is a graph of calls and questions in a file.
const Flows InteractionID = "flow"

// FlowPrefix begins the RunID of every flow run and the InputID of every step. No other run or input has it.
// SchedulePrefix begins the InputID of every input of a schedule, and the id of every flow run of a schedule.
const (
	FlowPrefix     = "flow:"
	SchedulePrefix = "schedule:"
)

// Type names the kind of an event. Readers of the log rely on the names, so the names never change. The rows of
// [Known] say when Perlica writes each type.
type Type string

const (
	MessageReceived  Type = "inbound.message.received"
	MessageQueued    Type = "inbound.message.queued"
	MessageWithdrawn Type = "inbound.message.withdrawn"
	Truncated        Type = "context.truncated"

	Requested      Type = "llm.requested"
	Responded      Type = "llm.responded"
	ProviderError  Type = "llm.provider_error"
	OutcomeUnknown Type = "llm.outcome_unknown"
	CallEnforced   Type = "llm.single_call.enforced"

	BudgetRefused   Type = "budget.refused"
	BudgetWarned    Type = "budget.warned"
	CancelRequested Type = "run.cancel_requested"
	ToolBlocked     Type = "tool.blocked"
	ToolResult      Type = "tool.result"

	RequestSent          Type = "acp.request.sent"
	NotificationSent     Type = "acp.notification.sent"
	ResponseSent         Type = "acp.response.sent"
	ClientReceived       Type = "acp.client.received"
	ClientSent           Type = "acp.client.sent"
	NotificationReceived Type = "acp.notification.received" // also requests of the agent
	ResponseReceived     Type = "acp.response.received"
	LineMalformed        Type = "acp.line.malformed"
	LineOversized        Type = "acp.line.oversized" // a fact and not a frame
	RequestTimeout       Type = "acp.request.timeout"
	SessionStarted       Type = "acp.session.started"
	SessionClosed        Type = "acp.session.closed"
	SandboxEntered       Type = "sandbox.entered"
	SandboxConnected     Type = "sandbox.connected"
	LoginStarted         Type = "acp.login.started"
	LoginEnded           Type = "acp.login.ended"
	ReplySent            Type = "acp.reply.sent"
	ReplyFailed          Type = "acp.reply.failed"

	InteractionRequested      Type = "interaction.requested"
	InteractionAnswered       Type = "interaction.answered"
	InteractionLapsed         Type = "interaction.lapsed"
	InteractionAnswerRejected Type = "interaction.answer_rejected"
	InteractionResolved       Type = "interaction.resolved"

	PolicyDecided      Type = "policy.decided"
	PolicyUnasked      Type = "policy.unasked_tool"
	HookFailed         Type = "hook.failed"
	TreeObserved       Type = "tree.observed"
	ApprovalRemembered Type = "approval.remembered"
	ApprovalRevoked    Type = "approval.revoked"

	SessionCreated    Type = "session.created"
	SessionRenamed    Type = "session.renamed"
	SessionSelected   Type = "session.selected"
	SessionConfigured Type = "session.configured"
	SessionDeleted    Type = "session.deleted"

	ServiceStarted   Type = "service.started"
	ServiceStopped   Type = "service.stopped"
	ChannelFailed    Type = "service.channel_failed"
	ChannelRestored  Type = "service.channel_restored"
	CursorMoved      Type = "service.cursor_moved"
	PairingOpened    Type = "service.pairing_opened"
	PairingAttempted Type = "service.pairing_attempted"
	ContactPaired    Type = "service.contact_paired"
	ContactUnpaired  Type = "service.contact_unpaired"
	ContactSession   Type = "service.contact_session"
	ContactChanged   Type = "service.contact_changed"
	StrangerIgnored  Type = "service.stranger_ignored"
	BridgeReceived   Type = "service.message_received"
	FilesFetched     Type = "service.files_fetched"
	BridgeFinished   Type = "service.message_finished"
	BridgeQueued     Type = "service.message_queued"
	SendStarted      Type = "service.send_started"
	BridgeSent       Type = "service.message_sent"
	SendFailed       Type = "service.send_failed"
	CardClosed       Type = "service.question_closed"

	ScheduleStarted Type = "schedule.started"
	SchedulePlanned Type = "schedule.planned"
	ScheduleMissed  Type = "schedule.missed"
	SchedulePaused  Type = "schedule.paused"
	ScheduleResumed Type = "schedule.resumed"

	TeamAsked Type = "service.team_question"

	NotifyStarted Type = "notify.started"
	NotifySent    Type = "notify.sent"
	NotifyFailed  Type = "notify.failed"

	// Perlica writes the types from ProjectAdded to WebRefused to the user's own log.
	ProjectAdded   Type = "service.project_added"
	ProjectRemoved Type = "service.project_removed"
	ProjectChosen  Type = "service.project_chosen"
	MessageRouted  Type = "service.message_routed"
	ChannelRead    Type = "service.channel_read"

	VoucherGiven   Type = "voucher.given"
	VoucherRevoked Type = "voucher.revoked"

	WebPairingOpened    Type = "web.pairing_opened"
	WebPairingAttempted Type = "web.pairing_attempted"
	WebPairingRequested Type = "web.pairing_requested"
	DevicePaired        Type = "web.device_paired"
	DeviceRevoked       Type = "web.device_revoked"
	WebRefused          Type = "web.refused"

	// Perlica writes the types that begin with Team to the log of the context that belongs to the team.
	TeamJoined   Type = "team.joined"
	TeamMember   Type = "team.member"
	TeamClaimed  Type = "team.claimed"
	TeamRefused  Type = "team.refused"
	TeamCosigned Type = "team.cosigned"
	TeamAnswered Type = "team.answered"
	TeamStopped  Type = "team.stop_requested"

	// These are the events of a run of a flow: see Flows. Refs.Run has the id of that run. In FlowStepDecided,
	// Refs.Interaction is the id of the step's input.
	FlowStarted     Type = "flow.started"
	FlowStepDecided Type = "flow.step.decided"
	FlowFinished    Type = "flow.finished"

	RunResolved Type = "run.resolved"
	LogPruned   Type = "log.pruned"
	// LogRewritten says that the file was rewritten. It no longer contains the payloads that earlier log.pruned
	// events name.
	LogRewritten Type = "log.rewritten"
)
