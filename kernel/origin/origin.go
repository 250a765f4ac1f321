// Package origin finds the run of each changed file and of each line of a file.
//
// The package promises that it never guesses. A line has an origin only if the recorded content of a tool call has
// the line. The present file must still have the line at that place. The origin of every other line is unknown. The
// package only reads: it starts no agent and no other program.
package origin

import (
	"time"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/message"
)

// Change is the recorded change of one file by a tool call, or an inferred change.
type Change struct {
	Path    string          `json:"path"` // absolute
	Run     event.RunID     `json:"run_id"`
	Session event.SessionID `json:"session_id"`
	Input   event.InputID   `json:"input_id"`
	// Text is the beginning of the input's text.
	Text string    `json:"input"`
	By   string    `json:"sent_by"` // the sender of the input
	At   time.Time `json:"at"`
	Call string    `json:"tool_call_id"`
	// Inferred means that no tool call describes the change. The file differs before and after the turn of the run, and
	// no other run was under way.
	Inferred bool `json:"inferred,omitempty"`
	// Commands are the commands of the run if the change is inferred. One of them may have made the change.
	Commands []string `json:"commands,omitempty"`
	// Perhaps means that the record does not have the end of the tool call. The file may have been changed or not.
	Perhaps bool `json:"perhaps"`
	// Removes means that the tool call removes the file.
	Removes bool `json:"removes,omitempty"`
	// Whole means that the content before the change is not on record. Removed is then 0.
	Whole    bool `json:"whole,omitempty"`
	Added    int  `json:"added"`   // lines
	Removed  int  `json:"removed"` // lines
	Decision `json:"decision"`

	source `json:"-"`
}

// Decision names the approver of a change.
type Decision struct {
	// Kind is "person", "rule", "mode", "standing" or "program". It is "unasked" if the change is on record as unasked,
	// and "refused" if the tool ran although its question was refused. It is "unknown" if the record has neither a
	// question nor a report, for example if a standing approval covered the call.
	Kind string `json:"kind"`
	// Who names the person.
	Who string `json:"who,omitempty"`
	// Question is the id of the question that the person answered.
	Question event.InteractionID `json:"question_id,omitempty"`
	// Why is the reason on record: the rule, or the reason why a change is reported as unasked.
	Why string `json:"why,omitempty"`
	message.Coded
}

// Unasked reports whether neither a person nor a rule allowed the change.
func (d Decision) Unasked() bool { return d.Kind == unasked || d.Kind == refused }

const (
	person     = "person"
	unasked    = "unasked"
	refused    = "refused"
	unrecorded = "unknown"
)

// source names the events with the content of a change.
type source struct {
	Agent   string    `json:"agent,omitempty"`   // id of the agent in the registry; "" if the registry does not know it
	Dir     string    `json:"dir"`               // the working directory of the run
	End     event.Seq `json:"end"`               // the report that ended the tool call, or the newest report
	Diff    event.Seq `json:"diff,omitempty"`    // the report with the diffs; 0 if there is no such report
	Args    event.Seq `json:"args,omitempty"`    // the report with the tool's input; 0 if the diffs count
	Nth     int       `json:"nth,omitempty"`     // the number of the change among the changes of its tool call
	Created bool      `json:"created,omitempty"` // true if the record shows that the file was missing before
}
