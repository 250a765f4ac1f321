package fact

import (
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/message"
)

// FlowStarted is the payload of flow.started. It has the text of the file, so that a reader can draw the graph without
// the file.
type FlowStarted struct {
	Name string `json:"name"`
	// Digest is the SHA-256 of the file and of the files that it names, in hex.
	Digest string            `json:"digest"`
	File   string            `json:"file"` // the file's text
	Inputs map[string]string `json:"inputs,omitempty"`
	By     string            `json:"by"`
	// Permissions is the mode that the person chose for the flow run. It is empty if the person chose none.
	Permissions string `json:"permissions,omitempty"`
	// Team is the id of the team that answers the calls. It is empty if this machine answers them.
	Team string `json:"team,omitempty"`
	// Limited means that a process of an agent began the flow run.
	Limited bool `json:"limited,omitempty"`
}

// These are the decisions about a step in FlowDecided.
const (
	FlowExpanded = "expanded" // the items of a loop are known
	FlowDone     = "done"
	FlowFailed   = "failed"
	FlowSkipped  = "skipped"
	FlowRetry    = "retry" // a person has asked to call the step or the item again
	// FlowHanded is recorded before the input of a step or an item is handed over to a team.
	FlowHanded = "handed_over"
	// FlowUnknown means that the outcome of a team's call is unknown. A later decision about the same attempt replaces it.
	FlowUnknown = "unknown"
)

// FlowDecided is the payload of flow.step.decided.
type FlowDecided struct {
	Step string `json:"step"`
	// Item is the number of an item of a loop, from 1. 0 means the step itself.
	Item int `json:"item,omitempty"`
	// Attempt counts the retries that a person has asked for. It is 0 for the first attempt.
	Attempt  int    `json:"attempt,omitempty"`
	Decision string `json:"decision"`
	// Items are the digests of a loop's items, in their order, for "expanded".
	Items         []string    `json:"items,omitempty"`
	Run           event.RunID `json:"call,omitempty"` // the run of the call, if there was one
	Answer        string      `json:"answer,omitempty"`
	Error         string      `json:"error,omitempty"`
	message.Coded             // the code of Error, with the inserted values
	By            string      `json:"by,omitempty"` // the author of a retry or of an answer
	// ErrorType is the type of the agent's error. Unanswered counts the agent's questions without an answer.
	ErrorType  string `json:"error_type,omitempty"`
	Unanswered int    `json:"unanswered,omitempty"`
	DurationMS int64  `json:"duration_ms,omitempty"`
	Cost       *Cost  `json:"cost,omitempty"`
	// Generation is the generation of the team's hub, for "handed_over".
	Generation string `json:"generation,omitempty"`
	// Worker is the machine of a team that answered the call, and Session is the session of the call on its log.
	Worker  string          `json:"worker,omitempty"`
	Session event.SessionID `json:"session,omitempty"`
}

// These are the outcomes of a flow run in FlowFinished.
const (
	FlowCancelled = "cancelled"
)

// FlowFinished is the payload of flow.finished. A retry after it continues the flow run.
type FlowFinished struct {
	Outcome string `json:"outcome"` // "done", "failed" or "cancelled"
	By      string `json:"by,omitempty"`
}
