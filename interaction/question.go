package interaction

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"

	"github.com/perlica/perlica/eventlog"
)

// An Option is one of the answers to choose from.
type Option struct {
	ID    string `json:"id"`
	Label string `json:"label"`
	// Kind is ACP's: allow_once, allow_always, reject_once, reject_always.
	Kind string `json:"kind"`
	// Offer marks an answer that Perlica offers beside the agent's own.
	Offer bool `json:"offer,omitempty"`
}

// Allows reports whether choosing the option says yes. A kind that is neither a known yes
// nor a known no counts as a yes: whoever guards yeses must guard it, too.
func (o Option) Allows() bool { return o.Kind != "reject_once" && o.Kind != "reject_always" }

// Question is what is asked.
type Question struct {
	ID      eventlog.InteractionID `json:"id"`
	Title   string                 `json:"title"`
	Options []Option               `json:"options"`
	// Subject is what is to be judged, in full, for front ends to show.
	Subject Subject `json:"subject"`
	// Word must be typed for a yes to count, if it is set: the question is about
	// something that no rule may allow.
	Word string `json:"word,omitempty"`
	// Why says why a person is asked.
	Why     string    `json:"why,omitempty"`
	Expires time.Time `json:"expires"`

	Refs  eventlog.Refs `json:"-"`
	Asked time.Time     `json:"-"`
	// Writer is the log handle of the process that asks, and waits.
	Writer string `json:"-"`
}

// Subject is what a permission request is about.
type Subject struct {
	Provider string          `json:"provider"`
	Kind     string          `json:"kind,omitempty"` // ACP's tool kind
	Commands []string        `json:"commands,omitempty"`
	Paths    []string        `json:"paths,omitempty"`
	Diffs    []Diff          `json:"diffs,omitempty"`
	Text     []string        `json:"text,omitempty"`
	RawInput json.RawMessage `json:"raw_input,omitempty"`
}

// Diff is a change to a file that is to be judged.
type Diff struct {
	Path string `json:"path"`
	Old  string `json:"old"`
	New  string `json:"new"`
}

// Answer is what somebody said to a question.
type Answer struct {
	Option string `json:"option"`          // the id of the chosen option
	Text   string `json:"text,omitempty"`  // the word, where one must be typed
	By     string `json:"by"`              // who: a user's name
	Where  string `json:"where,omitempty"` // from where: "terminal", "pending"
}

// Why an answer does not count.
var (
	ErrUnknownQuestion = errors.New("there is no such question")
	ErrNotAnOption     = errors.New("that is none of the options")
	ErrAmbiguous       = errors.New("that could mean two of the options")
	ErrWord            = errors.New("a yes to this takes the word that the question names, typed exactly")
	ErrNobody          = errors.New("an answer needs a name")
)

// TakenError says that a question is closed already, and how.
type TakenError struct {
	Answer *Answer // nil if it lapsed
	Lapsed Reason
	At     time.Time
}

func (e *TakenError) Error() string {
	at := e.At.Local().Format("15:04:05")
	if e.Answer == nil {
		return fmt.Sprintf("the question was closed at %s without an answer: %s", at, e.Lapsed)
	}
	return fmt.Sprintf("%s answered first, at %s from %s: %s", e.Answer.By, at, e.Answer.Where, e.Answer.Option)
}

// Reason says why a question was closed without an answer.
type Reason string

// The reasons.
const (
	Nobody    Reason = "nobody_to_ask"
	TimeUp    Reason = "time_is_up"
	Cancelled Reason = "turn_cancelled"
	AgentGone Reason = "agent_gone"
	RunEnded  Reason = "run_ended"
	Withdrawn Reason = "withdrawn_by_agent"
	Crashed   Reason = "asker_died"
)

// Check returns why a may not answer q, or nil.
func (q Question) Check(a Answer) error {
	if a.By == "" {
		return ErrNobody
	}
	for _, o := range q.Options {
		if o.ID != a.Option {
			continue
		}
		if q.Word != "" && o.Allows() && a.Text != q.Word {
			return ErrWord
		}
		return nil
	}
	return fmt.Errorf("%w: %q", ErrNotAnOption, a.Option)
}

// Choose finds the option that a person means by s: its number in the list, counted from
// one, in any script of decimal digits; its id; or its exact label. Anything else is
// refused: free text never chooses.
func (q Question) Choose(s string) (Option, error) {
	s = strings.TrimSpace(s)
	found := -1
	for i, o := range q.Options {
		if number(s) != i+1 && s != o.ID && s != o.Label {
			continue
		}
		if found >= 0 {
			return Option{}, fmt.Errorf("%w: %q", ErrAmbiguous, s)
		}
		found = i
	}
	if found < 0 {
		return Option{}, fmt.Errorf("%w: %q", ErrNotAnOption, s)
	}
	return q.Options[found], nil
}

// First returns the first option of an ACP kind that is the agent's own.
func (q Question) First(kind string) (Option, bool) {
	for _, o := range q.Options {
		if o.Kind == kind && !o.Offer {
			return o, true
		}
	}
	return Option{}, false
}

// number reads a positive number of at most three decimal digits, or returns 0.
func number(s string) int {
	n, digits := 0, 0
	for _, r := range s {
		d, ok := digit(r)
		if digits++; !ok || digits > 3 {
			return 0
		}
		n = n*10 + d
	}
	return n
}

// digit returns the value of a decimal digit of any script. Unicode encodes every set of
// them in ascending order from its zero, so the value follows from the place in the run.
func digit(r rune) (int, bool) {
	if !unicode.IsDigit(r) {
		return 0, false
	}
	n := 0
	for z := r; n < 10 && unicode.IsDigit(z-1); z-- {
		n++
	}
	return n % 10, true
}
