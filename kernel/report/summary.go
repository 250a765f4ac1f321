package report

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/dustin/go-humanize/english"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/message"
	"github.com/perlica/perlica/interaction"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/kernel/language"
	"github.com/perlica/perlica/policy"
	"github.com/perlica/perlica/provider"
)

// Summarize describes an event in a few words. It translates events of sessions and runs to the language of the
// parameter "say". Nil means English. It never fails: for an unreadable event it returns the beginning of the payload.
// The result may contain any text of an agent. Summarize neither cuts it to a width nor escapes it for a terminal.
func Summarize(e event.Event, say *language.Sentences) string {
	say = cmp.Or(say, language.English.Sentences())
	if damage := e.Damage(); damage != nil {
		return say.Say(damage.Row())
	}
	if e.Payload == nil {
		return fill(say, withheld, e.PayloadLen)
	}
	if e.Class == event.Frame {
		if _, ours := provider.ParseUpdate(e.Payload, string(e.Conversation)); !ours {
			if u, ok := provider.ParseUpdate(e.Payload, ""); ok {
				return u.Kind + " of another session"
			}
		}
		return summarizeFrame(e.Payload)
	}
	if s, ok := summaries[e.Type]; ok {
		if text, err := s.text(say, e); err == nil {
			return text
		}
	}
	return beginning(string(e.Payload))
}

// scheduleWhy describes the reasons in the facts of schedules.
var scheduleWhy = map[string]string{
	fact.StartNew: "it is new", fact.StartChanged: "it has other times", fact.StartClock: "the clock went back",
	fact.MissedLate: "no process looked in time", fact.MissedRunning: "an earlier input was running",
	fact.MissedCalled: "called before the clock went back", fact.MissedRefused: "not accepted, nothing was sent",
	fact.MissedStopped: "its flow run stopped before the end",
}

// moment returns a time in the timezone of the system.
func moment(t time.Time) string { return t.Local().Format("2006-01-02 15:04:05 -0700") }

// summarized describes a type of fact. The function "text" summarizes an event of the type. The field "title" has a
// readable name of the type, or is empty if the type's own name is clear enough.
type summarized struct {
	title *message.Text
	text  func(*language.Sentences, event.Event) (string, error)
}

// summaries maps each type of fact to its description.
var summaries = map[event.Type]summarized{
	event.MessageReceived: translated(titleInput, func(say *language.Sentences, p *fact.MessageReceived) string {
		return fill(say, inputFrom, p.Sender, p.Source, p.Provider, beginning(p.Text))
	}),
	event.MessageQueued: titled(titleQueued, func(p *fact.MessageQueued) string {
		return fmt.Sprintf("%s (%s, %s)", beginning(p.Text), p.Sender, p.Source)
	}),
	event.MessageWithdrawn: translated(titleTakenBack, func(say *language.Sentences, p *fact.MessageWithdrawn) string {
		return fill(say, byPerson, joined(p.By, p.Where))
	}),
	event.Truncated: translated(titleHistory, func(say *language.Sentences, p *fact.Truncated) string {
		text := fill(say, historyKept, number(say, p.Kept, nounTurn), p.Dropped,
			p.Budget)
		if p.Gone > 0 {
			text += fill(say, historyGone, number(say, p.Gone, nounTurn))
		}
		return text
	}),
	event.Requested: translated(titleCall, func(say *language.Sentences, p *fact.Requested) string {
		return fill(say, promptNext, p.Provider, number(say, p.Bytes, nounByte))
	}),
	event.Responded: translated(titleAnswer, func(say *language.Sentences, p *fact.Responded) string {
		return fill(say, answeredAfter, cmp.Or(say.Word(p.StopReason), say.Say(noStopReason)), millis(say, p.DurationMS),
			beginning(p.Text))
	}),
	event.ProviderError:  translated(titleError, failedSummary),
	event.OutcomeUnknown: translated(titleUnknown, failedSummary),
	event.CallEnforced: translated(titleInAll, func(say *language.Sentences, p *fact.Enforced) string {
		if p.Permissions == (fact.Permissions{}) && p.Blocked+p.Unasked+p.Freed == 0 {
			return fill(say, nothingAsked, number(say, p.Calls, nounCall))
		}
		text := fill(say, callsAsked,
			number(say, p.Calls, nounCall), number(say, p.Permissions.Asked, nounQuestion), p.Permissions.Allowed,
			p.Permissions.Denied,
			p.Permissions.Unanswered, number(say, p.Blocked, nounRequest), p.Unasked)
		if p.Freed > 0 {
			text += fill(say, callsFreed, p.Freed)
		}
		return text
	}),
	event.BudgetRefused: translated(titleRefused, func(say *language.Sentences, p *fact.BudgetReached) string {
		return say.Read(p.Why, p.Coded)
	}),
	event.BudgetWarned: translated(titleLimit, func(say *language.Sentences, p *fact.BudgetReached) string {
		return say.Read(p.Why, p.Coded)
	}),
	event.CancelRequested: translated(titleStopped, func(say *language.Sentences, p *fact.Stop) string {
		return fill(say, byBecause, say.Word(p.By), say.Read(p.Why, p.Coded))
	}),
	event.ToolBlocked: translated(titleRefused, func(say *language.Sentences, p *fact.ToolBlocked) string {
		return fill(say, nothingRuns, p.Method)
	}),
	event.ToolResult: translated(nil, func(say *language.Sentences, p *fact.ToolResult) string {
		return fill(say, notCarriedOut, p.Method)
	}),
	event.LineOversized: translated(titleLimit, func(say *language.Sentences, p *fact.OversizedLine) string {
		return fill(say, longLine, number(say, int(p.Length), nounByte))
	}),
	event.RequestTimeout: titled(titleTimeout, func(p *fact.RequestTimeout) string { return p.Method + ": " + p.After }),
	event.SessionStarted: translated(titleReady, startedSummary),
	event.SandboxEntered: translated(titleSandbox, func(say *language.Sentences, p *fact.SandboxEntered) string {
		if p.Mechanism == "" {
			return p.Mode
		}
		return fill(say, sandboxBy, p.Mode, strings.TrimSpace(p.Mechanism+" "+p.Version))
	}),
	event.SandboxConnected: translated(titleConnection, connectedSummary),
	event.SessionClosed: translated(titleSession, func(say *language.Sentences, p *fact.SessionClosed) string {
		switch {
		case p.Error != "":
			return fill(say, closeFailed, p.Error)
		case p.Requested:
			return say.Say(sessionClosed)
		}
		return say.Say(endedWithProcess)
	}),
	event.LoginStarted: summary(func(p *fact.Login) string {
		if p.Method != "" {
			return "asked " + p.Provider + " to " + joined(p.Method, p.Login)
		}
		return "in the terminal: " + strings.Join(p.Command, " ")
	}),
	event.LoginEnded: summary(func(p *fact.LoginEnded) string {
		how := cmp.Or(p.Signal, fmt.Sprintf("exit code %d", p.ExitCode))
		if p.Method != "" {
			how = "it failed"
			if p.Error == "" {
				how = "it says that it is done"
			}
		}
		return joined(p.Provider+": "+how, p.Error)
	}),
	event.ReplySent: translated(titleToAgent, replySummary),
	event.ReplyFailed: translated(nil, func(say *language.Sentences, p *fact.ReplySent) string {
		return fill(say, replyLost, replySummary(say, p), p.Error)
	}),

	event.InteractionRequested: translated(titleQuestion, func(say *language.Sentences, p *interaction.Question) string {
		return fmt.Sprintf("%s (%s)", cmp.Or(p.Title, say.Say(useTool)), optionIDs(p.Options))
	}),
	event.InteractionAnswered: titled(titleReply, answerSummary),
	event.InteractionLapsed: translated(nil, func(say *language.Sentences,
		p *interaction.Resolution) string {
		return reason(say, string(p.Reason))
	}),
	event.InteractionAnswerRejected: translated(titleLate,
		func(say *language.Sentences, p *interaction.Rejected) string {
			return fill(say, notCounted, answerSummary(&p.Answer), say.Read(p.Why, p.Coded))
		}),
	event.InteractionResolved: translated(nil, func(say *language.Sentences, p *interaction.Resolution) string {
		text := cmp.Or(p.Option, say.Say(resolvedCancelled))
		if !p.Sent {
			text += say.Say(notSent)
		}
		if p.Reason != "" {
			text += " (" + reason(say, string(p.Reason)) + ")"
		}
		return text
	}),
	event.PolicyDecided: translated(titlePolicy, func(say *language.Sentences, p *fact.PolicyDecided) string {
		what := p.What()
		if p.Title == "" && what == "a tool" {
			what = say.Say(aTool)
		}
		return fmt.Sprintf("%s: %s (%s)", say.Word(p.Effect), what, say.Read(p.Why, p.Coded))
	}),
	event.HookFailed: translated(titleHookFailed, func(say *language.Sentences, p *fact.HookFailed) string {
		return fmt.Sprintf("%s: %s", strings.Join(p.Command, " "), say.Read(p.Why, p.Coded))
	}),
	event.TreeObserved: translated(titleTree, func(_ *language.Sentences, p *fact.TreeObserved) string {
		return fmt.Sprintf("%s: %.12s, %d ≠ index, %d ≠ before", p.When, p.Head, len(p.Dirty), len(p.Changed))
	}),
	event.PolicyUnasked: translated(titleUnasked, func(say *language.Sentences, p *fact.UnaskedTool) string {
		what := cmp.Or(p.Title, p.ID)
		if to, ok := strings.CutPrefix(p.Title, "mode "); ok && p.ID == "" { // the agent's mode, and not a tool
			what = fill(say, modeIs, to)
		}
		text := fmt.Sprintf("%s (%s): %s", what, cmp.Or(say.Word(p.Kind), say.Say(noKind)), say.Read(p.Why, p.Coded))
		if p.FreedBy != "" {
			text += fill(say, ofQuestion, p.FreedBy)
		}
		return text
	}),
	event.ApprovalRemembered: translated(titleRemembered, func(say *language.Sentences, p *policy.Approval) string {
		return fill(say, saidBy, say.Word(string(p.Effect)), say.Say(p.Subject()), p.By)
	}),
	event.ApprovalRevoked: translated(titleForgotten, func(say *language.Sentences, p *policy.Revocation) string {
		return fill(say, revokedBy, p.ID, p.By)
	}),

	event.SessionCreated: translated(titleNewSession, func(say *language.Sentences, p *fact.SessionCreated) string {
		if p.Name == "" {
			return fill(say, withAgent, p.Provider)
		}
		return fill(say, nameWithAgent, p.Name, p.Provider)
	}),
	event.SessionConfigured: translated(titleChosen, func(say *language.Sentences, p *fact.SessionConfigured) string {
		is := say.Say(asItIs)
		return joined(fill(say, modeIs, cmp.Or(p.ModeName, p.Mode, is)), fill(say, modelIs, cmp.Or(p.Model, is)))
	}),
	event.SessionRenamed: translated(nil, func(say *language.Sentences,
		p *fact.SessionRenamed) string {
		return fill(say, renamedTo, p.Name)
	}),
	event.SessionSelected: translated(nil, func(say *language.Sentences,
		_ *struct{}) string {
		return say.Say(isCurrent)
	}),
	event.SessionDeleted: translated(nil, func(say *language.Sentences,
		_ *struct{}) string {
		return say.Say(offLists)
	}),

	event.ServiceStarted: summary(func(p *fact.ServiceStarted) string {
		return fmt.Sprintf("process %d serves %s", p.PID, strings.Join(p.Channels, ", "))
	}),
	event.ServiceStopped:   summary(func(p *fact.ServiceStopped) string { return p.Why }),
	event.ChannelFailed:    summary(func(p *fact.ChannelState) string { return joined(p.Channel, p.Error) }),
	event.ChannelRestored:  summary(func(p *fact.ChannelState) string { return joined(p.Channel, p.Error) }),
	event.CursorMoved:      summary(func(p *fact.CursorMoved) string { return p.Channel + " to " + beginning(p.Cursor) }),
	event.PairingOpened:    summary(func(p *fact.Pairing) string { return "by " + p.By + ", for " + rights(p.Rights) }),
	event.PairingAttempted: summary(func(p *fact.PairingAttempted) string { return peer(p.Peer) }),
	event.ContactPaired: summary(func(p *fact.ContactPaired) string {
		return strings.TrimSpace(peer(p.Peer)+" "+p.Name) + " may " + rights(p.Rights)
	}),
	event.ContactUnpaired: summary(func(p *fact.ContactUnpaired) string { return peer(p.Peer) + " by " + p.By }),
	event.ContactSession: summary(func(p *fact.ContactSession) string {
		if p.Chat == "" {
			return peer(p.Peer)
		}
		return peer(p.Peer) + ", " + p.Chat
	}),
	event.ContactChanged: summary(changed),
	event.StrangerIgnored: summary(func(p *fact.StrangerIgnored) string {
		if p.Since > 0 {
			return fmt.Sprintf("%s, and %d before", peer(p.Peer), p.Since)
		}
		return peer(p.Peer)
	}),
	event.BridgeReceived: summary(func(p *fact.BridgeReceived) string {
		return joined(string(p.Kind)+" "+peer(p.Peer),
			p.Text)
	}),
	event.FilesFetched: summary(func(p *fact.FilesFetched) string {
		return joined(fmt.Sprintf("%d files", len(p.Files)), p.Text)
	}),
	event.BridgeFinished: translated(nil, func(say *language.Sentences, p *fact.BridgeFinished) string {
		return joined(say.Word(string(p.How)), say.Read(p.Detail, p.Coded))
	}),
	event.BridgeQueued: summary(func(p *fact.BridgeQueued) string {
		return joined(string(p.Kind)+" "+peer(p.Peer),
			p.Text)
	}),
	event.SendStarted: summary(func(p *fact.Delivery) string { return fmt.Sprintf("attempt %d", p.Attempt) }),
	event.BridgeSent:  summary(func(*fact.Delivery) string { return "the platform has it" }),
	event.SendFailed:  summary(sendSummary),
	event.NotifyStarted: summary(func(p *fact.Notified) string {
		return fmt.Sprintf("%s to %s, attempt %d", p.Kind, p.To, p.Attempt)
	}),
	event.NotifySent: summary(func(p *fact.Notified) string { return p.Kind + " to " + p.To }),
	event.NotifyFailed: summary(func(p *fact.Notified) string {
		return p.Kind + " to " + p.To + ": " + sendSummary(&fact.Delivery{Error: p.Error, Unknown: p.Unknown, Final: p.Final})
	}),
	event.TeamAsked:  summary(func(p *fact.TeamQuestion) string { return "of " + p.Worker }),
	event.CardClosed: summary(func(p *fact.CardClosed) string { return beginning(p.How) }),

	event.ScheduleStarted: summary(func(p *fact.ScheduleStarted) string {
		return fmt.Sprintf("%s counts from %s: %s", p.Schedule, moment(p.From), scheduleWhy[p.Why])
	}),
	event.SchedulePlanned: summary(func(p *fact.SchedulePlanned) string { return p.Schedule + " at " + moment(p.Time) }),
	event.ScheduleMissed:  {nil, missedSummary},
	event.SchedulePaused:  summary(func(p *fact.SchedulePaused) string { return p.Schedule + ", by " + p.By }),
	event.ScheduleResumed: summary(func(p *fact.ScheduleResumed) string { return p.Schedule + ", by " + p.By }),

	event.ProjectAdded:   summary(servedSummary),
	event.ProjectRemoved: summary(servedSummary),
	event.ProjectChosen:  summary(func(p *fact.ProjectChosen) string { return peer(p.Peer) + " is in " + p.Log }),
	event.MessageRouted: summary(func(p *fact.MessageRouted) string {
		return p.Channel + ":" + p.Message + " goes to " +
			p.Log
	}),
	event.ChannelRead: summary(func(p *fact.ChannelRead) string { return p.Channel + " to " + beginning(p.Cursor) }),

	event.VoucherGiven:   summary(func(p *fact.Voucher) string { return "counts here: " + p.Decision }),
	event.VoucherRevoked: summary(func(p *fact.Voucher) string { return "counts no more: " + p.Decision }),

	event.WebPairingOpened: summary(func(p *fact.Pairing) string { return "by " + p.By + ", for " + rights(p.Rights) }),
	event.WebPairingAttempted: summary(func(p *fact.WebPairingAttempted) string {
		if p.Handle != nil {
			return "from " + p.Address + ": the right code"
		}
		return "from " + p.Address + ": a wrong code"
	}),
	event.WebPairingRequested: summary(func(p *fact.WebPairingRequested) string {
		return joined(p.Name+" at "+p.Address,
			p.Browser)
	}),
	event.DevicePaired: summary(func(p *fact.DevicePaired) string {
		return fmt.Sprintf("%s (%s) may %s, by %s", p.Name, p.ID, rights(p.Rights), p.By)
	}),
	event.DeviceRevoked: summary(func(p *fact.DeviceRevoked) string {
		return fmt.Sprintf("%s (%s) by %s", p.Name, p.ID,
			p.By)
	}),
	event.WebRefused: summary(func(p *fact.WebRefused) string {
		text := joined(strings.TrimSpace("a "+p.What+" "+p.Device), p.Why)
		if p.Unrecorded > 0 {
			text += fmt.Sprintf(", and %d before", p.Unrecorded)
		}
		return text
	}),

	event.TeamJoined: summary(func(p *fact.TeamJoined) string { return fmt.Sprintf("%s, as %s", p.Name, p.As) }),
	event.TeamMember: summary(func(p *fact.TeamMember) string {
		if p.Gone {
			return fmt.Sprintf("%s left, by %s", p.Name, p.Signer)
		}
		return fmt.Sprintf("%s may %s, by %s", p.Name, rights(p.Rights), p.Signer)
	}),
	event.TeamClaimed: summary(func(p *fact.TeamClaimed) string {
		return fmt.Sprintf("for %s, from %s", p.Project,
			p.Sender)
	}),
	event.TeamRefused: summary(func(p *fact.TeamRefused) string { return beginning(p.Why) }),
	event.TeamCosigned: summary(func(p *fact.TeamCosigned) string {
		return fmt.Sprintf("%s, up to event %d", p.Worker,
			p.Size)
	}),
	event.TeamAnswered: summary(func(p *fact.TeamAnswered) string {
		return fmt.Sprintf("%s to a question of %s, by %s", p.Option, p.Worker, p.By)
	}),
	event.TeamStopped: summary(func(p *fact.TeamStopped) string { return fmt.Sprintf("%s, by %s", p.Input, p.By) }),

	event.FlowStarted: titled(titleFlow, func(p *fact.FlowStarted) string { return p.Name }),
	event.FlowStepDecided: translated(titleStep, func(say *language.Sentences, p *fact.FlowDecided) string {
		switch {
		case p.Decision == fact.FlowExpanded:
			return fill(say, flowItems, p.Step, len(p.Items))
		case p.Decision == fact.FlowRetry:
			return fill(say, flowRetry, p.Step, p.By)
		}
		text := joined(say.Word(p.Decision), beginning(cmp.Or(say.Read(p.Error, p.Coded), p.Answer)))
		if p.Item > 0 {
			return fill(say, flowItem, p.Step, p.Item, text)
		}
		return fill(say, flowStep, p.Step, text)
	}),
	event.FlowFinished: translated(titleFlowEnd, func(say *language.Sentences, p *fact.FlowFinished) string {
		if p.By != "" {
			return fill(say, byBecause, p.By, say.Word(p.Outcome))
		}
		return say.Word(p.Outcome)
	}),

	event.RunResolved: translated(titleJudged, func(say *language.Sentences, p *fact.Resolved) string {
		verdict := wasNotSent
		if p.Sent {
			verdict = wasSent
		}
		return fill(say, verdict, p.By, beginning(p.Note))
	}),
	event.LogPruned: summary(func(p *event.Pruning) string {
		text := fmt.Sprintf("%s of %s removed, by %s", english.Plural(int(p.Events), "payload", ""),
			english.Plural(int(p.Bytes), "byte", ""), p.By)
		if p.Why != "" {
			text += ": " + p.Why
		}
		return text
	}),
	event.LogRewritten: summary(func(*struct{}) string { return "the file has no trace of the removed payloads" }),
}

// summary returns the description of a type without a title.
func summary[P any](f func(P) string) summarized { return titled(nil, f) }

func titled[P any](title *message.Text, f func(P) string) summarized {
	return translated(title, func(_ *language.Sentences, p P) string { return f(p) })
}

func answerSummary(a *interaction.Answer) string {
	text := a.By + ": " + a.Option
	if a.Where != "" {
		text += " (" + a.Where + ")"
	}
	return text
}

func missedSummary(say *language.Sentences, e event.Event) (string, error) {
	p, err := fact.Decode[fact.ScheduleMissed](e)
	text := p.Schedule + " at " + moment(p.First)
	if p.Count > 1 {
		text = fmt.Sprintf("%s %d times, from %s to %s", p.Schedule, p.Count, moment(p.First), moment(p.Last))
	}
	text = joined(text+": "+scheduleWhy[p.Why], beginning(say.Read(p.Error, p.Coded)))
	if p.Why == fact.MissedStopped {
		text += "; to continue: perlica flow run FILE --id " + string(e.Input)
	}
	return text, err
}

func servedSummary(p *fact.ServedProject) string {
	return p.Project + " by the bot of " + p.Home + ", by " + p.By
}

func peer(p fact.Peer) string { return p.Channel + ":" + p.Contact }

func rights(list []fact.Right) string {
	var words []string
	for _, r := range list {
		words = append(words, string(r))
	}
	return strings.Join(words, ", ")
}

// joined returns a word. If text is not empty, its beginning follows the word.
func joined(word, text string) string {
	if text == "" {
		return word
	}
	return word + ": " + beginning(text)
}

func sendSummary(p *fact.Delivery) string {
	text := beginning(p.Error)
	if p.Unknown {
		text += "; it may have been sent"
	}
	if p.Final {
		text += "; it is given up"
	}
	return text
}

func optionIDs(options []interaction.Option) string {
	var ids []string
	for _, o := range options {
		ids = append(ids, o.ID)
	}
	return strings.Join(ids, ", ")
}

// summaryRunes is the maximum number of characters of a text in a summary.
const summaryRunes = 200

// beginning returns the beginning of a text on one line, without line breaks.
func beginning(text string) string {
	if len(text) > 8*summaryRunes {
		text = strings.ToValidUTF8(text[:8*summaryRunes], "") + "…"
	}
	text = strings.Join(strings.Fields(text), " ")
	if r := []rune(text); len(r) > summaryRunes {
		return string(r[:summaryRunes-1]) + "…"
	}
	return text
}

// words returns a reason such as time_is_up with spaces instead of underscores.
func words(reason string) string { return strings.ReplaceAll(reason, "_", " ") }

// changed summarizes a change of a contact.
func changed(p *fact.ContactChanged) string {
	var what []string
	if len(p.Rights) > 0 {
		what = append(what, "may "+rights(p.Rights))
	}
	if p.Language != "" {
		what = append(what, "is spoken to in "+p.Language)
	}
	if p.Follows != nil {
		what = append(what, map[bool]string{true: "follows", false: "does not follow"}[*p.Follows])
	}
	return peer(p.Peer) + " " + strings.Join(what, ", ") + ", by " + p.By
}
