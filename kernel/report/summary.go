package report

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/dustin/go-humanize/english"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/interaction"
	"github.com/perlica/perlica/kernel"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/kernel/fact/bridge"
	"github.com/perlica/perlica/kernel/fact/team"
	"github.com/perlica/perlica/kernel/fact/web"
	"github.com/perlica/perlica/policy"
	"github.com/perlica/perlica/provider"
)

// Summarize says in a few words what an event holds. It never fails: of what it cannot
// read it shows the beginning. The text may hold whatever an agent wrote; it is neither
// cut to a width nor made fit for a terminal.
func Summarize(e event.Event) string {
	if e.Payload == nil {
		return fmt.Sprintf("payload withheld (%d bytes)", e.PayloadLen)
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
		if text, err := s.text(e); err == nil {
			return text
		}
	}
	return beginning(string(e.Payload))
}

// summarized is what a type of fact is called in a story, where its name is not enough, and what sums
// up one of the type.
type summarized struct {
	title string
	text  func(event.Event) (string, error)
}

// summaries has the words for each type of fact.
var summaries = map[event.Type]summarized{
	event.MessageReceived: titled("the input", func(p fact.MessageReceived) string {
		return fmt.Sprintf("%s (%s) to %s: %s", p.Sender, p.Source, p.Provider, beginning(p.Text))
	}),
	event.MessageQueued: titled("queued", func(p fact.MessageQueued) string {
		return fmt.Sprintf("%s (%s, %s)", beginning(p.Text), p.Sender, p.Source)
	}),
	event.MessageWithdrawn: titled("taken back", func(p fact.MessageWithdrawn) string { return "by " + joined(p.By, p.Where) }),
	event.Truncated: titled("history cut", func(p fact.Truncated) string {
		text := fmt.Sprintf("%s of history kept, %d left out; the budget is %d tokens", english.Plural(p.Kept, "turn", ""), p.Dropped, p.Budget)
		if p.Gone > 0 {
			text += fmt.Sprintf("; %s no longer on record", english.Plural(p.Gone, "turn", ""))
		}
		return text
	}),
	event.Requested: titled("the call is on record", func(p fact.Requested) string {
		return fmt.Sprintf("%s is about to get a prompt of %s", p.Provider, english.Plural(p.Bytes, "byte", ""))
	}),
	event.Responded: titled("the answer", func(p fact.Responded) string {
		return fmt.Sprintf("%s after %s: %s", cmp.Or(p.StopReason, "no stop reason"), millis(p.DurationMS), beginning(p.Text))
	}),
	event.ProviderError:  titled("provider error", failedSummary),
	event.OutcomeUnknown: titled("outcome unknown", failedSummary),
	event.CallEnforced: titled("in all", func(p fact.Enforced) string {
		text := fmt.Sprintf("%s, %s asked (%d allowed, %d denied, %d unanswered), %s refused, %d unasked",
			english.Plural(p.Calls, "call", ""), english.Plural(p.Permissions.Asked, "question", ""), p.Permissions.Allowed, p.Permissions.Denied,
			p.Permissions.Unanswered, english.Plural(p.Blocked, "request", ""), p.Unasked)
		if p.Freed > 0 {
			text += fmt.Sprintf(", %d freed by a yes for good", p.Freed)
		}
		return text
	}),
	event.CancelRequested: titled("stopped", func(p kernel.Stop) string { return "by " + p.By + ": " + p.Why }),
	event.ToolBlocked:     titled("refused", func(p fact.ToolBlocked) string { return p.Method + ": nothing runs here" }),
	event.ToolResult:      summary(func(p fact.ToolResult) string { return p.Method + " was not carried out" }),
	event.LineOversized:   titled("over the limit", func(p fact.OversizedLine) string { return "a line of " + english.Plural(int(p.Length), "byte", "") }),
	event.RequestTimeout:  titled("timeout", func(p fact.RequestTimeout) string { return p.Method + ": " + p.After }),
	event.SessionStarted:  titled("the agent is ready", startedSummary),
	event.SessionClosed: titled("the agent's session", func(p fact.SessionClosed) string {
		text := "ended with its process"
		if p.Requested {
			text = "closed"
		}
		if p.Error != "" {
			text = "closing it failed: " + p.Error
		}
		return text
	}),
	event.LoginStarted: summary(func(p fact.Login) string {
		if p.Method != "" {
			return "asked " + p.Provider + " to " + joined(p.Method, p.Login)
		}
		return "in the terminal: " + strings.Join(p.Command, " ")
	}),
	event.LoginEnded: summary(func(p fact.LoginEnded) string {
		how := cmp.Or(p.Signal, fmt.Sprintf("exit code %d", p.ExitCode))
		if p.Method != "" {
			how = "it failed"
			if p.Error == "" {
				how = "it says that it is done"
			}
		}
		return joined(p.Provider+": "+how, p.Error)
	}),
	event.ReplySent:   titled("told the agent", replySummary),
	event.ReplyFailed: summary(func(p fact.ReplySent) string { return replySummary(p) + " could not leave: " + p.Error }),

	event.InteractionRequested: titled("a question", func(p interaction.Question) string {
		return fmt.Sprintf("%s (%s)", cmp.Or(p.Title, "use a tool"), optionIDs(p.Options))
	}),
	event.InteractionAnswered: titled("an answer to a question", answerSummary),
	event.InteractionLapsed:   summary(func(p interaction.Resolution) string { return words(string(p.Reason)) }),
	event.InteractionAnswerRejected: titled("a late or wrong answer", func(p fact.Rejected) string {
		return answerSummary(p.Answer) + ", which does not count: " + p.Why
	}),
	event.InteractionResolved: summary(func(p interaction.Resolution) string {
		text := cmp.Or(p.Option, "cancelled")
		if !p.Sent {
			text += ", not sent"
		}
		if p.Reason != "" {
			text += " (" + words(string(p.Reason)) + ")"
		}
		return text
	}),
	event.PolicyDecided: titled("policy", func(p fact.PolicyDecided) string {
		return fmt.Sprintf("%s: %s (%s)", p.Effect, p.What(), p.Why)
	}),
	event.PolicyUnasked: titled("ran unasked", func(p fact.UnaskedTool) string {
		text := fmt.Sprintf("%s (%s): %s", cmp.Or(p.Title, p.ID), cmp.Or(p.Kind, "of no kind"), p.Why)
		if p.FreedBy != "" {
			text += ", question " + string(p.FreedBy)
		}
		return text
	}),
	event.ApprovalRemembered: titled("remembered", func(p policy.Approval) string {
		return fmt.Sprintf("%s %s, said %s", p.Effect, p, p.By)
	}),
	event.ApprovalRevoked: titled("no longer remembered", func(p policy.Revocation) string { return p.ID + " by " + p.By }),

	event.SessionCreated: titled("a new session", func(p fact.SessionCreated) string {
		return strings.TrimSpace(p.Name + " with " + p.Provider)
	}),
	event.SessionConfigured: titled("chosen", func(p fact.SessionConfigured) string {
		return joined("mode "+cmp.Or(p.ModeName, p.Mode, "as it is"), "model "+cmp.Or(p.Model, "as it is"))
	}),
	event.SessionRenamed:  summary(func(p fact.SessionRenamed) string { return "to " + p.Name }),
	event.SessionSelected: summary(func(struct{}) string { return "is the current one" }),
	event.SessionDeleted:  summary(func(struct{}) string { return "is off the lists" }),

	event.ServiceStarted: summary(func(p bridge.Started) string {
		return fmt.Sprintf("process %d serves %s", p.PID, strings.Join(p.Channels, ", "))
	}),
	event.ServiceStopped:   summary(func(p bridge.Stopped) string { return p.Why }),
	event.ChannelFailed:    summary(func(p bridge.Channel) string { return joined(p.Channel, p.Error) }),
	event.ChannelRestored:  summary(func(p bridge.Channel) string { return joined(p.Channel, p.Error) }),
	event.CursorMoved:      summary(func(p bridge.Cursor) string { return p.Channel + " to " + beginning(p.Cursor) }),
	event.PairingOpened:    summary(func(p bridge.Pairing) string { return "by " + p.By + ", for " + rights(p.Rights) }),
	event.PairingAttempted: summary(func(p bridge.Attempt) string { return peer(p.Peer) }),
	event.ContactPaired: summary(func(p bridge.Paired) string {
		return strings.TrimSpace(peer(p.Peer)+" "+p.Name) + " may " + rights(p.Rights)
	}),
	event.ContactUnpaired: summary(func(p bridge.Unpaired) string { return peer(p.Peer) + " by " + p.By }),
	event.ContactSession:  summary(peer),
	event.ContactChanged:  summary(changed),
	event.StrangerIgnored: summary(func(p bridge.Stranger) string {
		if p.Since > 0 {
			return fmt.Sprintf("%s, and %d before", peer(p.Peer), p.Since)
		}
		return peer(p.Peer)
	}),
	event.BridgeReceived: summary(func(p bridge.Received) string { return joined(string(p.Kind)+" "+peer(p.Peer), p.Text) }),
	event.FilesFetched: summary(func(p bridge.Fetched) string {
		return joined(fmt.Sprintf("%d files", len(p.Files)), p.Text)
	}),
	event.BridgeFinished: summary(func(p bridge.Finished) string { return joined(string(p.How), p.Detail) }),
	event.BridgeQueued:   summary(func(p bridge.Queued) string { return joined(string(p.Kind)+" "+peer(p.Peer), p.Text) }),
	event.SendStarted:    summary(func(p bridge.Send) string { return fmt.Sprintf("attempt %d", p.Attempt) }),
	event.BridgeSent:     summary(func(bridge.Send) string { return "the platform has it" }),
	event.SendFailed:     summary(sendSummary),
	event.CardClosed:     summary(func(p bridge.CardClosed) string { return beginning(p.How) }),

	event.ProjectAdded:   summary(servedSummary),
	event.ProjectRemoved: summary(servedSummary),
	event.ProjectChosen:  summary(func(p bridge.Chosen) string { return peer(p.Peer) + " is in " + p.Log }),
	event.MessageRouted:  summary(func(p bridge.Routed) string { return p.Channel + ":" + p.Message + " goes to " + p.Log }),
	event.ChannelRead:    summary(func(p bridge.Read) string { return p.Channel + " to " + beginning(p.Cursor) }),

	event.VoucherGiven:   summary(func(p fact.Voucher) string { return "counts here: " + p.Decision }),
	event.VoucherRevoked: summary(func(p fact.Voucher) string { return "counts no more: " + p.Decision }),

	event.WebPairingOpened: summary(func(p bridge.Pairing) string { return "by " + p.By + ", for " + rights(p.Rights) }),
	event.WebPairingAttempted: summary(func(p web.Attempt) string {
		if p.Handle != nil {
			return "from " + p.Address + ": the right code"
		}
		return "from " + p.Address + ": a wrong code"
	}),
	event.WebPairingRequested: summary(func(p web.Request) string { return joined(p.Name+" at "+p.Address, p.Browser) }),
	event.DevicePaired: summary(func(p web.Paired) string {
		return fmt.Sprintf("%s (%s) may %s, by %s", p.Name, p.ID, rights(p.Rights), p.By)
	}),
	event.DeviceRevoked: summary(func(p web.Revoked) string { return fmt.Sprintf("%s (%s) by %s", p.Name, p.ID, p.By) }),
	event.WebRefused: summary(func(p web.Refused) string {
		text := joined(strings.TrimSpace("a "+p.What+" "+p.Device), p.Why)
		if p.Unrecorded > 0 {
			text += fmt.Sprintf(", and %d before", p.Unrecorded)
		}
		return text
	}),

	event.TeamJoined: summary(func(p team.Joined) string { return fmt.Sprintf("%s, as %s", p.Name, p.As) }),
	event.TeamMember: summary(func(p team.Member) string {
		if p.Gone {
			return fmt.Sprintf("%s left, by %s", p.Name, p.Signer)
		}
		return fmt.Sprintf("%s may %s, by %s", p.Name, strings.Join(p.Rights, ", "), p.Signer)
	}),
	event.TeamClaimed:  summary(func(p team.Claimed) string { return fmt.Sprintf("for %s, from %s", p.Project, p.Sender) }),
	event.TeamRefused:  summary(func(p team.Refused) string { return beginning(p.Why) }),
	event.TeamCosigned: summary(func(p team.Cosigned) string { return fmt.Sprintf("%s, up to event %d", p.Worker, p.Size) }),

	event.RunResolved: titled("judged", func(p fact.Resolved) string {
		verdict := "was not sent"
		if p.Sent {
			verdict = "was sent"
		}
		return fmt.Sprintf("%s says that the prompt %s: %s", p.By, verdict, beginning(p.Note))
	}),
	event.LogPruned: summary(func(p event.Pruning) string {
		text := fmt.Sprintf("%s of %s removed, by %s", english.Plural(int(p.Events), "payload", ""), english.Plural(int(p.Bytes), "byte", ""), p.By)
		if p.Why != "" {
			text += ": " + p.Why
		}
		return text
	}),
	event.LogRewritten: summary(func(struct{}) string { return "nothing is left in the file of what was removed" }),
}

// summary makes a function on a payload one on its event.
func summary[T any](f func(T) string) summarized { return titled("", f) }

func titled[T any](title string, f func(T) string) summarized {
	return summarized{title, func(e event.Event) (string, error) {
		v, err := fact.Decode[T](e)
		if err != nil {
			return "", err
		}
		return f(v), nil
	}}
}

func failedSummary(p fact.Failed) string {
	text := "no more is known"
	if p.Error != nil {
		text = p.Error.Error()
	}
	if p.Known != "" {
		text += "; " + p.Known
	}
	if p.NoticedBy == "recovery" {
		text += "; noticed by a later start"
	}
	return text
}

func startedSummary(p fact.SessionStarted) string {
	var parts []string
	if p.Agent != nil {
		parts = append(parts, strings.TrimSpace(p.Agent.Name+" "+p.Agent.Version))
	}
	if p.Mode != "" {
		parts = append(parts, "mode "+cmp.Or(p.ModeName, p.Mode))
	}
	return strings.Join(append(parts, "strategy "+p.Strategy), ", ")
}

func replySummary(p fact.ReplySent) string {
	if p.Outcome != "selected" {
		return p.Outcome + " (" + words(p.By) + ")"
	}
	return fmt.Sprintf("%s (%s), by %s", p.Option, p.Kind, words(p.By))
}

func answerSummary(a interaction.Answer) string {
	text := a.By + ": " + a.Option
	if a.Where != "" {
		text += " (" + a.Where + ")"
	}
	return text
}

func servedSummary(p bridge.Served) string {
	return p.Project + " by the bot of " + p.Home + ", by " + p.By
}

func peer(p bridge.Peer) string { return p.Channel + ":" + p.Contact }

func rights(list []bridge.Right) string {
	var words []string
	for _, r := range list {
		words = append(words, string(r))
	}
	return strings.Join(words, ", ")
}

// joined is a word and, where there is one, the beginning of a text that explains it.
func joined(word, text string) string {
	if text == "" {
		return word
	}
	return word + ": " + beginning(text)
}

func sendSummary(p bridge.Send) string {
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

// summaryRunes is how much of a text a summary shows.
const summaryRunes = 200

// beginning is the beginning of a text, on one line.
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

func millis(n int64) string { return (time.Duration(n) * time.Millisecond).String() }

// words makes a reason such as time_is_up readable.
func words(reason string) string { return strings.ReplaceAll(reason, "_", " ") }

// changed sums up what was changed of a contact.
func changed(p bridge.Changed) string {
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
