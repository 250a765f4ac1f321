package event

import (
	"slices"
	"sync"
)

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

// Row holds all properties that depend on the type of an event alone. A new type needs its
// constant, its row in known and the struct of its payload.
type Row struct {
	Type  Type
	Class Class
	// Synced means that the event must be on disk before Perlica acts on it.
	Synced bool
	// Once is the unique index for events of this type. Empty means that any number is allowed.
	Once once
	// Run is the effect of the event on the state of its run.
	Run step
	// Kept means that pruning never removes the payload.
	Kept bool
	// Views are the views that are built from the event.
	Views view
	// Payload is the struct of a fact's payload, as package.Name.
	Payload string
	// About says when the event is written. docs/log-format.md shows it.
	About string
}

// once names a unique index of the schema. The index covers all types with this value in their rows. It allows one of
// these events for each run, input or question.
type once string

const (
	intentPerInput        once = "events_one_intent_per_input"
	outcomePerRun         once = "events_one_outcome_per_run"
	answerPerQuestion     once = "events_one_answer"
	resolutionPerQuestion once = "events_one_resolution"
)

// step is the effect of an event on its run. An intent is on disk before the prompt leaves, and an outcome follows the
// call. Recovery looks for runs that have an intent and no outcome.
type step int

const (
	// passes means that the event does not change the state of its run.
	passes step = iota
	// Opens is the effect of an intent. After this event the run needs an outcome.
	Opens
	// Ends is the effect of an outcome.
	Ends
	// closes is the effect of the last event of the run.
	closes
)

// view is a set of views, such as Sessions and Approvals. A view is a set of tables that Perlica computes from facts.
// The row of each fact's type names the views that need the fact.
type view int

const (
	Sessions view = 1 << iota
	Approvals
	Search
	Bridge
)

// table has a row for each type. docs/log-format.md lists the types in the same order.
type table []Row

// Known returns the table of the types that this version knows. The caller must not change it.
func Known() table { return slices.Clip(known) }

// Where returns the types of the rows for which the function "is" returns true.
func (t table) Where(is func(*Row) bool) (list []Type) {
	for i := range t {
		if is(&t[i]) {
			list = append(list, t[i].Type)
		}
	}
	return list
}

// Types returns all types of the table, in the order of docs/log-format.md.
func (t table) Types() []Type { return t.Where(func(*Row) bool { return true }) }

// For returns the types of the events from which Perlica builds the view v.
func (t table) For(v view) []Type { return t.Where(func(r *Row) bool { return r.Views&v != 0 }) }

// byType returns the rows by their types. The first call builds the map.
var byType = sync.OnceValue(func() map[Type]*Row {
	rows := make(map[Type]*Row, len(known))
	for i := range known {
		rows[known[i].Type] = &known[i]
	}
	return rows
})

// unknown is the row of every type that this version does not know.
var unknown Row

func (t Type) row() *Row {
	if r, ok := byType()[t]; ok {
		return r
	}
	return &unknown
}

// Class returns the class of a type. Like the next methods, it returns the zero value for an unknown type.
func (t Type) Class() Class { return t.row().Class }

// Once returns the unique index for events of this type, or "".
func (t Type) Once() once { return t.row().Once }

// Step returns the effect of an event of this type on its run.
func (t Type) Step() step { return t.row().Run }

// Outcome reports whether t ends an intent.
func (t Type) Outcome() bool { return t.row().Run == Ends }

// Closes reports whether t is the type of a run's last event.
func (t Type) Closes() bool { return t.row().Run == closes }

// Kept reports whether pruning never removes the payload.
func (t Type) Kept() bool { return t.row().Kept }

// known is the table of all types. Kept is true for payloads that the log needs for ever. Such a payload names
// approvals, sessions or contacts, or it explains the loss of other payloads.
var known = table{
	{Type: MessageReceived, Class: Fact, Views: Sessions | Search, Payload: "fact.MessageReceived",
		About: "an input was accepted: its text, where it came from, who sent it"},
	{Type: MessageQueued, Class: Fact, Synced: true, Views: Search, Payload: "fact.MessageQueued",
		About: "an input waits for its turn in a session"},
	{Type: MessageWithdrawn, Class: Fact, Synced: true, Payload: "fact.MessageWithdrawn",
		About: "an input that waited was taken back: it is not called"},
	{Type: Truncated, Class: Fact, Payload: "fact.Truncated",
		About: "history was cut: turns kept and left out, the budget, the estimate"},
	{Type: Requested, Class: Fact, Synced: true, Once: intentPerInput, Run: Opens, Payload: "fact.Requested",
		About: "the intent to call: one for each input id, for ever"},
	{Type: Responded, Class: Fact, Once: outcomePerRun, Run: Ends, Views: Sessions | Search, Payload: "fact.Responded",
		About: "the agent answered: text, stop reason, usage, durations, tool calls"},
	{Type: ProviderError, Class: Fact, Once: outcomePerRun, Run: Ends, Views: Search, Payload: "fact.Failed",
		About: "the agent answered with an error, or failed before the prompt could have left"},
	{Type: OutcomeUnknown, Class: Fact, Once: outcomePerRun, Run: Ends, Views: Search, Payload: "fact.Failed",
		About: "the prompt may have left and no answer came; it is never sent again"},
	{Type: CallEnforced, Class: Fact, Run: closes, Payload: "fact.Enforced",
		About: "the end of a run: how many calls left, how many questions were asked"},
	{Type: BudgetRefused, Class: Fact, Synced: true, Payload: "fact.BudgetReached",
		About: "a budget refused the call of an input; nothing was sent, and the input id may be used again"},
	{Type: BudgetWarned, Class: Fact, Payload: "fact.BudgetReached",
		About: "a person is warned: a budget is nearly used up, or it does not limit the provider"},
	{Type: CancelRequested, Class: Fact, Synced: true, Views: Search, Payload: "fact.Stop",
		About: "a person or a limit stops the run"},
	{Type: ToolBlocked, Class: Fact, Views: Search, Payload: "fact.ToolBlocked",
		About: "the agent asked Perlica for a file or a terminal, and was refused"},
	{Type: ToolResult, Class: Fact, Payload: "fact.ToolResult",
		About: "the agent was told that its request was not carried out"},
	{Type: RequestSent, Class: Frame,
		About: "a request to the agent"},
	{Type: NotificationSent, Class: Frame,
		About: "a notification to the agent, such as `session/cancel`"},
	{Type: ResponseSent, Class: Frame,
		About: "an answer to a request of the agent"},
	{Type: NotificationReceived, Class: Frame,
		About: "a notification or a request of the agent"},
	{Type: ResponseReceived, Class: Frame,
		About: "an answer of the agent"},
	{Type: LineMalformed, Class: Frame,
		About: "a line of the agent that is not a JSON-RPC message"},
	{Type: LineOversized, Class: Fact, Payload: "fact.OversizedLine",
		About: "a line over the limit: its length, its hash, its first 64 KiB"},
	{Type: ClientReceived, Class: Frame,
		About: "a line of the agent's client, such as an editor, that Perlica did not pass on unchanged"},
	{Type: ClientSent, Class: Frame,
		About: "a line of Perlica to the agent's client"},
	{Type: RequestTimeout, Class: Fact, Payload: "fact.RequestTimeout",
		About: "a method took longer than its limit"},
	{Type: SessionStarted, Class: Fact, Payload: "fact.SessionStarted",
		About: "the agent's session: its name, its capabilities, its mode"},
	{Type: SessionClosed, Class: Fact, Payload: "fact.SessionClosed",
		About: "the agent's session was closed, or ended with its process"},
	{Type: SandboxEntered, Class: Fact, Payload: "fact.SandboxEntered",
		About: "the sandbox of the agent's process: its mode, its means and its rules; it holds for the later runs of " +
			"the session, until the next such event"},
	{Type: SandboxConnected, Class: Fact, Payload: "fact.SandboxConnected",
		About: "in the sandbox offline: a connection of the agent ended, or was refused; without its content"},
	{Type: LoginStarted, Class: Fact, Synced: true, Payload: "fact.Login",
		About: "in the user's own log: a login or a logout at an agent began"},
	{Type: LoginEnded, Class: Fact, Payload: "fact.LoginEnded",
		About: "a login or a logout ended, and how"},
	{Type: ReplySent, Class: Fact, Payload: "fact.ReplySent",
		About: "an answer to a question has left, with the agent's own option id"},
	{Type: ReplyFailed, Class: Fact, Payload: "fact.ReplySent",
		About: "an answer to a question could not leave"},
	{Type: InteractionRequested, Class: Fact, Synced: true, Views: Search, Payload: "interaction.Question",
		About: "a question, with its whole subject and its options"},
	{Type: InteractionAnswered, Class: Fact, Synced: true, Once: answerPerQuestion, Views: Search,
		Payload: "interaction.Answer",
		About:   "the answer that counts: the first one"},
	{Type: InteractionLapsed, Class: Fact, Synced: true, Once: answerPerQuestion, Views: Search,
		Payload: "interaction.lapse",
		About:   "the question was closed without an answer, and why"},
	{Type: InteractionAnswerRejected, Class: Fact, Views: Search, Payload: "interaction.Rejected",
		About: "an answer that does not count, and why"},
	{Type: InteractionResolved, Class: Fact, Once: resolutionPerQuestion, Payload: "interaction.Resolution",
		About: "the final answer that the agent got"},
	{Type: PolicyDecided, Class: Fact, Views: Search, Payload: "fact.PolicyDecided",
		About: "a rule, a standing approval, a mode or a policy program answered instead of a person, and about which " +
			"commands and paths"},
	{Type: PolicyUnasked, Class: Fact, Views: Search, Payload: "fact.UnaskedTool",
		About: "a tool that may change something ran without a question, or differently from the allowed request, or the " +
			"agent changed its mode; `freed_by` names the question with a yes for good that covers it"},
	{Type: HookFailed, Class: Fact, Payload: "fact.HookFailed",
		About: "a hook or a policy program of the user failed, and why; at most once for each program in a run"},
	{Type: TreeObserved, Class: Fact, Payload: "fact.TreeObserved",
		About: "the git work tree before or after a turn: the commit, and the paths, modes, sizes and hashes of changed " +
			"files, without their content"},
	{Type: ApprovalRemembered, Class: Fact, Kept: true, Views: Approvals | Search, Payload: "policy.Approval",
		About: "a standing yes or no, with its scope"},
	{Type: ApprovalRevoked, Class: Fact, Kept: true, Views: Approvals | Search, Payload: "policy.Revocation",
		About: "a standing yes or no was revoked"},
	{Type: SessionCreated, Class: Fact, Kept: true, Views: Sessions | Search, Payload: "fact.SessionCreated",
		About: "a session: name and provider"},
	{Type: SessionRenamed, Class: Fact, Kept: true, Views: Sessions | Search, Payload: "fact.SessionRenamed",
		About: "the session's new name"},
	{Type: SessionConfigured, Class: Fact, Kept: true, Views: Sessions, Payload: "fact.SessionConfigured",
		About: "the chosen mode, model and options of a session"},
	{Type: SessionSelected, Class: Fact, Kept: true, Views: Sessions, Payload: "struct{}",
		About: "a session became the current one"},
	{Type: SessionDeleted, Class: Fact, Kept: true, Views: Sessions | Search, Payload: "struct{}",
		About: "a session left the lists; its events stay"},
	{Type: ServiceStarted, Class: Fact, Views: Bridge, Payload: "fact.ServiceStarted",
		About: "a bridge runs: its process, its channels"},
	{Type: ServiceStopped, Class: Fact, Views: Bridge, Payload: "fact.ServiceStopped",
		About: "a bridge ended in order, and why"},
	{Type: ChannelFailed, Class: Fact, Views: Bridge, Payload: "fact.ChannelState",
		About: "a channel cannot be polled, and why; once for each failure"},
	{Type: ChannelRestored, Class: Fact, Views: Bridge, Payload: "fact.ChannelState",
		About: "a channel can be polled again"},
	{Type: CursorMoved, Class: Fact, Views: Bridge, Payload: "fact.CursorMoved",
		About: "the position up to which a channel was read"},
	{Type: PairingOpened, Class: Fact, Views: Bridge, Payload: "fact.Pairing",
		About: "a code was shown: its salted hash, its rights, until when it counts"},
	{Type: PairingAttempted, Class: Fact, Views: Bridge, Payload: "fact.PairingAttempted",
		About: "a contact sent six digits while a code was open"},
	{Type: ContactPaired, Class: Fact, Kept: true, Views: Bridge, Payload: "fact.ContactPaired",
		About: "a contact may use the bridge, and with which rights"},
	{Type: ContactUnpaired, Class: Fact, Kept: true, Views: Bridge, Payload: "fact.ContactUnpaired",
		About: "a contact lost its rights"},
	{Type: ContactSession, Class: Fact, Kept: true, Views: Bridge, Payload: "fact.ContactSession",
		About: "the session in which a contact talks in a chat"},
	{Type: ContactChanged, Class: Fact, Kept: true, Views: Bridge, Payload: "fact.ContactChanged",
		About: "other rights of a contact, its language, or whether it follows other sessions"},
	{Type: StrangerIgnored, Class: Fact, Views: Bridge, Payload: "fact.StrangerIgnored",
		About: "an unpaired contact wrote: without the text, and not each time"},
	{Type: BridgeReceived, Class: Fact, Synced: true, Views: Bridge, Payload: "fact.BridgeReceived",
		About: "a message of a contact, before it is acknowledged; `input_id` is made of its channel and id"},
	{Type: FilesFetched, Class: Fact, Views: Bridge, Payload: "fact.FilesFetched",
		About: "a message's files are here, or could not be fetched; its text names those"},
	{Type: BridgeFinished, Class: Fact, Views: Bridge, Payload: "fact.BridgeFinished",
		About: "the result of a message: exactly one for each message"},
	{Type: BridgeQueued, Class: Fact, Views: Bridge, Payload: "fact.BridgeQueued",
		About: "a message to a contact: a reply, a card, a note"},
	{Type: SendStarted, Class: Fact, Synced: true, Views: Bridge, Payload: "fact.Delivery",
		About: "a message is about to be handed to the platform"},
	{Type: BridgeSent, Class: Fact, Views: Bridge, Payload: "fact.Delivery",
		About: "the platform accepted a message, under this id"},
	{Type: SendFailed, Class: Fact, Views: Bridge, Payload: "fact.Delivery",
		About: "the platform did not accept a message, or that is unknown; whether it is given up"},
	{Type: CardClosed, Class: Fact, Views: Bridge, Payload: "fact.CardClosed",
		About: "the contacts that were asked are told how the question ended"},
	{Type: TeamAsked, Class: Fact, Synced: true, Payload: "fact.TeamQuestion",
		About: "a question of a team's worker, before its cards are sent; `interaction_id` is made of its worker and " +
			"of its digest"},
	{Type: NotifyStarted, Class: Fact, Synced: true, Payload: "fact.Notified",
		About: "a notification is about to be handed to its target; `cause` is the number of the event that caused it"},
	{Type: NotifySent, Class: Fact, Payload: "fact.Notified",
		About: "the target accepted a notification"},
	{Type: NotifyFailed, Class: Fact, Payload: "fact.Notified",
		About: "the target did not accept a notification, or that is unknown; whether it is given up"},
	{Type: ScheduleStarted, Class: Fact, Synced: true, Kept: true, Payload: "fact.ScheduleStarted",
		About: "the planned times of a schedule count from here: it is new, it has other times, or the clock went back"},
	{Type: SchedulePlanned, Class: Fact, Synced: true, Kept: true, Payload: "fact.SchedulePlanned",
		About: "the input of a planned time is about to be called; `input_id` is made of the schedule's id and the time"},
	{Type: ScheduleMissed, Class: Fact, Synced: true, Kept: true, Payload: "fact.ScheduleMissed",
		About: "planned times that make no input, and why: one event for a whole gap"},
	{Type: SchedulePaused, Class: Fact, Synced: true, Kept: true, Payload: "fact.SchedulePaused",
		About: "a person paused a schedule"},
	{Type: ScheduleResumed, Class: Fact, Synced: true, Kept: true, Payload: "fact.ScheduleResumed",
		About: "a person resumed a schedule; its planned times count from here"},
	{Type: ProjectAdded, Class: Fact, Kept: true, Payload: "fact.ServedProject",
		About: "in the user's own log: the bot of one project serves another one, too"},
	{Type: ProjectRemoved, Class: Fact, Kept: true, Payload: "fact.ServedProject",
		About: "the bot no longer serves that project"},
	{Type: ProjectChosen, Class: Fact, Kept: true, Payload: "fact.ProjectChosen",
		About: "the project to which a contact's messages go, where its bot serves several"},
	{Type: MessageRouted, Class: Fact, Synced: true, Kept: true, Payload: "fact.MessageRouted",
		About: "the project of a message, before that project has it; `input_id` is the message's"},
	{Type: ChannelRead, Class: Fact, Synced: true, Kept: true, Payload: "fact.ChannelRead",
		About: "the position up to which a channel was read for all projects"},
	{Type: VoucherGiven, Class: Fact, Synced: true, Kept: true, Payload: "fact.Voucher",
		About: "in the user's own log: the hash of a standing yes or of a contact's rights that were given here"},
	{Type: VoucherRevoked, Class: Fact, Synced: true, Kept: true, Payload: "fact.Voucher",
		About: "a decision no longer counts"},
	{Type: WebPairingOpened, Class: Fact, Payload: "fact.Pairing",
		About: "in the user's own log: a one-time address for a browser was shown: the salted hash of its code, its " +
			"rights, until when it counts"},
	{Type: WebPairingAttempted, Class: Fact, Synced: true, Payload: "fact.WebPairingAttempted",
		About: "a browser sent a code while one was open, and whether the code was correct; a correct code is used up"},
	{Type: WebPairingRequested, Class: Fact, Payload: "fact.WebPairingRequested",
		About: "the browser with the code sent its name and its public key; a person decides"},
	{Type: DevicePaired, Class: Fact, Synced: true, Kept: true, Payload: "fact.DevicePaired",
		About: "a browser (by its key) or a program (by its token's hash) has rights"},
	{Type: DeviceRevoked, Class: Fact, Synced: true, Kept: true, Payload: "fact.DeviceRevoked",
		About: "a browser or a program lost its rights"},
	{Type: WebRefused, Class: Fact, Payload: "fact.WebRefused",
		About: "a request, a credential or a browser was refused, and why: not each time"},
	{Type: TeamJoined, Class: Fact, Synced: true, Kept: true, Payload: "fact.TeamJoined",
		About: "in the log of a team's context: this machine belongs to the team, with this name and key"},
	{Type: TeamMember, Class: Fact, Synced: true, Kept: true, Payload: "fact.TeamMember",
		About: "a member's key and rights, as an admin signed them, count here from now on"},
	{Type: TeamClaimed, Class: Fact, Synced: true, Kept: true, Payload: "fact.TeamClaimed",
		About: "this worker owns an input of the team, for ever: its sender, the hub's generation and position"},
	{Type: TeamRefused, Class: Fact, Synced: true, Payload: "fact.TeamRefused",
		About: "no call is made for an input that this worker owns, and why"},
	{Type: TeamCosigned, Class: Fact, Synced: true, Kept: true, Payload: "fact.TeamCosigned",
		About: "the copy of a worker's log was verified here, and its checkpoint is cosigned"},
	{Type: TeamAnswered, Class: Fact, Synced: true, Payload: "fact.TeamAnswered",
		About: "the person who answered a worker's question at this machine, before the answer left"},
	{Type: TeamStopped, Class: Fact, Synced: true, Payload: "fact.TeamStopped",
		About: "the person who withdrew or stopped an input of the team at this machine"},
	{Type: FlowStarted, Class: Fact, Synced: true, Kept: true, Payload: "fact.FlowStarted",
		About: "a flow run began: the text of its file and its inputs, the mode that the person chose, and the team " +
			"that answers the calls; `run_id` is the flow run, and `interaction_id` is `flow`"},
	{Type: FlowStepDecided, Class: Fact, Kept: true, Payload: "fact.FlowDecided",
		About: "a step of a flow is done, failed or skipped, or its items are known, or a person wants a new input for " +
			"it, or its input goes to a team, which may not know the outcome; `interaction_id` is the id of the step's input"},
	{Type: FlowFinished, Class: Fact, Synced: true, Kept: true, Payload: "fact.FlowFinished",
		About: "all steps of a flow run are decided, or a person cancelled it; `interaction_id` is `flow`"},
	{Type: RunResolved, Class: Fact, Kept: true, Views: Search, Payload: "fact.Resolved",
		About: "a person's judgement of an unknown outcome"},
	{Type: LogPruned, Class: Fact, Synced: true, Kept: true, Payload: "event.Pruning",
		About: "payloads are about to be removed: which, by whom, why"},
	{Type: LogRewritten, Class: Fact, Kept: true, Payload: "struct{}",
		About: "the payloads are gone, and the file was rewritten without them"},
}

// Pruning is the payload of log.pruned. It names the removed payloads, the author and the reason. A
// missing payload is damage unless a later log.pruned covers its event.
type Pruning struct {
	// Until limits the pruning to events up to this number.
	Until Seq `json:"until"`
	// Session limits the pruning to one session unless it is empty.
	Session SessionID `json:"session,omitempty"`
	// Run limits the pruning to one run unless it is empty.
	Run RunID `json:"run,omitempty"`
	// Class limits the pruning to a class unless it is empty. With "frame", facts keep their
	// payloads.
	Class Class `json:"class,omitempty"`
	// Events is the number of payloads that are to be removed.
	Events int64 `json:"events"`
	// Bytes is the total length of these payloads.
	Bytes int64  `json:"bytes"`
	By    string `json:"by"`
	Why   string `json:"why,omitempty"`
}

// Covers reports whether the pruning removes the payload of e.
func (p Pruning) Covers(e *Event) bool {
	return e.Seq <= p.Until && !e.Type.Kept() &&
		(p.Session == "" || e.Session == p.Session) &&
		(p.Run == "" || e.Run == p.Run) &&
		(p.Class == "" || e.Class == p.Class)
}
