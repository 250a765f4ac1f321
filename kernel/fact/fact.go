// Package fact defines the payloads of the events that Perlica writes about runs, phones, browsers and teams. Each type
// of event has one struct.
//
// A field never changes its JSON name or its meaning, because later versions and other programs read the log. A
// field may be added. The package decides nothing and writes nothing. Packages interaction and policy define the
// payloads of questions and standing approvals. A frame is a recorded line of a protocol, so its payload is the
// line itself.
//
// The facts of a run describe the run completely: a later process knows only these facts about it.
package fact

import (
	"cmp"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/message"
	"github.com/perlica/perlica/provider"
)

// Decode decodes the payload of an event into a T. It does not check the event's type. It returns the error of
// event.Event.Decode.
func Decode[T any](e event.Event) (v T, err error) {
	err = e.Decode(&v)
	return v, err
}

// DecodeNew decodes the payload of an event as Decode does, and returns P, a pointer to it. If it returns an error, P
// points to an empty payload. The compiler makes one DecodeNew for all pointers, but one Decode for each struct.
// Therefore a table with many payloads uses DecodeNew.
func DecodeNew[P any](e event.Event) (P, error) {
	t := reflect.TypeFor[P]().Elem()
	p := reflect.New(t)
	err := e.Decode(p.Interface())
	if err != nil {
		p = reflect.New(t)
	}
	return p.Interface().(P), err
}

// OversizedLine is the payload of acp.line.oversized. It replaces a line of the agent that is too long for the log.
type OversizedLine struct {
	Length int64  `json:"length"`
	SHA256 string `json:"sha256"`
	Head   []byte `json:"head"` // the first 64 KiB
}

// RequestTimeout is the payload of acp.request.timeout.
type RequestTimeout struct {
	Method string `json:"method"`
	After  string `json:"after"`
}

// Login is the payload of acp.login.started. If Method is empty, a command of the agent runs in the person's terminal.
// Otherwise the agent itself logs the person in or out. The log does not have the texts that were typed and shown
// during a login.
type Login struct {
	Provider string   `json:"provider"`
	Command  []string `json:"command"` // secrets are masked
	Cwd      string   `json:"cwd"`
	Method   string   `json:"method,omitempty"` // the ACP method: authenticate or logout
	Login    string   `json:"login,omitempty"`  // the id of the agent's login method, for authenticate
}

// LoginEnded is the payload of acp.login.ended.
type LoginEnded struct {
	Provider string `json:"provider"`
	// Method is the ACP method. Empty means that a command ended.
	Method   string `json:"method,omitempty"`
	ExitCode int    `json:"exit_code"` // as a shell would report it
	Signal   string `json:"signal,omitempty"`
	// Error is not empty if the command could not be started or has left a process.
	Error string `json:"error,omitempty"`
}

// PolicyDecided is the payload of policy.decided: a rule or a mode has answered a question instead of a person.
type PolicyDecided struct {
	// Request is the JSON-RPC id of the agent's request.
	Request string `json:"request,omitempty"`
	// Title is the agent's title of the tool call.
	Title string `json:"title"`
	// Commands are the commands that were judged.
	Commands []string `json:"commands,omitempty"`
	// Dir is the directory in which the commands start, and to which paths may be relative.
	Dir string `json:"dir,omitempty"`
	// Paths are the paths that were judged.
	Paths []string `json:"paths,omitempty"`
	// LeadsTo maps each path with a symbolic link to the path without links, as in interaction.Subject.
	LeadsTo map[string]string `json:"leads_to,omitempty"`
	// Tier is the tier of the request, such as "ordinary".
	Tier   string `json:"tier,omitempty"`
	Effect string `json:"effect"`
	// By is "rule", "mode", "standing", "tier", "program", or "form" for a form that Perlica cannot show.
	By   string `json:"by"`
	Rule any    `json:"rule,omitempty"`
	// Approval is the id of the standing approval that gave the answer.
	Approval string `json:"approval,omitempty"`
	// Program is the policy program that gave the answer, if By is "program". Otherwise it is nil.
	Program *ProgramRuling `json:"program,omitempty"`
	Why     string         `json:"why"`
	Option  string         `json:"option,omitempty"`
	message.Coded
}

// ProgramRuling is the answer of a policy program, in PolicyDecided.
type ProgramRuling struct {
	Command []string `json:"command"` // with masked secrets
	// Files are the files that the command names, with the digests of the bytes that were started.
	Files      []ProgramFile `json:"files"`
	Reason     string        `json:"reason"`
	DurationMS int64         `json:"duration_ms"`
}

// ProgramFile is a file of a program of the user.
type ProgramFile struct {
	Path   string `json:"path"`
	SHA256 string `json:"sha256"`
}

// HookFailed is the payload of hook.failed: a hook or a policy program of the user failed. In a run, there is at most
// one for each program.
type HookFailed struct {
	// Kind is "hook" or "policy".
	Kind    string   `json:"kind"`
	Command []string `json:"command"` // with masked secrets
	Origin  string   `json:"origin"`  // the place in the configuration, file:line
	// Event is the number of the event that the hook got. It is 0 for a policy program.
	Event  event.Seq `json:"event,omitempty"`
	Why    string    `json:"why"`
	Stderr string    `json:"stderr,omitempty"` // the last part of its error output, with masked secrets
	message.Coded
}

// What describes the tool call: the agent's title, and the judged commands and paths that the title does not name. The
// text has words of the agent.
func (p PolicyDecided) What() string {
	title := cmp.Or(p.Title, "a tool")
	named := strings.Trim(title, "`")
	var judged []string
	for _, one := range slices.Concat(p.Commands, p.Paths) {
		if one != named && !strings.HasSuffix(named, " "+one) && !slices.Contains(judged, one) {
			judged = append(judged, one)
		}
	}
	if len(judged) == 0 {
		return title
	}
	return title + ": " + strings.Join(judged, "; ")
}

// ReplySent is the payload of acp.reply.sent and acp.reply.failed. It is the answer to the agent.
type ReplySent struct {
	RequestID string `json:"request_id"`
	Outcome   string `json:"outcome"` // selected or cancelled; for a form: accept, decline or cancel
	Option    string `json:"option,omitempty"`
	// Kind is the ACP kind of the option, such as allow_once.
	Kind  string `json:"kind,omitempty"`
	By    string `json:"by"`
	Error string `json:"error,omitempty"` // only in acp.reply.failed
}

// SessionCreated is the payload of session.created. A session is a conversation with one provider.
type SessionCreated struct {
	Name     string `json:"name,omitempty"`
	Provider string `json:"provider"`
	// Ephemeral means that the lists omit the session unless a caller asks for all sessions.
	Ephemeral bool `json:"ephemeral"`
	// Conversation means that the lists show an ephemeral session after its first turn. A chat sets it, and a single
	// run does not.
	Conversation bool `json:"conversation,omitempty"`
}

// SessionConfigured is the payload of session.configured. It has all choices that were made in the session so far. An
// empty field means no choice.
type SessionConfigured struct {
	Mode string `json:"mode,omitempty"`
	// ModeName is the agent's name for the mode, if it differs from the id.
	ModeName string            `json:"mode_name,omitempty"`
	Model    string            `json:"model,omitempty"`
	Options  map[string]string `json:"options,omitempty"` // values by the agent's option ids
}

// SessionRenamed is the payload of session.renamed. The payloads of session.selected and session.deleted are empty.
type SessionRenamed struct {
	Name string `json:"name"`
}

// SessionStarted is the payload of acp.session.started: the agent's own session has begun.
type SessionStarted struct {
	Strategy string `json:"strategy"`
	// Continued is "resume" or "load" if the agent continued its own session in this way.
	Continued string     `json:"continued,omitempty"`
	Agent     *AgentName `json:"agent,omitempty"`
	// Capabilities are the agent's capabilities, as the agent sent them.
	Capabilities json.RawMessage `json:"capabilities"`
	Mode         string          `json:"mode,omitempty"`
	// ModeName is the agent's name for the mode, if it differs from the id.
	ModeName string `json:"mode_name,omitempty"`
	// Options are the config options that Perlica set at the start.
	Options map[string]string `json:"options,omitempty"`
}

// SandboxEntered is the payload of sandbox.entered. It precedes acp.session.started and the prompt. If the mode is
// off, the other fields are absent.
type SandboxEntered struct {
	Mode      string `json:"mode"`
	Mechanism string `json:"mechanism,omitempty"` // bubblewrap
	Version   string `json:"version,omitempty"`
	// Landlock means that Landlock blocks the abstract sockets of other programs.
	Landlock bool `json:"landlock,omitempty"`
	// Rules are the access rights to paths, and the hosts that the agent may connect to. A file gets the rights of the
	// nearest parent path in this list.
	Rules []string `json:"rules,omitempty"`
}

// SandboxConnected is the payload of sandbox.connected: a connection of the agent has ended, or was refused.
type SandboxConnected struct {
	// Host is empty if the request named no host, or if the event reports connections to several further hosts.
	Host       string `json:"host,omitempty"`
	Port       int    `json:"port,omitempty"`
	Sent       int64  `json:"sent"`     // bytes to the host
	Received   int64  `json:"received"` // bytes from the host
	DurationMS int64  `json:"duration_ms"`
	// Times is the number of connections that the event reports.
	Times int `json:"times"`
	// Refused is the reason why the agent did not reach the host. It is empty if the agent reached it.
	Refused string `json:"refused,omitempty"`
}

// AgentName is the agent's introduction of itself, in SessionStarted.
type AgentName struct {
	Meta    map[string]any `json:"_meta,omitempty"`
	Name    string         `json:"name"`
	Title   *string        `json:"title,omitempty"`
	Version string         `json:"version"`
}

// SessionClosed is the payload of acp.session.closed.
type SessionClosed struct {
	// Requested means that Perlica or the client asked the agent to close its session.
	Requested bool   `json:"requested"`
	Error     string `json:"error,omitempty"`
}

// ToolSeen is a tool call as the agent reported it, in Responded, Failed and UnaskedTool.
type ToolSeen struct {
	ID     string `json:"id"`
	Title  string `json:"title"`
	Kind   string `json:"kind"`
	Status string `json:"status"`
}

// UnaskedTool is the payload of policy.unasked_tool. There are two cases. A tool that may have changed something
// ran without a question, or did something other than the allowed action. In the other case, the agent changed its
// mode by itself.
type UnaskedTool struct {
	ToolSeen
	Why string `json:"why"`
	// FreedBy is the id of the question that a person answered with the agent's permanent yes, so that the agent no
	// longer asks. It is empty if the agent had no such reason.
	FreedBy event.InteractionID `json:"freed_by,omitempty"`
	message.Coded
}

// NewUnaskedTool returns a tool call that ran without a question, and the reason for the report.
func NewUnaskedTool(t ToolSeen, why *message.Text) UnaskedTool {
	return UnaskedTool{ToolSeen: t, Why: why.Text, Coded: why.Coded}
}

// TreeObserved is the payload of tree.observed: the state of the git work tree before or after the turn of a run. It
// has no content of a file.
type TreeObserved struct {
	// When is "before" or "after".
	When string `json:"when"`
	Root string `json:"root"`
	// Head is the commit. It is empty before the first commit.
	Head string `json:"head,omitempty"`
	// Dirty are the files that differ from git's index, and the files that the index does not have.
	Dirty []TreeFile `json:"dirty,omitempty"`
	// Changed are the files whose content or mode has changed since the observation before the turn.
	Changed []TreeFile `json:"changed,omitempty"`
	// More means that a limit was reached, so that files may be missing.
	More bool `json:"more,omitempty"`
	// Late means that another turn had begun, so that the observation says nothing about this one.
	Late bool `json:"late,omitempty"`
}

// TreeFile is a file in TreeObserved.
type TreeFile struct {
	Path string `json:"path"`           // relative to the work tree, with slashes
	Mode string `json:"mode,omitempty"` // as git writes it, such as 100644; empty means that the file is missing
	Size int64  `json:"size,omitempty"`
	Blob string `json:"blob,omitempty"` // git's hash of the content; empty for a missing or a large file
}

// ToolBlocked is the payload of tool.blocked. It has the agent's request, which Perlica refused to carry out.
type ToolBlocked struct {
	Method    string          `json:"method"`
	RequestID string          `json:"request_id"`
	Reason    string          `json:"reason"` // the constant reasonBlocked of package kernel
	Params    json.RawMessage `json:"params,omitempty"`
}

// ToolResult is the payload of tool.result: Perlica's answer to a refused request.
type ToolResult struct {
	OK        bool   `json:"ok"`
	Method    string `json:"method"`
	RequestID string `json:"request_id"`
	Reason    string `json:"reason"` // the constant reasonBlocked of package kernel
}

// MessageReceived is the payload of inbound.message.received: the input.
type MessageReceived struct {
	Text        string   `json:"text"`
	Attachments []string `json:"attachments,omitempty"`
	Source      string   `json:"source"`
	Sender      string   `json:"sender"`
	Dir         string   `json:"dir"`
	Provider    string   `json:"provider"`
	// Rules are the policy rules that the user gave for this run alone, word for word.
	Rules []string `json:"rules,omitempty"`
}

// MessageQueued is the payload of inbound.message.queued: an input that waits for its turn.
type MessageQueued struct {
	Text string `json:"text"`
	// Attachments are absolute paths of files. Perlica reads the files when the turn of the input begins.
	Attachments []string `json:"attachments,omitempty"`
	Source      string   `json:"source"`
	Sender      string   `json:"sender"`
	// Web describes the HTTP request that brought the input. It is nil for other front ends.
	Web *WebInput `json:"web,omitempty"`
}

// MessageWithdrawn is the payload of inbound.message.withdrawn: a waiting input was withdrawn.
type MessageWithdrawn struct {
	By    string `json:"by"`
	Where string `json:"where"`
}

// Stop is the payload of run.cancel_requested. It names the reason why a turn must stop.
type Stop struct {
	By     string `json:"by"`               // "user", "timeout" or "terminated"
	Why    string `json:"why"`              // a sentence
	Person string `json:"person,omitempty"` // the person, if Why does not name one
	message.Coded
}

// NewStop returns a stop with a sentence as its reason.
func NewStop(by string, why *message.Text) Stop { return Stop{By: by, Why: why.Text, Coded: why.Coded} }

// Reason returns the reason as a sentence.
func (s Stop) Reason() *message.Text { return &message.Text{Text: s.Why, Coded: s.Coded} }

// Interrupted is the reason when a key or a signal stops a turn.
var Interrupted = message.New("fact.interrupted", "interrupted")

// Truncated is the payload of context.truncated. It reports the earlier turns that the transcript omits, because they
// did not fit or were pruned.
type Truncated struct {
	Kept    int `json:"kept_turns"`
	Dropped int `json:"dropped_turns"`
	// Gone is the number of turns that lost their payloads by pruning.
	Gone     int `json:"pruned_turns,omitempty"`
	Budget   int `json:"budget_tokens"`
	Estimate int `json:"estimated_tokens"`
}

// Requested is the payload of llm.requested: the intent to make a call, recorded before the call.
type Requested struct {
	Provider string `json:"provider"`
	// Agent is the agent's command line.
	Agent     []string `json:"agent"`
	Digest    string   `json:"prompt_sha256"`
	Bytes     int      `json:"prompt_bytes"`
	CallIndex int      `json:"llm_call_index"`
	// Strategy is "fresh" or "keep".
	Strategy string `json:"strategy"`
	// Input is the digest of the input's own text and attachments. It distinguishes two inputs with the same id.
	Input string `json:"input_sha256"`
}

// BudgetReached is the payload of budget.refused and budget.warned. A budget refuses a call, or a person is warned.
type BudgetReached struct {
	// Budget is the name of the budget. It is made of the budget's keys, such as "day calls=10".
	Budget string `json:"budget"`
	// Period identifies the period. It is the first moment of a day, a week or a month, in UTC, or the id of a session
	// or of a run.
	Period string `json:"period"`
	Cause  string `json:"cause"` // calls, tokens, money, or unknown for a provider without reported costs
	// Until is the time when the budget is free again. It is absent if no time renews the budget.
	Until time.Time `json:"until,omitzero"`
	Why   string    `json:"why"`
	message.Coded
}

// Reason returns the reason as a sentence.
func (b BudgetReached) Reason() *message.Text { return &message.Text{Text: b.Why, Coded: b.Coded} }

// Responded is the payload of llm.responded: the agent has answered the call.
type Responded struct {
	Provider   string          `json:"provider"`
	Text       string          `json:"text"`
	StopReason string          `json:"stop_reason"`
	Usage      json.RawMessage `json:"usage,omitempty"`
	// OfSession means that Usage covers the agent's whole session so far.
	OfSession  bool       `json:"usage_of_session,omitempty"`
	Cost       *Cost      `json:"cost,omitempty"`
	DurationMS int64      `json:"duration_ms"`
	FirstMS    int64      `json:"first_update_ms"`
	Tools      []ToolSeen `json:"tool_calls"`
	// Content describes the blocks of the answer that are not text, without their data. The recorded lines have the
	// data.
	Content []provider.Block `json:"content,omitempty"`
}

// Cost is the cost that the agent itself reports for its session so far, in Responded.
type Cost struct {
	Amount   float64 `json:"amount"`
	Currency string  `json:"currency"` // ISO 4217
}

// Failed is the payload of llm.provider_error and of llm.outcome_unknown. In llm.outcome_unknown, unknown fields are
// empty.
type Failed struct {
	*provider.Error
	DurationMS int64 `json:"duration_ms"`
	// Text is the part of the answer that had arrived.
	Text  string     `json:"text,omitempty"`
	Tools []ToolSeen `json:"tool_calls,omitempty"`
	// NoticedBy is "run" if the run itself noticed the failure, and "recovery" if a later process did.
	NoticedBy string `json:"noticed_by,omitempty"`
	Known     string `json:"known,omitempty"`
	// KnownMessage is the code of the sentence in Known, with the values inserted into the sentence.
	KnownMessage message.Coded `json:"known_message,omitzero"`
	// Content has the same meaning as Responded.Content.
	Content []provider.Block `json:"content,omitempty"`
}

// Enforced is the payload of llm.single_call.enforced, which closes the record of a run.
type Enforced struct {
	Calls       int         `json:"calls"`
	Blocked     int         `json:"blocked_tool_calls"`
	LinesLost   int64       `json:"debug_lines_lost"`
	Permissions Permissions `json:"permissions"`
	Unasked     int         `json:"unasked_tools"`
	// Freed is the number of tools that ran without a question after a permanent yes.
	Freed int `json:"freed_tools,omitempty"`
}

// Permissions counts the questions of a run, in Enforced.
type Permissions struct {
	Asked      int `json:"asked"`
	Allowed    int `json:"allowed"`
	Denied     int `json:"denied"`
	Unanswered int `json:"unanswered"`
}

// Resolved is the payload of run.resolved. A person has judged whether the prompt of a run with an unknown outcome was
// sent. The judgement does not allow another call for the input.
type Resolved struct {
	Sent bool   `json:"sent"`
	Note string `json:"note"`
	By   string `json:"by"`
}

// Voucher is the payload of voucher.given and voucher.revoked.
type Voucher struct {
	// Decision is the SHA-256 of the decision's JSON.
	Decision string `json:"decision_sha256"`
}
