// Package fact has the payload of each fact: one struct for each type of event that Perlica writes about a run, the
// messaging bridge, a browser or a team.
//
// A field keeps its JSON name and its meaning for ever, because later versions and other programs read the log. A field
// may be added. The package decides nothing and writes nothing. Packages interaction and policy have the payloads
// of questions and standing approvals. The payload of run.cancel_requested is kernel.Stop. The payload of a frame is
// the line itself.
//
// A run follows from its facts alone: a later start knows only the fields of these structs.
package fact

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/interaction"
	"github.com/perlica/perlica/provider"
)

// Decode reads the payload of an event as a T. It does not look at the event's type. The
// error is that of event.Event.Decode.
func Decode[T any](e event.Event) (v T, err error) {
	err = e.Decode(&v)
	return v, err
}

// OversizedLine is the payload of acp.line.oversized, which stands for a frame that is too
// long to be kept whole.
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

// Login is the payload of acp.login.started: an agent's command in the person's terminal, with arguments
// that the agent or a client of it named; or, with a method, that the agent logs the person in or out by
// itself. What is typed and shown there is not on record.
type Login struct {
	Provider string   `json:"provider"`
	Command  []string `json:"command"` // secrets are masked
	Cwd      string   `json:"cwd"`
	Method   string   `json:"method,omitempty"` // of ACP: authenticate, logout
	Login    string   `json:"login,omitempty"`  // the id of the agent's login, with authenticate
}

// LoginEnded is the payload of acp.login.ended.
type LoginEnded struct {
	Provider string `json:"provider"`
	Method   string `json:"method,omitempty"` // of the protocol; empty: a command ended; not recorded at first
	ExitCode int    `json:"exit_code"`        // as a shell has it
	Signal   string `json:"signal,omitempty"`
	Error    string `json:"error,omitempty"` // it could not be started, or left something behind
}

// PolicyDecided is the payload of policy.decided: a rule or a mode answered instead of a
// person.
type PolicyDecided struct {
	Title    string   `json:"title"`              // the agent's
	Commands []string `json:"commands,omitempty"` // what was judged
	Paths    []string `json:"paths,omitempty"`    // likewise
	Effect   string   `json:"effect"`
	By       string   `json:"by"` // rule, mode, standing, tier; or form: it is not asked
	Rule     any      `json:"rule,omitempty"`
	Approval string   `json:"approval,omitempty"` // the id of the standing approval that answered
	Why      string   `json:"why"`
	Option   string   `json:"option,omitempty"`
}

// What is what was decided about: the agent's title, and the commands and paths that were judged, as far as
// the title does not name them. It holds words of the agent's.
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

// ReplySent is the payload of acp.reply.sent and acp.reply.failed: what the agent was answered.
type ReplySent struct {
	RequestID string `json:"request_id"`
	Outcome   string `json:"outcome"` // selected, cancelled; of a form accept, decline, cancel
	Option    string `json:"option,omitempty"`
	Kind      string `json:"kind,omitempty"` // of the option
	By        string `json:"by"`
	Error     string `json:"error,omitempty"` // of acp.reply.failed
}

// Rejected is the payload of interaction.answer_rejected, as package interaction writes it.
type Rejected struct {
	interaction.Answer
	Why string `json:"why"`
}

// SessionCreated is the payload of session.created: a conversation, locked to one provider.
type SessionCreated struct {
	Name      string `json:"name,omitempty"`
	Provider  string `json:"provider"`
	Ephemeral bool   `json:"ephemeral"` // lists only on demand
	// Conversation says that it is on the lists as soon as something was said in it, though it is ephemeral:
	// a chat's, not that of a single run.
	Conversation bool `json:"conversation,omitempty"`
}

// SessionConfigured is the payload of session.configured: all that was chosen in a session so far. What is
// empty was not.
type SessionConfigured struct {
	Mode     string            `json:"mode,omitempty"`
	ModeName string            `json:"mode_name,omitempty"` // what the agent calls it, if that is not its id
	Model    string            `json:"model,omitempty"`
	Options  map[string]string `json:"options,omitempty"` // by the agent's ids
}

// SessionRenamed is the payload of session.renamed. Those of session.selected and
// session.deleted are empty.
type SessionRenamed struct {
	Name string `json:"name"`
}

// SessionStarted is the payload of acp.session.started: the agent's own session.
type SessionStarted struct {
	Strategy     string            `json:"strategy"`
	Continued    string            `json:"continued,omitempty"` // "resume", "load": the agent knows the earlier turns
	Agent        *AgentName        `json:"agent,omitempty"`
	Capabilities json.RawMessage   `json:"capabilities"` // the agent's, as the protocol has them
	Mode         string            `json:"mode,omitempty"`
	ModeName     string            `json:"mode_name,omitempty"` // what the agent calls it, if that is not its id
	Options      map[string]string `json:"options,omitempty"`   // config options that were set
}

// AgentName is what an agent calls itself, in SessionStarted.
type AgentName struct {
	Meta    map[string]any `json:"_meta,omitempty"`
	Name    string         `json:"name"`
	Title   *string        `json:"title,omitempty"`
	Version string         `json:"version"`
}

// SessionClosed is the payload of acp.session.closed.
type SessionClosed struct {
	Requested bool   `json:"requested"` // whether the agent offers session/close
	Error     string `json:"error,omitempty"`
}

// ToolSeen is a tool call as the agent reported it, in Responded, Failed and UnaskedTool.
type ToolSeen struct {
	ID     string `json:"id"`
	Title  string `json:"title"`
	Kind   string `json:"kind"`
	Status string `json:"status"`
}

// UnaskedTool is the payload of policy.unasked_tool: a tool that may have changed something
// ran without a question, or did something else than was allowed, or the agent changed
// its mode by itself.
type UnaskedTool struct {
	ToolSeen
	Why string `json:"why"`
	// FreedBy is the question that a person answered with the agent's own yes for good, if
	// that is why there was no question.
	FreedBy event.InteractionID `json:"freed_by,omitempty"`
}

// ToolBlocked is the payload of tool.blocked: the agent asked Perlica to do something.
type ToolBlocked struct {
	Method    string          `json:"method"`
	RequestID string          `json:"request_id"`
	Reason    string          `json:"reason"` // ReasonBlocked
	Params    json.RawMessage `json:"params,omitempty"`
}

// ToolResult is the payload of tool.result: what the agent was answered instead.
type ToolResult struct {
	OK        bool   `json:"ok"`
	Method    string `json:"method"`
	RequestID string `json:"request_id"`
	Reason    string `json:"reason"` // ReasonBlocked
}

// MessageReceived is the payload of inbound.message.received: what was asked.
type MessageReceived struct {
	Text        string   `json:"text"`
	Attachments []string `json:"attachments,omitempty"`
	Source      string   `json:"source"`
	Sender      string   `json:"sender"`
	Dir         string   `json:"dir"`
	Provider    string   `json:"provider"`
	Rules       []string `json:"rules,omitempty"` // that were given for this run alone, as they were given
}

// MessageQueued is the payload of inbound.message.queued: what is to be asked when it is its turn.
type MessageQueued struct {
	Text        string   `json:"text"`
	Attachments []string `json:"attachments,omitempty"` // absolute paths; they are read when it is called
	Source      string   `json:"source"`
	Sender      string   `json:"sender"`
}

// MessageWithdrawn is the payload of inbound.message.withdrawn: an input that waited was taken back.
type MessageWithdrawn struct {
	By    string `json:"by"`
	Where string `json:"where"`
}

// Truncated is the payload of context.truncated: how much history did not fit, or is gone.
type Truncated struct {
	Kept     int `json:"kept_turns"`
	Dropped  int `json:"dropped_turns"`
	Gone     int `json:"pruned_turns,omitempty"` // their payloads were removed from the log
	Budget   int `json:"budget_tokens"`
	Estimate int `json:"estimated_tokens"`
}

// Requested is the payload of llm.requested, the intent.
type Requested struct {
	Provider  string   `json:"provider"`
	Agent     []string `json:"agent"` // the command line
	Digest    string   `json:"prompt_sha256"`
	Bytes     int      `json:"prompt_bytes"`
	CallIndex int      `json:"llm_call_index"`
	// Strategy is that of the agent session that is prompted; it was not recorded at first.
	Strategy string `json:"strategy,omitempty"`
	// Input is the digest of the input's own text and attachments, by which the same input is
	// distinguished from another one under its id; it was not recorded at first.
	Input string `json:"input_sha256,omitempty"`
}

// Responded is the payload of llm.responded, the outcome of a call that was answered.
type Responded struct {
	Provider   string           `json:"provider"`
	Text       string           `json:"text"`
	StopReason string           `json:"stop_reason"`
	Usage      json.RawMessage  `json:"usage,omitempty"`
	OfSession  bool             `json:"usage_of_session,omitempty"` // it is that of the agent's session so far; not recorded at first
	Cost       *Cost            `json:"cost,omitempty"`
	DurationMS int64            `json:"duration_ms"`
	FirstMS    int64            `json:"first_update_ms"`
	Tools      []ToolSeen       `json:"tool_calls"`
	Content    []provider.Block `json:"content,omitempty"` // what of the answer is no text, without what it holds: the frames have that
}

// Cost is what an agent's session has cost so far, as the agent says, in Responded.
type Cost struct {
	Amount   float64 `json:"amount"`
	Currency string  `json:"currency"` // ISO 4217
}

// Failed is the payload of llm.provider_error and, with what is known, of
// llm.outcome_unknown.
type Failed struct {
	*provider.Error
	DurationMS int64            `json:"duration_ms"`
	Text       string           `json:"text,omitempty"` // what had arrived
	Tools      []ToolSeen       `json:"tool_calls,omitempty"`
	NoticedBy  string           `json:"noticed_by,omitempty"` // "run": seen live; "recovery": by a later start
	Known      string           `json:"known,omitempty"`
	Content    []provider.Block `json:"content,omitempty"` // as in Responded
}

// Enforced is the payload of llm.single_call.enforced, which closes the record of a run.
type Enforced struct {
	Calls       int         `json:"calls"`
	Blocked     int         `json:"blocked_tool_calls"`
	LinesLost   int64       `json:"debug_lines_lost"`
	Permissions Permissions `json:"permissions"`
	Unasked     int         `json:"unasked_tools"`
	Freed       int         `json:"freed_tools,omitempty"` // that ran by a yes for good
}

// Permissions counts the questions of a run, in Enforced.
type Permissions struct {
	Asked      int `json:"asked"`
	Allowed    int `json:"allowed"`
	Denied     int `json:"denied"`
	Unanswered int `json:"unanswered"`
}

// Resolved is the payload of run.resolved: a person's judgement whether the prompt of a run
// with an unknown outcome was sent. It changes nothing: the input is never called again.
type Resolved struct {
	Sent bool   `json:"sent"`
	Note string `json:"note"`
	By   string `json:"by"`
}

// Voucher is the payload of voucher.given and voucher.revoked.
type Voucher struct {
	Decision string `json:"decision_sha256"` // of its JSON
}
