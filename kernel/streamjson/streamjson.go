// Package streamjson is the JSON form of results and notices. `perlica run --json` and `--output-format
// stream-json` print it, and a front end over HTTP sends it. A member keeps its meaning while Schema is the same.
// Members and types may be added.
//
// A Line is a notice. Its member "type" determines its other members:
//
//	run.started   run_id, input_id, session_id, provider, agent, mode
//	text          text: a piece of the answer
//	thought       text
//	tool          update: a tool call or its change, as the agent wrote it
//	plan          entries
//	usage         usage
//	update        update: any other update, as the agent wrote it; words: the same in one row, if
//	              a person should see it
//	question      id, title, options, subject, why, code, args, word, expires
//	answer        id, answer, reason; or title, effect, by, why, code, args if a rule answered
//	blocked       method: a request of the agent that was refused
//	warning       subtype, detail, code, args
//
// A reader that follows a log also gets:
//
//	run.received  run_id, session_id, input_id, text, attachments, source, sender, at, pruned
//	run.stopping  run_id, by, why, code, args
//	run.finished  result: a Result; at
//	session.held  by, pid, since
//	session.freed run_id: of the turn that ended with its process, if any
package streamjson

import (
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/message"
	"github.com/perlica/perlica/kernel"
	"github.com/perlica/perlica/kernel/budget"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/kernel/record"
	"github.com/perlica/perlica/provider"
)

// Schema is the version of the JSON format. It changes when a member changes its meaning or is removed.
const Schema = 1

// A Line is a notice as a JSON object. The package comment lists its members.
type Line map[string]any

// NewLine converts a notice to a line.
func NewLine(n record.Notice) Line {
	kind, line := members(n)
	line["schema"], line["type"] = Schema, kind
	return line
}

// NewEntryLine converts an entry of a followed log to a line. The line also has the members seq and session_id. If the
// entry belongs to a run, it has run_id, too.
func NewEntryLine(e record.Entry) Line {
	line := NewLine(e.Notice)
	line["seq"], line["session_id"] = e.Seq, e.Refs.Session
	if e.Refs.Run != "" {
		line["run_id"] = e.Refs.Run
	}
	return line
}

// members returns the type of a notice and the members of this type.
func members(n record.Notice) (kind string, line Line) {
	switch n := n.(type) {
	case record.Started:
		return "run.started", Line{
			"run_id": n.Run, "input_id": n.Input, "session_id": n.Session, "provider": n.Provider, "agent": n.Agent,
			"mode": n.Mode,
		}
	case record.Updated:
		return update(n)
	case record.Asked:
		return "question", Line{
			"id": n.ID, "title": n.Title, "options": n.Options, "subject": n.Subject, "why": n.Why, "code": n.Code,
			"args": n.Args,
			"word": n.Word, "expires": n.Expires,
		}
	case record.Closed:
		line := Line{"id": n.Question.ID, "answer": n.Answer}
		if n.Reason != "" {
			line["reason"] = n.Reason
		}
		return "answer", line
	case record.Decided:
		line := Line{"title": n.Title, "effect": n.Effect, "by": n.By, "why": n.Why, "code": n.Code, "args": n.Args}
		if len(n.Commands) > 0 {
			line["commands"] = n.Commands
		}
		if len(n.Paths) > 0 {
			line["paths"] = n.Paths
		}
		return "answer", line
	case record.Blocked:
		return "blocked", Line{"method": n.Method}
	case record.Warned:
		return "warning", Line{"subtype": n.Subtype, "detail": n.Detail, "code": n.Code, "args": n.Args}
	}
	return followed(n)
}

// followed works like members, for the notices that only a follower of the log gets.
func followed(n record.Notice) (kind string, line Line) {
	switch n := n.(type) {
	case record.Received:
		line := Line{
			"run_id": n.Run, "session_id": n.Session, "input_id": n.Input, "text": n.Text, "attachments": n.Attachments,
			"source": n.Source, "sender": n.Sender, "at": n.At, "pruned": n.Pruned,
		}
		if n.Damage != "" {
			line["damage"] = n.Damage
		}
		return "run.received", line
	case record.Stopping:
		return "run.stopping", Line{"run_id": n.Run, "by": n.By, "why": n.Why, "code": n.Code, "args": n.Args}
	case record.Finished:
		return "run.finished", Line{"result": NewResult(n.Result, nil, ""), "at": n.At}
	case record.Held:
		return "session.held", Line{"by": n.By, "pid": n.PID, "since": n.Since}
	case record.Freed:
		return "session.freed", Line{"run_id": n.Run}
	case record.FlowChanged:
		return flowChange(n)
	}
	return "update", Line{}
}

func flowChange(n record.FlowChanged) (kind string, line Line) {
	switch n.Type {
	case event.FlowStarted:
		return "flow.started", Line{"id": n.Flow}
	case event.FlowFinished:
		return "flow.ended", Line{"id": n.Flow, "state": n.Decision}
	}
	return "flow.step", Line{"id": n.Flow, "step": n.Step, "item": n.Item, "state": n.Decision}
}

func update(n record.Updated) (kind string, line Line) {
	switch n.Kind {
	case provider.AgentMessageChunk:
		if n.Text != "" {
			return "text", Line{"text": n.Text}
		}
	case provider.AgentThoughtChunk:
		return "thought", Line{"text": n.Text}
	case provider.ToolCallStarted, provider.ToolCallUpdated:
		return "tool", Line{"update": json.RawMessage(n.Raw)}
	case provider.PlanChanged:
		return "plan", Line{"entries": n.Plan}
	}
	if n.Usage != nil {
		return "usage", Line{"usage": n.Usage}
	}
	line = Line{"update": json.RawMessage(n.Raw)}
	words := n.Saying()
	if n.Block != nil {
		words = n.Block.String()
	}
	if words != "" {
		line["words"] = words
	}
	return "update", line
}

// These are values of stopped.by.
const (
	ByUser       = "user"
	ByTerminated = "terminated" // a signal, or the closing of the terminal
	ByTimeout    = "timeout"    // the option --timeout
	ByBudget     = kernel.StoppedByBudget
	ByPipe       = "closed_pipe"   // the reader of standard output has closed it
	ByOutput     = "output_failed" // writing to standard output failed
)

// Result is the last JSON object of a run.
type Result struct {
	Type      string `json:"type"`
	Schema    int    `json:"schema"`
	N         *int   `json:"n,omitempty"` // the number of the input; only in stream-json
	RunID     string `json:"run_id"`
	InputID   string `json:"input_id"`
	SessionID string `json:"session_id"`
	Provider  string `json:"provider"`
	Text      string `json:"text"`
	// Content has the parts of the answer that are not text.
	Content    []Content       `json:"content,omitempty"`
	StopReason string          `json:"stop_reason"`
	Outcome    string          `json:"outcome"`
	Usage      json.RawMessage `json:"usage"`
	// OfSession means that Usage covers the agent's whole session so far.
	OfSession   bool               `json:"usage_of_session,omitempty"`
	Cost        *fact.Cost         `json:"cost,omitempty"`
	DurationMS  int64              `json:"duration_ms"`
	Permissions fact.Permissions   `json:"permissions"`
	Unasked     []fact.UnaskedTool `json:"unasked_tools"`
	Blocked     int                `json:"blocked_tool_calls"`
	Calls       int                `json:"calls"`
	Replayed    bool               `json:"replayed,omitempty"`
	// Pruned means that a part of the recorded result was pruned.
	Pruned   bool            `json:"pruned,omitempty"`
	Stopped  *fact.Stop      `json:"stopped,omitempty"`
	Warnings []record.Warned `json:"warnings,omitempty"`
	IsError  bool            `json:"is_error"`
	Error    *provider.Error `json:"error"`
	// Budget is the budget that refused the call.
	Budget *fact.BudgetReached `json:"budget,omitempty"`
}

// Content is a part of an answer that is not text. Path is the file into which this command wrote it.
type Content struct {
	provider.Block
	Path string `json:"path,omitempty"`
}

// NewResult returns the result of a run. If the run was not accepted, err is the reason. The parameter "kind" is the
// kind of err: "usage", provider.TypeRecord, or "perlica" for any other error.
func NewResult(res record.Result, err error, kind provider.ErrorType) Result {
	r := Result{
		Type: "result", Schema: Schema,
		RunID: string(res.Run), InputID: string(res.Input), SessionID: string(res.Session), Provider: res.Provider,
		Text: res.Text, StopReason: res.StopReason, Outcome: string(res.Outcome), Usage: res.Usage, OfSession: res.OfSession,
		Cost:       res.Cost,
		DurationMS: res.Duration.Milliseconds(), Permissions: res.Permissions, Unasked: res.Unasked,
		Blocked: res.Blocked, Calls: res.Calls, Replayed: res.Replayed, Pruned: res.Pruned, Stopped: res.Stopped,
		Warnings: res.Warnings,
		IsError:  err != nil || Failed(res), Error: res.Err,
	}
	for _, b := range res.Content {
		r.Content = append(r.Content, Content{Block: b})
	}
	if r.Replayed {
		r.Calls = 0 // this command made no call; an earlier one did
	}
	if r.Usage == nil {
		r.Usage = json.RawMessage("null")
	}
	if r.Unasked == nil {
		r.Unasked = []fact.UnaskedTool{}
	}
	if err != nil {
		r.Error = (&provider.Error{Provider: res.Provider, Type: kind}).Saying(message.Of(err))
		var stopped *kernel.StoppedError
		if errors.As(err, &stopped) {
			r.Error.Type, r.Stopped = provider.TypeStopped, &stopped.Stop
		}
		var refused *budget.RefusedError
		if errors.As(err, &refused) {
			r.Budget = &refused.BudgetReached
		}
	}
	return r
}

// Kernel converts r to the kernel's result. Fields that r does not have are empty.
func (r Result) Kernel() record.Result {
	res := record.Result{
		Run: event.RunID(r.RunID), Input: event.InputID(r.InputID), Session: event.SessionID(r.SessionID),
		Provider: r.Provider,
		Outcome:  record.Outcome(r.Outcome), Text: r.Text, StopReason: r.StopReason, OfSession: r.OfSession, Cost: r.Cost,
		Duration:    time.Duration(r.DurationMS) * time.Millisecond,
		Permissions: r.Permissions, Unasked: r.Unasked, Blocked: r.Blocked, Calls: r.Calls, Err: r.Error, Stopped: r.Stopped,
		Replayed: r.Replayed, Pruned: r.Pruned, Warnings: r.Warnings,
	}
	if string(r.Usage) != "null" {
		res.Usage = r.Usage
	}
	for _, c := range r.Content {
		res.Content = append(res.Content, c.Block)
	}
	return res
}

// Failed reports whether a run has no complete answer.
func Failed(res record.Result) bool {
	return res.Outcome != record.OutcomeResponded || slices.Contains([]string{"refusal", "max_tokens",
		"max_turn_requests"}, res.StopReason) ||
		res.Stopped != nil && slices.Contains([]string{ByUser, ByTerminated, ByTimeout, ByBudget, ByPipe, ByOutput},
			res.Stopped.By)
}
