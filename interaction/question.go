package interaction

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/perlica/perlica/eventlog/event"
)

// Question is what is asked.
type Question struct {
	ID      event.InteractionID `json:"id"`
	Title   string              `json:"title"`
	Options []Option            `json:"options"`
	// Subject is what is to be judged, in full, for front ends to show.
	Subject Subject `json:"subject"`
	// Word must be typed for a yes to count, if it is set: the question is about
	// something that no rule may allow.
	Word string `json:"word,omitempty"`
	// Input is what a text must be that an answer takes; nil: no option takes one.
	Input *Input `json:"input,omitempty"`
	// Why says why a person is asked.
	Why string `json:"why,omitempty"`
	// Allow are the commands of the rules that would allow it without a question.
	Allow   []string  `json:"allow,omitempty"`
	Expires time.Time `json:"expires"`

	Refs  event.Refs `json:"-"`
	Asked time.Time  `json:"-"`
	// Writer is the log handle of the process that asks, and waits.
	Writer string `json:"-"`
}

// Subject is what a permission request is about. Commands, Dir, Paths, Tier and the fields that
// are not inert are what would run: all of them have been shown before a yes counts.
type Subject struct {
	Provider string   `json:"provider"`
	Kind     string   `json:"kind,omitempty"` // ACP's tool kind
	Commands []string `json:"commands,omitempty"`
	// Dir is the directory that was judged: where the commands start, and from which relative
	// paths count.
	Dir   string   `json:"dir,omitempty"`
	Paths []string `json:"paths,omitempty"`
	// Tier is policy's: "ordinary", "always-asked" or "refused"; empty in questions of
	// before it was recorded.
	Tier string `json:"tier,omitempty"`
	// Fields are the fields of the tool's input that Commands and Paths do not already show,
	// ordered by name.
	Fields   []Field         `json:"fields,omitempty"`
	Diffs    []Diff          `json:"diffs,omitempty"`
	Text     []string        `json:"text,omitempty"`
	RawInput json.RawMessage `json:"raw_input,omitempty"`
}

// Field is one field of a tool's input.
type Field struct {
	Name  string `json:"name"`  // its path in the input: "env.PATH", "steps[2].script"
	Value string `json:"value"` // a string as it is, anything else as JSON
	// Inert marks a field that changes nothing about what runs: a description, a timeout, an id.
	Inert bool `json:"inert,omitempty"`
	// Unread marks a field that Perlica does not understand: it makes the request one that
	// cannot be read.
	Unread bool `json:"unread,omitempty"`
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
	Text   string `json:"text,omitempty"`  // the word, or the value, where one must be typed
	By     string `json:"by"`              // who: a user's name
	Where  string `json:"where,omitempty"` // from where: "terminal", "pending"
	// Always confirms that a yes for good was meant: the second key that an allow_always takes.
	Always bool `json:"always,omitempty"`
	// Shown says how much of the question the person had been shown; nil: the front end
	// cannot tell.
	Shown *Shown `json:"shown,omitempty"`
	// Digest is what was shown: the SHA-256 of the question's payload, in hex, or of what a team's hub had of
	// it. Signature is the device's, or the member's, over it, the question and the option, by the public Key:
	// SubjectPublicKeyInfo in base64, or a verifier key.
	// Empty: nothing was signed.
	Digest    string `json:"digest,omitempty"`
	Signature string `json:"signature,omitempty"`
	Key       string `json:"key,omitempty"`
	// Origin is the process that gave the answer; nil: it came over a channel.
	Origin *Origin `json:"origin,omitempty"`
}

// Shown counts the rows of a question, as they were laid out for the screen.
type Shown struct {
	Rows int `json:"rows"` // that had been on the screen
	Of   int `json:"of"`   // that there are
}

// Origin says which process gave an answer, for those who look into it afterwards.
type Origin struct {
	User      string    `json:"user"`               // of the system, whatever By says
	Terminal  string    `json:"terminal,omitempty"` // the controlling terminal; empty: none
	Process   Process   `json:"process"`
	Ancestors []Process `json:"ancestors,omitempty"` // the parent first, as far as they are known
	// Agent is the agent from which the process descends: its answer does not count. Empty: none.
	Agent string `json:"agent,omitempty"`
}

// Process is a process as the system named it.
type Process struct {
	PID  int    `json:"pid"`
	Name string `json:"name"`
}

// Why an answer does not count.
var (
	ErrUnknownQuestion = errors.New("there is no such question")
	ErrNotAnOption     = errors.New("that is none of the options")
	ErrAmbiguous       = errors.New("that can be meant in two ways")
	ErrWord            = errors.New("a yes to this takes the word that the question names, typed exactly")
	ErrAlways          = errors.New("that option is a yes for good and takes a confirmation of its own: the agent will not ask again, and Perlica cannot limit what it takes the yes to cover")
	errNoName          = errors.New("an answer needs a name")
	ErrAgent           = errors.New("an agent's process may not answer")
)

// TakenError says that a question is closed already, and how.
type TakenError struct {
	Answer *Answer // nil if it lapsed
	Lapsed Reason
	At     time.Time // zero if that is not known
}

func (e *TakenError) Error() string {
	at := ""
	if !e.At.IsZero() {
		at = " at " + e.At.Local().Format("15:04:05")
	}
	if e.Answer == nil {
		return fmt.Sprintf("the question was closed%s without an answer: %s", at, e.Lapsed)
	}
	if at != "" {
		at = "," + at
	}
	return fmt.Sprintf("%s answered first%s from %s: %s", e.Answer.By, at, e.Answer.Where, e.Answer.Option)
}

// Reason says why a question was closed without an answer.
type Reason string

// The reasons.
const (
	Unattended Reason = "nobody_to_ask"
	TimeUp     Reason = "time_is_up"
	Cancelled  Reason = "turn_cancelled"
	AgentGone  Reason = "agent_gone"
	RunEnded   Reason = "run_ended"
	Withdrawn  Reason = "withdrawn_by_agent"
	Dismissed  Reason = "dismissed_by_client" // the agent's own client chose none of the options
	Crashed    Reason = "asker_died"
)

// Check returns why a may not answer q, or nil.
func (q Question) Check(a Answer) error {
	if a.By == "" {
		return errNoName
	}
	if a.Origin != nil && a.Origin.Agent != "" {
		return fmt.Errorf("%w: it descends from %s", ErrAgent, a.Origin.Agent)
	}
	for _, o := range q.Options {
		if o.ID != a.Option {
			continue
		}
		if q.Word != "" && o.Allows() && a.Text != q.Word {
			return ErrWord
		}
		if o.Always() && !a.Always {
			return ErrAlways
		}
		if o.Text {
			_, err := q.Input.Value(a.Text)
			return err
		}
		return nil
	}
	return fmt.Errorf("%w: %q", ErrNotAnOption, a.Option)
}

// Choose finds the option that a person means by s: its number in the list, counted from
// one, in ASCII digits; its id; or its exact label. Anything else is
// refused: free text never chooses. Ids and labels are the agent's words: one that a person
// could mean as a no never chooses a yes, which takes the number then.
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
	if o := q.Options[found]; number(s) != found+1 && o.Allows() && soundsLikeNo(s) {
		return Option{}, fmt.Errorf("%w: %q could be meant as a no; say its number, %d", ErrAmbiguous, s, found+1)
	}
	return q.Options[found], nil
}

// no finds what a person could mean as a no. It need not be complete in any language: it guards
// against labels that say the contrary of what their option does.
var no = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)(^|\PL)(no|nope|nah|not|none|don['’]?t|never|reject|den(y|ied)|decline|disallow|refuse|forbid|cancel|stop|abort|block|skip|dismiss|` +
		`nein|nicht|ablehnen|abbrechen|non|refuser|annuler|rechazar|cancelar|denegar|recusar|negar|rifiuta|annulla|nie|нет|не|отказ\pL*|отклон\pL*|отмен\pL*)(\PL|$)` +
		`|[不否拒别勿]|取消|停止|いいえ|キャンセル|아니|거부|취소|لا|नहीं`)
})

func soundsLikeNo(s string) bool { return no().MatchString(s) }

// number reads a positive number of at most three ASCII digits, or returns 0. Digits of other scripts are not
// the ones that a card shows: a person may read them as other numbers.
func number(s string) int {
	if len(s) > 3 || strings.Trim(s, "0123456789") != "" {
		return 0
	}
	n, _ := strconv.Atoi(s) // an empty text is 0
	return n
}
