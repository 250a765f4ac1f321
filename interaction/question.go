package interaction

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/message"
)

// Question is a question to a person.
type Question struct {
	ID      event.InteractionID `json:"id"`
	Title   string              `json:"title"`
	Options []Option            `json:"options"`
	// Subject is the complete request, for front ends to show.
	Subject Subject `json:"subject"`
	// Word is a word that the person must type for a yes, or "". No rule may allow a request with a Word.
	Word string `json:"word,omitempty"`
	// Input has the conditions on a typed answer. nil means that no option takes a text.
	Input *Input `json:"input,omitempty"`
	// Why is the reason for asking a person.
	Why string `json:"why,omitempty"`
	message.Coded
	// Allow has commands of Perlica. Each of them adds a rule that would allow this request without a question.
	Allow   []string  `json:"allow,omitempty"`
	Expires time.Time `json:"expires"`

	Refs  event.Refs `json:"-"`
	Asked time.Time  `json:"-"`
	// Writer is the event.Event.Writer of the process that asks and waits.
	Writer string `json:"-"`
}

// Because returns the question with the reason for asking.
func (q Question) Because(why *message.Text) Question {
	q.Why, q.Coded = why.Text, why.Coded
	return q
}

// Subject describes a permission request. Commands, Dir, Paths, Tier and the fields that are not inert describe the
// action. A person must have seen all of these before a yes counts.
type Subject struct {
	// Request is the JSON-RPC id of the agent's request. It is empty if the question is not about a request.
	Request  string   `json:"request,omitempty"`
	Provider string   `json:"provider"`
	Kind     string   `json:"kind,omitempty"` // ACP's tool kind
	Commands []string `json:"commands,omitempty"`
	// Dir is the directory that the policy assumed. Commands start in it, and paths may be relative to it.
	Dir   string   `json:"dir,omitempty"`
	Paths []string `json:"paths,omitempty"`
	// LeadsTo maps each path with a symbolic link to the path without links. An empty value is an unknown path.
	LeadsTo map[string]string `json:"leads_to,omitempty"`
	// Tier is the policy's tier: "ordinary", "always-asked" or "refused". It is empty if the policy gave no tier.
	Tier string `json:"tier,omitempty"`
	// Fields are the fields of the tool's input that are not in Commands or Paths, ordered by name.
	Fields   []Field         `json:"fields,omitempty"`
	Diffs    []Diff          `json:"diffs,omitempty"`
	Text     []string        `json:"text,omitempty"`
	RawInput json.RawMessage `json:"raw_input,omitempty"`
}

// Field is one field of a tool's input.
type Field struct {
	Name  string `json:"name"`  // path in the input, such as "env.PATH" or "steps[2].script"
	Value string `json:"value"` // a string unchanged, any other value as JSON
	// Inert means that the field does not change the action. Examples are a description, a timeout and an id.
	Inert bool `json:"inert,omitempty"`
	// Unread means that Perlica does not understand the field. The whole request then counts as unreadable.
	Unread bool `json:"unread,omitempty"`
}

// Diff is a requested change to a file.
type Diff struct {
	Path string `json:"path"`
	Old  string `json:"old"`
	New  string `json:"new"`
}

// Answer is a person's answer to a question.
type Answer struct {
	Option string `json:"option"`          // id of the chosen option
	Text   string `json:"text,omitempty"`  // the typed word or value
	By     string `json:"by"`              // name of the user
	Where  string `json:"where,omitempty"` // the front end, such as "terminal" or "pending"
	// Always is the confirmation of a yes for good. An allow_always option needs it.
	Always bool `json:"always,omitempty"`
	// Shown counts the rows that the person had seen. nil means that the front end does not know.
	Shown *Shown `json:"shown,omitempty"`
	// Digest is the SHA-256 of the question's payload in hex. If a team's hub had only a part of the payload, Digest
	// is the hash of that part. Signature is the signature of a device or a team's member over the digest, the
	// question and the option. Key is the public key of Signature: SubjectPublicKeyInfo in base64, or a verifier key.
	// All three are empty if nothing was signed.
	Digest    string `json:"digest,omitempty"`
	Signature string `json:"signature,omitempty"`
	Key       string `json:"key,omitempty"`
	// Origin is the process that gave the answer. nil means that the answer came over a channel.
	Origin *Origin `json:"origin,omitempty"`
}

// Rejected is the payload of interaction.answer_rejected: an answer that did not count, and the reason.
type Rejected struct {
	Answer
	Why string `json:"why"`
	message.Coded
}

// Shown counts the rows of a question in the layout of the screen.
type Shown struct {
	Rows int `json:"rows"` // rows that were on the screen
	Of   int `json:"of"`   // all rows
}

// Origin identifies the process that gave an answer, for later investigations.
type Origin struct {
	User      string    `json:"user"`               // the system's user, independent of By
	Terminal  string    `json:"terminal,omitempty"` // the controlling terminal; empty means none
	Process   Process   `json:"process"`
	Ancestors []Process `json:"ancestors,omitempty"` // the parent first; may be incomplete
	// Agent is the agent from which the process descends. Such an answer does not count. Empty means that no agent is
	// an ancestor.
	Agent string `json:"agent,omitempty"`
}

// Process is the number of a process and the program name that the system reports for it.
type Process struct {
	PID  int    `json:"pid"`
	Name string `json:"name"`
}

// These errors explain why an answer does not count.
var (
	ErrUnknownQuestion = message.New("interaction.unknown-question", "there is no such question")
	ErrNotAnOption     = message.New("interaction.not-an-option", "that is not one of the options")
	ErrAmbiguous       = message.New("interaction.ambiguous", "the answer is ambiguous")
	ErrWord            = message.New("interaction.word", "to allow this, type the exact word from the question")
	ErrAlways          = message.New("interaction.always",
		"'always allow' must be confirmed separately: the agent will not ask again, and Perlica cannot "+
			"limit the actions that this answer allows")
	errNoName = message.New("interaction.no-name", "an answer needs the name of its author")
	ErrAgent  = message.New("interaction.agent", "a process of an agent is not allowed to answer")
)

// TakenError says that a question is already closed, and how it ended.
type TakenError struct {
	Answer *Answer // nil if the question lapsed
	Lapsed Reason
	At     time.Time // zero if unknown
}

var (
	closedUnanswered = message.New("interaction.closed-unanswered", "the question was closed without an answer: %s")
	closedAt         = message.New("interaction.closed-at", "the question was closed at %s without an answer: %s")
	answeredFirst    = message.New("interaction.answered-first", "%s answered first from %s: %s")
	answeredAt       = message.New("interaction.answered-at", "%s answered first, at %s from %s: %s")
)

// Tell returns the error's sentence.
func (e *TakenError) Tell() *message.Text {
	at := e.At.Local().Format("15:04:05")
	switch {
	case e.Answer == nil && e.At.IsZero():
		return closedUnanswered.With(e.Lapsed.text())
	case e.Answer == nil:
		return closedAt.With(at, e.Lapsed.text())
	case e.At.IsZero():
		return answeredFirst.With(e.Answer.By, e.Answer.Where, e.Answer.Option)
	}
	return answeredAt.With(e.Answer.By, at, e.Answer.Where, e.Answer.Option)
}

func (e *TakenError) Error() string { return e.Tell().Text }

// Reason says why a question was closed without an answer.
type Reason string

// The reasons for closing a question without an answer.
const (
	Unattended Reason = "nobody_to_ask"
	TimeUp     Reason = "time_is_up"
	Cancelled  Reason = "turn_cancelled"
	AgentGone  Reason = "agent_gone"
	RunEnded   Reason = "run_ended"
	Withdrawn  Reason = "withdrawn_by_agent"
	Dismissed  Reason = "dismissed_by_client" // the agent's own client chose no option
	Crashed    Reason = "asker_died"
)

// lapses are the reasons as sentences.
var lapses = map[Reason]*message.Text{
	Unattended: message.New("lapse.nobody-to-ask", "nobody was there to ask"),
	TimeUp:     message.New("lapse.time-is-up", "the time for an answer is over"),
	Cancelled:  message.New("lapse.turn-cancelled", "the turn was cancelled"),
	AgentGone:  message.New("lapse.agent-gone", "the agent has ended"),
	RunEnded:   message.New("lapse.run-ended", "the run has ended"),
	Withdrawn:  message.New("lapse.withdrawn-by-agent", "the agent withdrew it"),
	Dismissed:  message.New("lapse.dismissed-by-client", "the agent's own client closed it"),
	Crashed:    message.New("lapse.asker-died", "the process that asked has ended"),
}

// text returns the reason as a sentence. A reason of another version has no code.
func (r Reason) text() *message.Text {
	if t := lapses[r]; t != nil {
		return t
	}
	return &message.Text{Text: string(r)}
}

// Check returns the reason why a may not answer q, or nil.
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

// Choose returns the option that the text s names: by its number in the list (ASCII digits, from 1), by its id, or by
// its exact label. It refuses any other text. The agent chose the ids and labels. So if a person could mean s as a
// no, Choose returns a yes only by its number.
func (q Question) Choose(s string) (Option, error) {
	s = strings.TrimSpace(s)
	found := -1
	for i, o := range q.Options {
		if optionNumber(s) != i+1 && s != o.ID && s != o.Label {
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
	if o := q.Options[found]; optionNumber(s) != found+1 && o.Allows() && soundsLikeNo(s) {
		return Option{}, fmt.Errorf("%w: %q could be meant as a no; say its number, %d", ErrAmbiguous, s, found+1)
	}
	return q.Options[found], nil
}

// noWords matches texts that a person could mean as a no. It guards against labels that contradict the effect of
// their option. It need not be complete in any language.
var noWords = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)(^|\PL)(no|nope|nah|not|none|don['’]?t|never|reject|den(y|ied)|decline|disallow|` +
		`refuse|forbid|cancel|stop|abort|block|skip|dismiss|` +
		`nein|nicht|ablehnen|abbrechen|non|refuser|annuler|rechazar|cancelar|denegar|recusar|negar|rifiuta|annulla|` +
		`nie|нет|не|отказ\pL*|отклон\pL*|отмен\pL*)(\PL|$)` +
		`|[不否拒别勿]|取消|停止|いいえ|キャンセル|아니|거부|취소|لا|नहीं`)
})

func soundsLikeNo(s string) bool { return noWords().MatchString(s) }

// optionNumber parses a positive number of at most three ASCII digits. For other texts it returns 0. It refuses
// digits of other scripts, because the card does not show them, and a person may misread them.
func optionNumber(s string) int {
	if len(s) > 3 || strings.Trim(s, "0123456789") != "" {
		return 0
	}
	n, _ := strconv.Atoi(s) // an empty text gives 0
	return n
}
